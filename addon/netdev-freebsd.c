// Interfaces on FreeBSD: netintro(4) and ifmib(4) ioctls and sysctls, getifaddrs(3).
#ifdef __FreeBSD__
#include "netdev.h"
#include "netns.h"

#include <sys/param.h>
#include <sys/types.h>

#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/sockio.h>
#include <sys/sysctl.h>
#include <sys/time.h>

#include <net/if.h>
#include <net/if_dl.h>
#include <net/if_media.h>
#include <net/if_mib.h>
#include <net/if_types.h>

#include <netinet/in.h>

#include <arpa/inet.h>

#include <errno.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int control_socket(const char *netns, int *fd, const char **call) {
  *call = netns[0] == '\0' ? "socket" : "setns";
  *fd = netns_socket(netns, AF_LOCAL, SOCK_DGRAM, 0);
  return *fd < 0 ? errno : 0;
}

static int if_ioctl(int fd, unsigned long request, const char *ifname, struct ifreq *ifr) {
  memset(ifr, 0, sizeof *ifr);
  snprintf(ifr->ifr_name, sizeof ifr->ifr_name, "%s", ifname);
  return ioctl(fd, request, ifr) == 0 ? 0 : errno;
}

// The flags are split over two 16-bit fields; IFF_PPROMISC is in the upper one.
static uint32_t if_flags(const struct ifreq *ifr) {
  return (uint32_t)(uint16_t)ifr->ifr_flags | (uint32_t)(uint16_t)ifr->ifr_flagshigh << 16;
}

// The link-level entry of getifaddrs(): MAC address and struct if_data. False where there is none.
static bool link_level(const char *ifname, bool *has_mac, uint8_t mac[MAC_BYTES], struct if_data *data) {
  struct ifaddrs *list;
  bool found = false;
  *has_mac = false;
  if (getifaddrs(&list) != 0) return false;
  for (const struct ifaddrs *i = list; i != NULL && !found; i = i->ifa_next) {
    if (i->ifa_addr == NULL || i->ifa_addr->sa_family != AF_LINK || strcmp(i->ifa_name, ifname) != 0) continue;
    const struct sockaddr_dl *address = (const struct sockaddr_dl *)(const void *)i->ifa_addr;
    *has_mac = address->sdl_alen == MAC_BYTES;
    if (*has_mac) memcpy(mac, LLADDR(address), MAC_BYTES);
    found = i->ifa_data != NULL;
    if (found) memcpy(data, i->ifa_data, sizeof *data);
  }
  freeifaddrs(list);
  return found;
}

static bool is_ethernet(uint8_t type) {
  return type == IFT_ETHER || type == IFT_L2VLAN || type == IFT_BRIDGE || type == IFT_IEEE8023ADLAG;
}

// The first IP address of the host on an interface; link-local ones, which come by themselves, aside.
static void host_address(const char *ifname, char *out, size_t size) {
  struct ifaddrs *list;
  if (getifaddrs(&list) != 0) return;
  for (const struct ifaddrs *i = list; i != NULL && out[0] == '\0'; i = i->ifa_next) {
    if (i->ifa_addr == NULL || strcmp(i->ifa_name, ifname) != 0) continue;
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)(const void *)i->ifa_addr;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)(const void *)i->ifa_addr;
    if (i->ifa_addr->sa_family == AF_INET) inet_ntop(AF_INET, &v4->sin_addr, out, (socklen_t)size);
    if (i->ifa_addr->sa_family == AF_INET6 && !IN6_IS_ADDR_LINKLOCAL(&v6->sin6_addr))
      inet_ntop(AF_INET6, &v6->sin6_addr, out, (socklen_t)size);
  }
  freeifaddrs(list);
}

// Carrier: the media's own status, or what the interface reports where it has no media (tap, vlan, epair).
static bool carrier(int fd, const char *ifname, bool up) {
  struct ifmediareq media = {0};
  snprintf(media.ifm_name, sizeof media.ifm_name, "%s", ifname);
  if (ioctl(fd, SIOCGIFMEDIA, &media) == 0 && (media.ifm_status & IFM_AVALID) != 0)
    return up && (media.ifm_status & IFM_ACTIVE) != 0;
  bool has_mac;
  uint8_t mac[MAC_BYTES];
  struct if_data data;
  if (link_level(ifname, &has_mac, mac, &data) && data.ifi_link_state == LINK_STATE_DOWN) return false;
  return up;
}

// ifmib(4): the driver's name and unit, kept when the interface is renamed ("ix0"). The unit is cut off.
static void driver_name(uint32_t index, char *out, size_t size) {
  const int mib[] = {CTL_NET, PF_LINK, NETLINK_GENERIC, IFMIB_IFDATA, (int)index, IFDATA_DRIVERNAME};
  char name[IFNAMSIZ + 1] = "";
  size_t length = sizeof name - 1;
  if (sysctl(mib, sizeof mib / sizeof mib[0], name, &length, NULL, 0) != 0) return;
  size_t end = strlen(name);
  while (end > 0 && name[end - 1] >= '0' && name[end - 1] <= '9') end--;
  name[end] = '\0';
  snprintf(out, size, "%s", name);
}

static tristate capability(int enabled, int mask) {
  return (enabled & mask) != 0 ? ON : OFF;
}

