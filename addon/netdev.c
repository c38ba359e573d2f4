// Network interfaces for JavaScript: what they are, whether the link is up, promiscuous mode while a port is open.
#include "netdev.h"
#include "common.h"

#include <sys/types.h>

#include <sys/socket.h>

#include <net/if.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NETNS_NAME_MAX 256

typedef struct {
  char ifname[IFNAMSIZ];
  char netns[NETNS_NAME_MAX];
} where;

static bool get_where(napi_env env, napi_callback_info info, where *w) {
  napi_value argv[2];
  return get_args(env, info, 2, argv) && get_string(env, argv[0], w->ifname, sizeof w->ifname, "ifname") &&
         get_string(env, argv[1], w->netns, sizeof w->netns, "netns");
}

// Absent values are null.
static void set_known(napi_env env, napi_value object, const char *key, int64_t value) {
  if (value < 0)
    set_null(env, object, key);
  else
    set_number(env, object, key, (double)value);
}

static void set_switch(napi_env env, napi_value object, const char *key, tristate value) {
  if (value == UNKNOWN)
    set_null(env, object, key);
  else
    set_bool(env, object, key, value == ON);
}

static void set_text(napi_env env, napi_value object, const char *key, const char *value) {
  if (value[0] == '\0')
    set_null(env, object, key);
  else
    set_string(env, object, key, value);
}

static napi_value make_object(napi_env env) {
  napi_value object = NULL;
  napi_create_object(env, &object);
  return object;
}

static napi_value make_mac(napi_env env, bool has, const uint8_t *mac) {
  napi_value value = NULL;
  char text[18];
  snprintf(text, sizeof text, "%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]);
  if (has)
    napi_create_string_utf8(env, text, NAPI_AUTO_LENGTH, &value);
  else
    napi_get_null(env, &value);
  return value;
}

// netdevInfo(ifname, netns) → {index, mtu, flags, link, ethernet, loopback, linkType, kind, address, master, mac,
// driver, busInfo, speed, rxQueues, txQueues, rings, coalesce, offloads}; what the driver does not tell is null.
static napi_value netdev_info_get(napi_env env, napi_callback_info callback) {
  where w;
  if (!get_where(env, callback, &w)) return NULL;
  netdev_info i = {.speed = -1, .rx_queues = -1, .tx_queues = -1, .rx_max = -1, .rx_usecs = -1};
  i.adaptive_rx = i.rx_checksum = i.tx_checksum = i.tso = i.gso = i.gro = i.lro = i.rx_vlan = i.tx_vlan = UNKNOWN;
  const char *call;
  const int error = netdev_read(w.ifname, w.netns, &i, &call);
  if (error != 0) return throw_errno(env, error, call, w.ifname);

  napi_value result = make_object(env), flags = make_object(env), offloads = make_object(env);
  set_number(env, result, "index", i.index);
  set_number(env, result, "mtu", i.mtu);
  set_bool(env, flags, "up", i.up);
  set_bool(env, flags, "running", i.running);
  set_bool(env, flags, "promisc", i.promisc);
  set_value(env, result, "flags", flags);
  set_string(env, result, "link", i.link ? "up" : "down");
  set_bool(env, result, "ethernet", i.ethernet);
  set_bool(env, result, "loopback", i.loopback);
  set_number(env, result, "linkType", i.link_type);
  set_text(env, result, "kind", i.kind);
  set_text(env, result, "address", i.address);
  if (i.master[0] == '\0') {
    set_null(env, result, "master");
  } else {
    napi_value master = make_object(env);
    set_string(env, master, "name", i.master);
    set_text(env, master, "kind", i.master_kind);
    set_value(env, result, "master", master);
  }
  set_value(env, result, "mac", make_mac(env, i.has_mac, i.mac));
  set_text(env, result, "driver", i.driver);
  set_text(env, result, "busInfo", i.bus);
  set_known(env, result, "speed", i.speed);
  set_known(env, result, "rxQueues", i.rx_queues);
  set_known(env, result, "txQueues", i.tx_queues);
  if (i.rx_max < 0) {
    set_null(env, result, "rings");
  } else {
    napi_value rings = make_object(env);
    set_known(env, rings, "rxMax", i.rx_max);
    set_known(env, rings, "rx", i.rx);
    set_known(env, rings, "txMax", i.tx_max);
    set_known(env, rings, "tx", i.tx);
    set_value(env, result, "rings", rings);
  }
  if (i.rx_usecs < 0) {
    set_null(env, result, "coalesce");
  } else {
    napi_value coalesce = make_object(env);
    set_known(env, coalesce, "rxUsecs", i.rx_usecs);
    set_known(env, coalesce, "txUsecs", i.tx_usecs);
    set_switch(env, coalesce, "adaptiveRx", i.adaptive_rx);
    set_value(env, result, "coalesce", coalesce);
  }
  set_switch(env, offloads, "rxChecksum", i.rx_checksum);
  set_switch(env, offloads, "txChecksum", i.tx_checksum);
  set_switch(env, offloads, "tso", i.tso);
  set_switch(env, offloads, "gso", i.gso);
  set_switch(env, offloads, "gro", i.gro);
  set_switch(env, offloads, "lro", i.lro);
  set_switch(env, offloads, "rxVlan", i.rx_vlan);
  set_switch(env, offloads, "txVlan", i.tx_vlan);
  set_value(env, result, "offloads", offloads);
  return result;
}

// netdevLook(ifname, netns, out): link, mtu, queues and counters in the order of netdev_state.
static napi_value netdev_look_get(napi_env env, napi_callback_info info) {
  napi_value argv[3];
  where w;
  double *out;
  if (!get_args(env, info, 3, argv) || !get_string(env, argv[0], w.ifname, sizeof w.ifname, "ifname") ||
      !get_string(env, argv[1], w.netns, sizeof w.netns, "netns") || !get_f64_array(env, argv[2], 11, &out, "out"))
    return NULL;
  netdev_state s = {.rx_queues = -1, .tx_queues = -1};
  const char *call;
  const int error = netdev_look(w.ifname, w.netns, &s, &call);
  if (error != 0) return throw_errno(env, error, call, w.ifname);
  const double values[] = {s.link,
                           s.mtu,
                           (double)s.rx_queues,
                           (double)s.tx_queues,
                           (double)s.rx_packets,
                           (double)s.tx_packets,
                           (double)s.rx_errors,
                           (double)s.tx_errors,
                           (double)s.rx_dropped,
                           (double)s.tx_dropped,
                           (double)s.rx_missed};
  memcpy(out, values, sizeof values);
  return NULL;
}

static void netdev_socket_closer(napi_env env, handle *h) {
  (void)env;
  close(h->fd);
}

// netdevOpen(ifname, netns) → handle for netdevRunning()
static napi_value netdev_open(napi_env env, napi_callback_info info) {
  where w;
  int fd;
  const char *call;
  if (!get_where(env, info, &w)) return NULL;
  const int error = netdev_socket(w.netns, &fd, &call);
  if (error != 0) return throw_errno(env, error, call, w.ifname);
  int32_t id;
  handle *h = handle_new(env, HANDLE_SOCKET, w.ifname, &id);
  if (h == NULL) {
    close(fd);
    return NULL;
  }
  h->fd = fd;
  h->close = netdev_socket_closer;
  return make_i32(env, id);
}

// netdevRunning(handle) → 1 up and running, 0 not, or −errno. It is called while frames are sent, so nothing is thrown.
static napi_value netdev_running_get(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  bool running;
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_SOCKET);
  if (h == NULL) return NULL;
  const int error = netdev_running(h->fd, h->name, &running);
  return make_i32(env, error != 0 ? -error : running);
}

