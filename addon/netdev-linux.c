// Interfaces on Linux: interface ioctls, ethtool's ioctls, rtnetlink, a packet socket.
#ifdef __linux__
#include "netdev.h"
#include "netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int control_socket(const char *netns, int *fd, const char **call) {
  *call = netns[0] == '\0' ? "socket" : "setns";
  *fd = netns_socket(netns, AF_INET, SOCK_DGRAM, 0);
  return *fd < 0 ? errno : 0;
}

static int if_ioctl(int fd, unsigned long request, const char *ifname, struct ifreq *ifr) {
  memset(ifr, 0, sizeof *ifr);
  snprintf(ifr->ifr_name, sizeof ifr->ifr_name, "%s", ifname);
  return ioctl(fd, request, ifr) == 0 ? 0 : errno;
}

// One ethtool command. False where the driver does not have it: none of them is needed to bridge.
static bool ethtool(int fd, const char *ifname, void *command) {
  struct ifreq ifr = {.ifr_data = command};
  snprintf(ifr.ifr_name, sizeof ifr.ifr_name, "%s", ifname);
  return ioctl(fd, SIOCETHTOOL, &ifr) == 0;
}

static tristate ethtool_switch(int fd, const char *ifname, uint32_t command) {
  struct ethtool_value value = {.cmd = command};
  if (!ethtool(fd, ifname, &value)) return UNKNOWN;
  return value.data != 0 ? ON : OFF;
}

// Queues in use, where the driver tells them.
static void read_channels(int fd, const char *ifname, netdev_info *info) {
  struct ethtool_channels channels = {.cmd = ETHTOOL_GCHANNELS};
  if (!ethtool(fd, ifname, &channels) || channels.combined_count + channels.rx_count + channels.tx_count == 0) return;
  info->rx_queues = (int64_t)channels.combined_count + channels.rx_count;
  info->tx_queues = (int64_t)channels.combined_count + channels.tx_count;
}

static void read_ethtool(int fd, const char *ifname, netdev_info *info) {
  struct ethtool_drvinfo driver = {.cmd = ETHTOOL_GDRVINFO};
  if (ethtool(fd, ifname, &driver)) {
    snprintf(info->driver, sizeof info->driver, "%.32s", driver.driver);
    snprintf(info->bus, sizeof info->bus, "%.32s", driver.bus_info);
  }
  // The older command: the kernel answers it for every driver, and needs no second round for the mode masks.
  struct ethtool_cmd settings = {.cmd = ETHTOOL_GSET};
  if (ethtool(fd, ifname, &settings) && ethtool_cmd_speed(&settings) != (uint32_t)SPEED_UNKNOWN)
    info->speed = ethtool_cmd_speed(&settings);

  read_channels(fd, ifname, info);
  struct ethtool_ringparam rings = {.cmd = ETHTOOL_GRINGPARAM};
  if (ethtool(fd, ifname, &rings)) {
    info->rx_max = rings.rx_max_pending;
    info->rx = rings.rx_pending;
    info->tx_max = rings.tx_max_pending;
    info->tx = rings.tx_pending;
  }
  struct ethtool_coalesce coalesce = {.cmd = ETHTOOL_GCOALESCE};
  if (ethtool(fd, ifname, &coalesce)) {
    info->rx_usecs = coalesce.rx_coalesce_usecs;
    info->tx_usecs = coalesce.tx_coalesce_usecs;
    info->adaptive_rx = coalesce.use_adaptive_rx_coalesce != 0 ? ON : OFF;
  }
  info->rx_checksum = ethtool_switch(fd, ifname, ETHTOOL_GRXCSUM);
  info->tx_checksum = ethtool_switch(fd, ifname, ETHTOOL_GTXCSUM);
  info->tso = ethtool_switch(fd, ifname, ETHTOOL_GTSO);
  info->gso = ethtool_switch(fd, ifname, ETHTOOL_GGSO);
  info->gro = ethtool_switch(fd, ifname, ETHTOOL_GGRO);
  struct ethtool_value flags = {.cmd = ETHTOOL_GFLAGS};
  if (ethtool(fd, ifname, &flags)) {
    info->lro = (flags.data & ETH_FLAG_LRO) != 0 ? ON : OFF;
    info->rx_vlan = (flags.data & ETH_FLAG_RXVLAN) != 0 ? ON : OFF;
    info->tx_vlan = (flags.data & ETH_FLAG_TXVLAN) != 0 ? ON : OFF;
  }
}