int netdev_read(const char *ifname, const char *netns, netdev_info *info, const char **call) {
  int fd;
  struct ifreq ifr;
  int error = control_socket(netns, &fd, call);
  if (error != 0) return error;
  *call = "SIOCGIFFLAGS";
  error = if_ioctl(fd, SIOCGIFFLAGS, ifname, &ifr);
  if (error == 0) {
    const uint32_t flags = if_flags(&ifr);
    info->up = (flags & IFF_UP) != 0;
    info->loopback = (flags & IFF_LOOPBACK) != 0;
    info->running = (flags & IFF_DRV_RUNNING) != 0;
    info->promisc = (flags & (IFF_PROMISC | IFF_PPROMISC)) != 0;
    info->link = carrier(fd, ifname, info->up);
    *call = "SIOCGIFMTU";
    error = if_ioctl(fd, SIOCGIFMTU, ifname, &ifr);
    info->mtu = (uint32_t)ifr.ifr_mtu;
  }
  if (error == 0) {
    info->index = if_nametoindex(ifname);
    driver_name(info->index, info->driver, sizeof info->driver);
    struct if_data data;
    if (link_level(ifname, &info->has_mac, info->mac, &data)) {
      if (data.ifi_baudrate > 0) info->speed = (int64_t)(data.ifi_baudrate / 1000000);
      info->link_type = data.ifi_type;
      info->ethernet = is_ethernet(data.ifi_type);
    }
    host_address(ifname, info->address, sizeof info->address);
    if (if_ioctl(fd, SIOCGIFCAP, ifname, &ifr) == 0) {
      const int enabled = ifr.ifr_curcap;
      info->rx_checksum = capability(enabled, IFCAP_RXCSUM | IFCAP_RXCSUM_IPV6);
      info->tx_checksum = capability(enabled, IFCAP_TXCSUM | IFCAP_TXCSUM_IPV6);
      info->tso = capability(enabled, IFCAP_TSO);
      info->lro = capability(enabled, IFCAP_LRO);
      // One capability for both directions.
      info->rx_vlan = info->tx_vlan = capability(enabled, IFCAP_VLAN_HWTAGGING);
    }
  }
  close(fd);
  return error;
}

int netdev_link(const char *ifname, const char *netns, bool *up, const char **call) {
  int fd;
  struct ifreq ifr;
  int error = control_socket(netns, &fd, call);
  if (error != 0) return error;
  *call = "SIOCGIFFLAGS";
  error = if_ioctl(fd, SIOCGIFFLAGS, ifname, &ifr);
  *up = error == 0 && carrier(fd, ifname, (if_flags(&ifr) & IFF_UP) != 0);
  close(fd);
  return error;
}

int netdev_look(const char *ifname, const char *netns, netdev_state *state, const char **call) {
  netdev_info info = {.rx_queues = -1, .tx_queues = -1};
  const int error = netdev_read(ifname, netns, &info, call);
  if (error != 0) return error;
  state->link = info.link;
  state->mtu = info.mtu;
  struct if_data data;
  if (!link_level(ifname, &info.has_mac, info.mac, &data)) return 0;
  state->rx_packets = data.ifi_ipackets;
  state->tx_packets = data.ifi_opackets;
  state->rx_errors = data.ifi_ierrors;
  state->tx_errors = data.ifi_oerrors;
  state->rx_dropped = data.ifi_iqdrops;
  state->tx_dropped = data.ifi_oqdrops;
  return 0;
}

int netdev_socket(const char *netns, int *fd, const char **call) {
  return control_socket(netns, fd, call);
}

int netdev_running(int fd, const char *ifname, bool *running) {
  struct ifreq ifr;
  const int error = if_ioctl(fd, SIOCGIFFLAGS, ifname, &ifr);
  *running = error == 0 && carrier(fd, ifname, (if_flags(&ifr) & IFF_UP) != 0);
  return error;
}

int netdev_mac(const char *ifname, const char *netns, bool *has, uint8_t mac[MAC_BYTES], const char **call) {
  int fd;
  struct ifreq ifr;
  int error = control_socket(netns, &fd, call);
  if (error != 0) return error;
  *call = "SIOCGIFFLAGS"; // tells a missing interface from one without an address
  error = if_ioctl(fd, SIOCGIFFLAGS, ifname, &ifr);
  close(fd);
  struct if_data data;
  if (error == 0) link_level(ifname, has, mac, &data);
  return error;
}

// IFF_PPROMISC is the administrator's flag (`ifconfig promisc`): one bit, not counted, so it is only taken back by
// whoever set it.
int netdev_promisc_open(const char *ifname, const char *netns, int *fd, bool *restore, const char **call) {
  struct ifreq ifr;
  int error = control_socket(netns, fd, call);
  if (error != 0) return error;
  *call = "SIOCGIFFLAGS";
  error = if_ioctl(*fd, SIOCGIFFLAGS, ifname, &ifr);
  *restore = error == 0 && (if_flags(&ifr) & IFF_PPROMISC) == 0;
  if (*restore) {
    *call = "SIOCSIFFLAGS";
    ifr.ifr_flagshigh = (short)(ifr.ifr_flagshigh | IFF_PPROMISC >> 16);
    if (ioctl(*fd, SIOCSIFFLAGS, &ifr) != 0) error = errno;
  }
  if (error != 0) close(*fd);
  return error;
}

void netdev_promisc_close(const char *ifname, int fd, bool restore) {
  struct ifreq ifr;
  if (restore && if_ioctl(fd, SIOCGIFFLAGS, ifname, &ifr) == 0) {
    ifr.ifr_flagshigh = (short)(ifr.ifr_flagshigh & ~(IFF_PPROMISC >> 16));
    ioctl(fd, SIOCSIFFLAGS, &ifr);
  }
  close(fd);
}

#else
typedef int netdev_freebsd_not_here; // a translation unit must not be empty
#endif