// netdevLink(ifname, netns) → up and with carrier
static napi_value netdev_link_get(napi_env env, napi_callback_info info) {
  where w;
  bool up = false;
  const char *call;
  if (!get_where(env, info, &w)) return NULL;
  const int error = netdev_link(w.ifname, w.netns, &up, &call);
  if (error != 0) return throw_errno(env, error, call, w.ifname);
  napi_value result = NULL;
  napi_get_boolean(env, up, &result);
  return result;
}

// netdevMac(ifname, netns) → "02:00:00:00:00:01", or null where the interface has no Ethernet address
static napi_value netdev_mac_get(napi_env env, napi_callback_info info) {
  where w;
  bool has = false;
  uint8_t mac[MAC_BYTES] = {0};
  const char *call;
  if (!get_where(env, info, &w)) return NULL;
  const int error = netdev_mac(w.ifname, w.netns, &has, mac, &call);
  if (error != 0) return throw_errno(env, error, call, w.ifname);
  return make_mac(env, has, mac);
}

static void promisc_close(napi_env env, handle *h) {
  (void)env;
  bool *restore = h->state;
  netdev_promisc_close(h->name, h->fd, *restore);
  free(restore);
}

// netdevPromiscOpen(ifname, netns) → handle; the interface takes every frame until it is closed.
static napi_value promisc_open(napi_env env, napi_callback_info info) {
  where w;
  int fd;
  const char *call;
  if (!get_where(env, info, &w)) return NULL;
  bool *restore = malloc(sizeof *restore);
  if (restore == NULL) return throw_errno(env, ENOMEM, "malloc", w.ifname);
  const int error = netdev_promisc_open(w.ifname, w.netns, &fd, restore, &call);
  if (error != 0) {
    free(restore);
    return throw_errno(env, error, call, w.ifname);
  }
  int32_t id;
  handle *h = handle_new(env, HANDLE_SOCKET, w.ifname, &id);
  if (h == NULL) {
    netdev_promisc_close(w.ifname, fd, *restore);
    free(restore);
    return NULL;
  }
  h->fd = fd;
  h->state = restore;
  h->close = promisc_close;
  return make_i32(env, id);
}

// netdevClose(handle): of netdevOpen() or netdevPromiscOpen()
static napi_value netdev_close(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_SOCKET);
  if (h != NULL) handle_release(env, h);
  return NULL;
}

void netdev_exports(napi_env env, napi_value exports) {
  const export_entry entries[] = {
      {"netdevInfo", netdev_info_get},     {"netdevLink", netdev_link_get},       {"netdevMac", netdev_mac_get},
      {"netdevPromiscOpen", promisc_open}, {"netdevPromiscClose", netdev_close},  {"netdevLook", netdev_look_get},
      {"netdevOpen", netdev_open},         {"netdevRunning", netdev_running_get}, {"netdevClose", netdev_close}};
  export_all(env, exports, entries, sizeof entries / sizeof entries[0]);
}
