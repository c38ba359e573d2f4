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
  bool has_mac;
  uint8_t mac[MAC_BYTES];
  char driver[33], bus[33];       // "" where the system does not say
  int64_t speed;                  // Mbit/s, -1 unknown
  int64_t rx_queues, tx_queues;   // -1 unknown
  int64_t rx_max, rx, tx_max, tx; // descriptors, -1 unknown
  int64_t rx_usecs, tx_usecs;     // interrupt moderation in µs, -1 unknown
  tristate adaptive_rx;
  tristate rx_checksum, tx_checksum, tso, gso, gro, lro, rx_vlan, tx_vlan;
} netdev_info;

// Each returns 0 or a positive errno, with the call that failed in *call. `netns` is "" or a namespace's name.
int netdev_read(const char *ifname, const char *netns, netdev_info *info, const char **call);
int netdev_link(const char *ifname, const char *netns, bool *up, const char **call);
int netdev_mac(const char *ifname, const char *netns, bool *has, uint8_t mac[MAC_BYTES], const char **call);
// Promiscuous from here until close. *fd must be kept open meanwhile; *restore belongs to netdev_promisc_close().
int netdev_promisc_open(const char *ifname, const char *netns, int *fd, bool *restore, const char **call);
void netdev_promisc_close(const char *ifname, int fd, bool restore);

#endif