// What RTM_GETLINK tells.
struct link {
  netdev_info info;
  uint32_t master; // index, 0: none
  struct rtnl_link_stats64 counters;
};

// Text of an attribute, cut to what fits.
static void copy_text(char *out, size_t size, const struct rtattr *a) {
  snprintf(out, size, "%.*s", (int)RTA_PAYLOAD(a), (const char *)RTA_DATA(a));
}

// What a virtual interface is, and what it is a member of: both are named by the kernel's link modules.
static void read_link_kinds(const struct rtattr *info_attribute, netdev_info *info) {
  int left = (int)RTA_PAYLOAD(info_attribute);
  for (const struct rtattr *a = RTA_DATA(info_attribute); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
    if (a->rta_type == IFLA_INFO_KIND) copy_text(info->kind, sizeof info->kind, a);
    if (a->rta_type == IFLA_INFO_SLAVE_KIND) copy_text(info->master_kind, sizeof info->master_kind, a);
  }
}

static void read_link_message(const struct nlmsghdr *message, void *out) {
  struct link *read = out;
  netdev_info *info = &read->info;
  const struct ifinfomsg *link = NLMSG_DATA(message);
  info->link_type = link->ifi_type;
  info->ethernet = link->ifi_type == ARPHRD_ETHER || link->ifi_type == ARPHRD_LOOPBACK;
  info->loopback = (link->ifi_flags & IFF_LOOPBACK) != 0;
  info->up = (link->ifi_flags & IFF_UP) != 0;
  info->running = (link->ifi_flags & IFF_RUNNING) != 0;
  info->link = info->up && info->running; // where the driver does not tell its carrier
  int left = (int)IFLA_PAYLOAD(message);
  for (const struct rtattr *a = IFLA_RTA(link); RTA_OK(a, left); a = RTA_NEXT(a, left)) {
    const size_t bytes = RTA_PAYLOAD(a);
    uint32_t word = 0;
    if (bytes >= sizeof word) memcpy(&word, RTA_DATA(a), sizeof word);
    switch (a->rta_type) {
    case IFLA_MTU:
      info->mtu = word;
      break;
    case IFLA_PROMISCUITY:
      info->promisc = word > 0;
      break; // the flag of SIOCGIFFLAGS leaves memberships out
    case IFLA_NUM_RX_QUEUES:
      info->rx_queues = word;
      break;
    case IFLA_NUM_TX_QUEUES:
      info->tx_queues = word;
      break;
    case IFLA_CARRIER:
      if (bytes == 1) info->link = info->up && *(const uint8_t *)RTA_DATA(a) != 0;
      break;
    case IFLA_ADDRESS:
      info->has_mac = bytes == MAC_BYTES;
      if (info->has_mac) memcpy(info->mac, RTA_DATA(a), MAC_BYTES);
      break;
    case IFLA_MASTER:
      read->master = word;
      break;
    case IFLA_LINKINFO:
      read_link_kinds(a, info);
      break;
    case IFLA_STATS64: // not aligned to 64 bits; older kernels send less of it
      memcpy(&read->counters, RTA_DATA(a), bytes < sizeof read->counters ? bytes : sizeof read->counters);
      break;
    default:
      break;
    }
  }
}

