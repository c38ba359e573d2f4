// What bridging needs of a network interface, as each system tells it. netdev-linux.c and netdev-freebsd.c hold one
// implementation each; netdev.c gives them to JavaScript.
#ifndef NETMAP_BRIDGE_NETDEV_H
#define NETMAP_BRIDGE_NETDEV_H

#include <stdbool.h>
#include <stdint.h>

#define MAC_BYTES 6

typedef enum { UNKNOWN = -1, OFF = 0, ON = 1 } tristate;

typedef struct {
  uint32_t index, mtu;
  bool up, running, promisc, link;
  bool ethernet, loopback; // frames begin with an Ethernet header; the machine's own loopback
  uint32_t link_type;      // ARPHRD_… of Linux, IFT_… of FreeBSD
  bool has_mac;
  uint8_t mac[MAC_BYTES];
  char kind[33];                    // what a virtual interface is, "tun"; "" where the system does not say
  char address[48];                 // an IP address the host has on it, link-local ones aside; "" none
  char master[17], master_kind[33]; // what it is a member of, "br0" and "bridge"; "" nothing
  char driver[33], bus[33];         // "" where the system does not say
  int64_t speed;                    // Mbit/s, -1 unknown
  int64_t rx_queues, tx_queues;     // -1 unknown
  int64_t rx_max, rx, tx_max, tx;   // descriptors, -1 unknown
  int64_t rx_usecs, tx_usecs;       // interrupt moderation in µs, -1 unknown
  tristate adaptive_rx;
  tristate rx_checksum, tx_checksum, tso, gso, gro, lro, rx_vlan, tx_vlan;
} netdev_info;

// What changes while a port is open.
typedef struct {
  bool link;
  uint32_t mtu;
  int64_t rx_queues, tx_queues; // -1 unknown
  // The interface's own counters since it was made. rx_missed: lost for want of buffers in the device, 0 where unknown.
  uint64_t rx_packets, tx_packets, rx_errors, tx_errors, rx_dropped, tx_dropped, rx_missed;
} netdev_state;

// Each returns 0 or a positive errno, with the call that failed in *call. `netns` is "" or a namespace's name.
int netdev_read(const char *ifname, const char *netns, netdev_info *info, const char **call);
int netdev_look(const char *ifname, const char *netns, netdev_state *state, const char **call);
int netdev_link(const char *ifname, const char *netns, bool *up, const char **call);
int netdev_mac(const char *ifname, const char *netns, bool *has, uint8_t mac[MAC_BYTES], const char **call);
// A socket to ask netdev_running() on, again and again: up and running, without waiting for anybody's lock.
int netdev_socket(const char *netns, int *fd, const char **call);
int netdev_running(int fd, const char *ifname, bool *running);
// Promiscuous from here until close. *fd must be kept open meanwhile; *restore belongs to netdev_promisc_close().
int netdev_promisc_open(const char *ifname, const char *netns, int *fd, bool *restore, const char **call);
void netdev_promisc_close(const char *ifname, int fd, bool restore);

#endif