// One question to rtnetlink(7), a message of `type` about an interface; `take` gets each message of the answer.
static int ask_rtnetlink(int fd, uint16_t type, uint16_t flags, const void *body, size_t size,
                         void (*take)(const struct nlmsghdr *, void *), void *out) {
  struct {
    struct nlmsghdr header;
    uint8_t body[sizeof(struct ifinfomsg)];
  } request = {
      .header = {.nlmsg_len = (uint32_t)NLMSG_LENGTH(size), .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags}};
  memcpy(request.body, body, size);
  if (send(fd, &request, request.header.nlmsg_len, 0) < 0) return errno;
  for (;;) {
    _Alignas(struct nlmsghdr) char reply[32768];
    const ssize_t got = recv(fd, reply, sizeof reply, 0);
    if (got < 0) return errno;
    size_t left = (size_t)got;
    const struct nlmsghdr *message = (const struct nlmsghdr *)reply;
    if (!NLMSG_OK(message, left)) return EIO;
    for (; NLMSG_OK(message, left); message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_ERROR) return -((const struct nlmsgerr *)NLMSG_DATA(message))->error;
      if (message->nlmsg_type == NLMSG_DONE) return 0;
      take(message, out);
    }
    if ((flags & NLM_F_DUMP) == 0) return 0;
  }
}

static int read_link(int fd, uint32_t index, struct link *out) {
  const struct ifinfomsg about = {.ifi_family = AF_UNSPEC, .ifi_index = (int)index};
  return ask_rtnetlink(fd, RTM_GETLINK, 0, &about, sizeof about, read_link_message, out);
}

// Keeps the first address that is more than link-local, which every interface with IPv6 has.
static void read_address_message(const struct nlmsghdr *message, void *out) {
  netdev_info *info = out;
  const struct ifaddrmsg *address = NLMSG_DATA(message);
  if (address->ifa_index != info->index || address->ifa_scope == RT_SCOPE_LINK || info->address[0] != '\0') return;
  int left = (int)IFA_PAYLOAD(message);
  const struct rtattr *found = NULL;
  for (const struct rtattr *a = IFA_RTA(address); RTA_OK(a, left); a = RTA_NEXT(a, left))
    if (a->rta_type == IFA_LOCAL || (a->rta_type == IFA_ADDRESS && found == NULL)) found = a;
  if (found != NULL) inet_ntop(address->ifa_family, RTA_DATA(found), info->address, sizeof info->address);
}

static int read_rtnetlink(const char *netns, netdev_info *info, const char **call) {
  *call = "RTM_GETLINK";
  int fd = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (fd < 0) return errno;
  struct link link = {.info = *info};
  int error = read_link(fd, info->index, &link);
  *info = link.info;
  if (error == 0) {
    *call = "RTM_GETADDR";
    const struct ifaddrmsg all = {.ifa_family = AF_UNSPEC};
    error = ask_rtnetlink(fd, RTM_GETADDR, NLM_F_DUMP, &all, sizeof all, read_address_message, info);
  }
  struct ifreq ifr = {.ifr_ifindex = (int)link.master};
  if (error == 0 && link.master != 0 && ioctl(fd, SIOCGIFNAME, &ifr) == 0)
    snprintf(info->master, sizeof info->master, "%s", ifr.ifr_name);
  close(fd);
  return error;
}

int netdev_read(const char *ifname, const char *netns, netdev_info *info, const char **call) {
  int fd;
  struct ifreq ifr;
  int error = control_socket(netns, &fd, call);
  if (error != 0) return error;
  *call = "SIOCGIFINDEX";
  error = if_ioctl(fd, SIOCGIFINDEX, ifname, &ifr);
  if (error == 0) {
    info->index = (uint32_t)ifr.ifr_ifindex;
    error = read_rtnetlink(netns, info, call);
  }
  if (error == 0) read_ethtool(fd, ifname, info); // after rtnetlink: channels in use replace queues allocated
  close(fd);
  return error;
}

// The carrier itself (ETHTOOL_GLINK): IFF_RUNNING follows it up to a second later, when the kernel's link watch runs.
int netdev_link(const char *ifname, const char *netns, bool *up, const char **call) {
  int fd;
  struct ifreq ifr;
  int error = control_socket(netns, &fd, call);
  if (error != 0) return error;
  *call = "SIOCGIFFLAGS";
  error = if_ioctl(fd, SIOCGIFFLAGS, ifname, &ifr);
  const tristate carrier = error == 0 ? ethtool_switch(fd, ifname, ETHTOOL_GLINK) : UNKNOWN;
  close(fd);
  *up = (ifr.ifr_flags & IFF_UP) != 0 && (carrier == UNKNOWN ? (ifr.ifr_flags & IFF_RUNNING) != 0 : carrier == ON);
  return error;
}

int netdev_look(const char *ifname, const char *netns, netdev_state *state, const char **call) {
  struct ifreq ifr;
  *call = netns[0] == '\0' ? "socket" : "setns";
  int fd = netns_socket(netns, AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (fd < 0) return errno;
  *call = "SIOCGIFINDEX";
  int error = if_ioctl(fd, SIOCGIFINDEX, ifname, &ifr);
  struct link link = {.master = 0};
  if (error == 0) {
    *call = "RTM_GETLINK";
    error = read_link(fd, (uint32_t)ifr.ifr_ifindex, &link);
  }
  if (error == 0) read_channels(fd, ifname, &link.info);
  close(fd);
  state->link = link.info.link;
  state->mtu = link.info.mtu;
  state->rx_queues = link.info.rx_queues;
  state->tx_queues = link.info.tx_queues;
  state->rx_packets = link.counters.rx_packets;
  state->tx_packets = link.counters.tx_packets;
  state->rx_errors = link.counters.rx_errors;
  state->tx_errors = link.counters.tx_errors;
  state->rx_dropped = link.counters.rx_dropped;
  state->tx_dropped = link.counters.tx_dropped;
  state->rx_missed = link.counters.rx_missed_errors;
  return error;
}

int netdev_socket(const char *netns, int *fd, const char **call) {
  return control_socket(netns, fd, call);
}

int netdev_running(int fd, const char *ifname, bool *running) {
  struct ifreq ifr;
  const int error = if_ioctl(fd, SIOCGIFFLAGS, ifname, &ifr);
  *running = error == 0 && (ifr.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
  return error;
}

int netdev_mac(const char *ifname, const char *netns, bool *has, uint8_t mac[MAC_BYTES], const char **call) {
  int fd;
  struct ifreq ifr;
  int error = control_socket(netns, &fd, call);
  if (error != 0) return error;
  *call = "SIOCGIFHWADDR";
  error = if_ioctl(fd, SIOCGIFHWADDR, ifname, &ifr);
  close(fd);
  *has = error == 0 && (ifr.ifr_hwaddr.sa_family == ARPHRD_ETHER || ifr.ifr_hwaddr.sa_family == ARPHRD_LOOPBACK);
  memcpy(mac, ifr.ifr_hwaddr.sa_data, MAC_BYTES);
  return error;
}

// A packet socket's membership: counted by the kernel, and taken back when the socket goes, however the process ends.
int netdev_promisc_open(const char *ifname, const char *netns, int *fd, bool *restore, const char **call) {
  *restore = false;
  *call = netns[0] == '\0' ? "socket" : "setns";
  *fd = netns_socket(netns, AF_PACKET, SOCK_RAW, 0); // protocol 0: it never receives a frame
  if (*fd < 0) return errno;
  struct ifreq ifr;
  *call = "SIOCGIFINDEX";
  int error = if_ioctl(*fd, SIOCGIFINDEX, ifname, &ifr);
  if (error == 0) {
    *call = "PACKET_ADD_MEMBERSHIP";
    const struct packet_mreq membership = {.mr_ifindex = ifr.ifr_ifindex, .mr_type = PACKET_MR_PROMISC};
    if (setsockopt(*fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership, sizeof membership) != 0) error = errno;
  }
  if (error != 0) close(*fd);
  return error;
}

void netdev_promisc_close(const char *ifname, int fd, bool restore) {
  (void)ifname;
  (void)restore;
  close(fd);
}

#else
typedef int netdev_linux_not_here; // a translation unit must not be empty
#endif
