// AF_XDP sockets and the BPF objects that steer frames into them. System calls only: which rings, which program,
// which mode and what to do about an error is decided in TypeScript.
#include "common.h"
#include "netns.h"

#include <errno.h>

#ifdef __linux__
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/if_xdp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef AF_XDP
#define AF_XDP 44
#endif
#ifndef SOL_XDP
#define SOL_XDP 283
#endif

#define RINGS 4

typedef struct {
  mapping *rings[RINGS];
} xdp_socket;

static void xdp_close(napi_env env, handle *h) {
  xdp_socket *s = h->state;
  // The socket first: from then on the kernel touches neither rings nor buffers.
  close(h->fd);
  for (size_t i = 0; i < RINGS; i++)
    if (s->rings[i] != NULL) mapping_close(env, s->rings[i]);
  free(s);
}

// {handle, fd}: the descriptor is for poll().
static napi_value handle_result(napi_env env, int32_t id, int fd) {
  napi_value result;
  napi_create_object(env, &result);
  set_value(env, result, "handle", make_i32(env, id));
  set_value(env, result, "fd", make_i32(env, fd));
  return result;
}

// xdpSocket(port, netns) → {handle, fd}
static napi_value xdp_socket_open(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  char port[PORT_NAME_MAX], netns[PORT_NAME_MAX];
  if (!get_args(env, info, 2, argv) || !get_string(env, argv[0], port, sizeof port, "port") ||
      !get_string(env, argv[1], netns, sizeof netns, "netns"))
    return NULL;
  int fd = netns_socket(netns, AF_XDP, SOCK_RAW, 0);
  if (fd < 0) return throw_errno(env, errno, "socket(AF_XDP)", port);
  int32_t id;
  handle *h = NULL;
  xdp_socket *s = calloc(1, sizeof *s);
  if (s == NULL)
    throw_errno(env, ENOMEM, "socket(AF_XDP)", port);
  else
    h = handle_new(env, HANDLE_XDP, port, &id);
  if (h == NULL) {
    free(s);
    close(fd);
    return NULL;
  }
  h->fd = fd;
  h->state = s;
  h->close = xdp_close;
  return handle_result(env, id, fd);
}

// xdpClose(handle): the kernel lets the buffers go, then the rings' ArrayBuffers are detached.
static napi_value xdp_socket_close(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h != NULL) handle_release(env, h);
  return NULL;
}

// xdpUmem(handle, memory, offset, bytes, frameSize): registers that range of the memory as this socket's UMEM.
static napi_value xdp_umem(napi_env env, napi_callback_info info) {
  napi_value argv[5];
  int64_t offset, bytes;
  uint32_t frame;
  if (!get_args(env, info, 5, argv) || !get_i64(env, argv[2], &offset, "offset") ||
      !get_i64(env, argv[3], &bytes, "bytes") || !get_u32(env, argv[4], &frame, "frameSize"))
    return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  handle *memory = h == NULL ? NULL : handle_get(env, argv[1], HANDLE_MEMORY);
  if (memory == NULL) return NULL;
  const size_t size = mapping_bytes(memory->state);
  if (offset < 0 || bytes <= 0 || (uint64_t)bytes > size || (uint64_t)offset > size - (uint64_t)bytes)
    return throw_argument(env, "bytes: a range outside the memory");
  struct xdp_umem_reg reg;
  memset(&reg, 0, sizeof reg);
  reg.addr = (uint64_t)(uintptr_t)(mapping_address(memory->state) + offset);
  reg.len = (uint64_t)bytes;
  reg.chunk_size = frame;
  if (setsockopt(h->fd, SOL_XDP, XDP_UMEM_REG, &reg, sizeof reg) != 0)
    return throw_errno(env, errno, "XDP_UMEM_REG", h->name);
  return NULL;
}

static const struct {
  const char *name;
  int option;
  uint64_t page;
  size_t entry;
} ring_kinds[RINGS] = {
    {"fill", XDP_UMEM_FILL_RING, XDP_UMEM_PGOFF_FILL_RING, sizeof(uint64_t)},
    {"completion", XDP_UMEM_COMPLETION_RING, XDP_UMEM_PGOFF_COMPLETION_RING, sizeof(uint64_t)},
    {"rx", XDP_RX_RING, XDP_PGOFF_RX_RING, sizeof(struct xdp_desc)},
    {"tx", XDP_TX_RING, XDP_PGOFF_TX_RING, sizeof(struct xdp_desc)},
};

static napi_value ring_map(napi_env env, handle *h, size_t kind, const struct xdp_ring_offset *at, uint32_t entries) {
  xdp_socket *s = h->state;
  const size_t bytes = (size_t)at->desc + entries * ring_kinds[kind].entry;
  void *address =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, h->fd, (off_t)ring_kinds[kind].page);
  if (address == MAP_FAILED) return throw_errno(env, errno, "mmap(AF_XDP ring)", h->name);
  napi_value buffer, ring;
  s->rings[kind] = mapping_new(env, address, bytes, &buffer);
  if (s->rings[kind] == NULL) return NULL;
  napi_create_object(env, &ring);
  set_value(env, ring, "buffer", buffer);
  set_number(env, ring, "entries", entries);
  set_number(env, ring, "producer", (double)at->producer);
  set_number(env, ring, "consumer", (double)at->consumer);
  set_number(env, ring, "flags", (double)at->flags);
  set_number(env, ring, "desc", (double)at->desc);
  return ring;
}

// xdpRings(handle, fill, completion, rx, tx) → {fill, completion, rx, tx}, each {buffer, entries, producer, consumer,
// flags, desc}: entries as asked (powers of two), the rest byte offsets into the buffer.
static napi_value xdp_rings(napi_env env, napi_callback_info info) {
  napi_value argv[5];
  uint32_t entries[RINGS];
  if (!get_args(env, info, 5, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h == NULL) return NULL;
  const xdp_socket *s = h->state;
  if (s->rings[0] != NULL) return throw_errno(env, EBUSY, "xdpRings", h->name);
  for (size_t i = 0; i < RINGS; i++) {
    if (!get_u32(env, argv[i + 1], &entries[i], ring_kinds[i].name)) return NULL;
    if (setsockopt(h->fd, SOL_XDP, ring_kinds[i].option, &entries[i], sizeof entries[i]) != 0)
      return throw_errno(env, errno, "setsockopt(AF_XDP ring)", h->name);
  }
  struct xdp_mmap_offsets at;
  socklen_t size = sizeof at;
  if (getsockopt(h->fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &size) != 0)
    return throw_errno(env, errno, "XDP_MMAP_OFFSETS", h->name);
  if (size != sizeof at) return throw_errno(env, ENOSYS, "XDP_MMAP_OFFSETS", h->name); // before Linux 5.4
  const struct xdp_ring_offset *each[RINGS] = {&at.fr, &at.cr, &at.rx, &at.tx};
  napi_value result;
  napi_create_object(env, &result);
  for (size_t i = 0; i < RINGS; i++) {
    napi_value ring = ring_map(env, h, i, each[i], entries[i]);
    if (ring == NULL) return NULL;
    set_value(env, result, ring_kinds[i].name, ring);
  }
  return result;
}

// xdpBind(handle, ifindex, queue, flags, shared): `shared` is the handle of the socket whose UMEM is used too, or -1.
static napi_value xdp_bind(napi_env env, napi_callback_info info) {
  napi_value argv[5];
  uint32_t ifindex, queue, flags;
  int32_t shared;
  if (!get_args(env, info, 5, argv) || !get_u32(env, argv[1], &ifindex, "ifindex") ||
      !get_u32(env, argv[2], &queue, "queue") || !get_u32(env, argv[3], &flags, "flags") ||
      !get_i32(env, argv[4], &shared, "shared"))
    return NULL;
  if (flags > UINT16_MAX) return throw_argument(env, "flags: expected 16 bits");
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h == NULL) return NULL;
  struct sockaddr_xdp address;
  memset(&address, 0, sizeof address);
  address.sxdp_family = AF_XDP;
  address.sxdp_flags = (uint16_t)flags;
  address.sxdp_ifindex = ifindex;
  address.sxdp_queue_id = queue;
  if (shared >= 0) {
    handle *owner = handle_get(env, argv[4], HANDLE_XDP);
    if (owner == NULL) return NULL;
    address.sxdp_shared_umem_fd = (uint32_t)owner->fd;
  }
  if (bind(h->fd, (const struct sockaddr *)&address, sizeof address) != 0)
    return throw_errno(env, errno, "bind(AF_XDP)", h->name);
  return NULL;
}

// xdpOptions(handle) → XDP_OPTIONS' flags: bit 0 is zero-copy.
static napi_value xdp_options(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h == NULL) return NULL;
  struct xdp_options options;
  socklen_t size = sizeof options;
  if (getsockopt(h->fd, SOL_XDP, XDP_OPTIONS, &options, &size) != 0)
    return throw_errno(env, errno, "XDP_OPTIONS", h->name);
  return make_number(env, options.flags);
}

// xdpStatistics(handle, out): rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full, rx_fill_ring_empty_descs
// and tx_ring_empty_descs into a Float64Array of six.
static napi_value xdp_statistics(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  double *out;
  if (!get_args(env, info, 2, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h == NULL || !get_f64_array(env, argv[1], 6, &out, "out")) return NULL;
  struct xdp_statistics st;
  memset(&st, 0, sizeof st); // kernels before 5.9 fill in three
  socklen_t size = sizeof st;
  if (getsockopt(h->fd, SOL_XDP, XDP_STATISTICS, &st, &size) != 0)
    return throw_errno(env, errno, "XDP_STATISTICS", h->name);
  out[0] = (double)st.rx_dropped;
  out[1] = (double)st.rx_invalid_descs;
  out[2] = (double)st.tx_invalid_descs;
  out[3] = (double)st.rx_ring_full;
  out[4] = (double)st.rx_fill_ring_empty_descs;
  out[5] = (double)st.tx_ring_empty_descs;
  return NULL;
}

// xdpSetOption(handle, level, option, value) → 0 or errno: socket options that hold one int.
static napi_value xdp_set_option(napi_env env, napi_callback_info info) {
  napi_value argv[4];
  int32_t level, option, value;
  if (!get_args(env, info, 4, argv) || !get_i32(env, argv[1], &level, "level") ||
      !get_i32(env, argv[2], &option, "option") || !get_i32(env, argv[3], &value, "value"))
    return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h == NULL) return NULL;
  return make_i32(env, setsockopt(h->fd, level, option, &value, sizeof value) == 0 ? 0 : errno);
}

// xdpWakeRx(handle) and xdpWakeTx(handle) → 0 or errno. They are called in the forwarding loop, where "try again"
// and "link down" are ordinary answers, so nothing is thrown for them.
static napi_value xdp_wake_rx(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h == NULL) return NULL;
  return make_i32(env, recvfrom(h->fd, NULL, 0, MSG_DONTWAIT, NULL, NULL) >= 0 ? 0 : errno);
}

static napi_value xdp_wake_tx(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_XDP);
  if (h == NULL) return NULL;
  return make_i32(env, sendto(h->fd, NULL, 0, MSG_DONTWAIT, NULL, 0) >= 0 ? 0 : errno);
}

// raiseMemlock() → bytes this process may lock, after raising its soft limit to the hard one; -1 without limit.
static napi_value raise_memlock(napi_env env, napi_callback_info info) {
  (void)info;
  struct rlimit limit;
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return throw_errno(env, errno, "getrlimit", "memory");
  limit.rlim_cur = limit.rlim_max;
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) return throw_errno(env, errno, "setrlimit", "memory");
  return make_number(env, limit.rlim_max == RLIM_INFINITY ? -1 : (double)limit.rlim_max);
}

static long bpf(int command, void *attr, size_t size) {
  return syscall(SYS_bpf, command, attr, size);
}

static void bpf_object_close(napi_env env, handle *h) {
  (void)env;
  close(h->fd);
}

static napi_value bpf_result(napi_env env, const char *port, int fd) {
  int32_t id;
  handle *h = handle_new(env, HANDLE_BPF, port, &id);
  if (h == NULL) {
    close(fd);
    return NULL;
  }
  h->fd = fd;
  h->close = bpf_object_close;
  return handle_result(env, id, fd);
}

// bpfXskMap(port, entries) → {handle, fd}: a map from queue to AF_XDP socket.
static napi_value bpf_xsk_map(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  char port[PORT_NAME_MAX];
  uint32_t entries;
  if (!get_args(env, info, 2, argv) || !get_string(env, argv[0], port, sizeof port, "port") ||
      !get_u32(env, argv[1], &entries, "entries"))
    return NULL;
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.map_type = BPF_MAP_TYPE_XSKMAP;
  attr.key_size = attr.value_size = sizeof(int);
  attr.max_entries = entries;
  int fd = (int)bpf(BPF_MAP_CREATE, &attr, sizeof attr);
  if (fd < 0) return throw_errno(env, errno, "bpf(BPF_MAP_CREATE)", port);
  return bpf_result(env, port, fd);
}

// bpfDup(port, fd) → {handle, fd}: this environment's own descriptor of an object that another thread has open.
static napi_value bpf_dup(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  char port[PORT_NAME_MAX];
  uint32_t from;
  if (!get_args(env, info, 2, argv) || !get_string(env, argv[0], port, sizeof port, "port") ||
      !get_u32(env, argv[1], &from, "fd"))
    return NULL;
  int fd = fcntl((int)from, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return throw_errno(env, errno, "fcntl(F_DUPFD_CLOEXEC)", port);
  return bpf_result(env, port, fd);
}

// bpfMapSet(map, queue, socket): frames of that queue go to that socket.
static napi_value bpf_map_set(napi_env env, napi_callback_info info) {
  napi_value argv[3];
  uint32_t queue;
  if (!get_args(env, info, 3, argv) || !get_u32(env, argv[1], &queue, "queue")) return NULL;
  handle *map = handle_get(env, argv[0], HANDLE_BPF);
  handle *h = map == NULL ? NULL : handle_get(env, argv[2], HANDLE_XDP);
  if (h == NULL) return NULL;
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.map_fd = (uint32_t)map->fd;
  attr.key = (uint64_t)(uintptr_t)&queue;
  attr.value = (uint64_t)(uintptr_t)&h->fd;
  if (bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof attr) != 0)
    return throw_errno(env, errno, "bpf(BPF_MAP_UPDATE_ELEM)", h->name);
  return NULL;
}

#define ATTACH_XDP 37 // BPF_XDP, an enumerator that headers before Linux 5.9 lack

// bpfXdpProgram(port, instructions, flags) → {handle, fd}: loads eBPF instructions, two words each.
static napi_value bpf_xdp_program(napi_env env, napi_callback_info info) {
  napi_value argv[3];
  char port[PORT_NAME_MAX];
  int32_t *words;
  size_t count;
  uint32_t flags;
  if (!get_args(env, info, 3, argv) || !get_string(env, argv[0], port, sizeof port, "port") ||
      !get_i32_array(env, argv[1], &words, &count, "instructions") || !get_u32(env, argv[2], &flags, "flags"))
    return NULL;
  union bpf_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.prog_type = BPF_PROG_TYPE_XDP;
  attr.insn_cnt = (uint32_t)(count * sizeof *words / sizeof(struct bpf_insn));
  attr.insns = (uint64_t)(uintptr_t)words;
  attr.license = (uint64_t)(uintptr_t) "BSD";
  attr.prog_flags = flags;
  attr.expected_attach_type = ATTACH_XDP;
  memcpy(attr.prog_name, "netmap_bridge", sizeof "netmap_bridge");
  int fd = (int)bpf(BPF_PROG_LOAD, &attr, sizeof attr);
  if (fd < 0) return throw_errno(env, errno, "bpf(BPF_PROG_LOAD)", port);
  return bpf_result(env, port, fd);
}

// bpfXdpLink(port, program, ifindex, flags, netns) → {handle, fd}: attaches until the handle is closed or the process
// ends, whichever comes first. Linux 5.9; its command and attributes are declared here for older headers.
static napi_value bpf_xdp_link(napi_env env, napi_callback_info info) {
  enum { LINK_CREATE = 28 };
  struct {
    uint32_t prog_fd, target_ifindex, attach_type, flags;
  } attr;
  napi_value argv[5];
  char port[PORT_NAME_MAX], netns[PORT_NAME_MAX];
  if (!get_args(env, info, 5, argv) || !get_string(env, argv[0], port, sizeof port, "port") ||
      !get_u32(env, argv[2], &attr.target_ifindex, "ifindex") || !get_u32(env, argv[3], &attr.flags, "flags") ||
      !get_string(env, argv[4], netns, sizeof netns, "netns"))
    return NULL;
  handle *program = handle_get(env, argv[1], HANDLE_BPF);
  if (program == NULL) return NULL;
  attr.prog_fd = (uint32_t)program->fd;
  attr.attach_type = ATTACH_XDP;
  int saved;
  int error = netns_enter(netns, &saved); // an interface index means something in its own namespace only
  if (error != 0) return throw_errno(env, error, "setns", port);
  int fd = (int)bpf(LINK_CREATE, &attr, sizeof attr);
  error = errno;
  netns_leave(saved);
  if (fd < 0) return throw_errno(env, error, "bpf(BPF_LINK_CREATE)", port);
  return bpf_result(env, port, fd);
}

// bpfLinkUpdate(link, program): the program takes the place of the link's, between two frames. Linux 5.9, as above.
static napi_value bpf_link_update(napi_env env, napi_callback_info info) {
  enum { LINK_UPDATE = 29 };
  struct {
    uint32_t link_fd, new_prog_fd, flags, old_prog_fd;
  } attr = {.flags = 0};
  napi_value argv[2];
  if (!get_args(env, info, 2, argv)) return NULL;
  handle *link = handle_get(env, argv[0], HANDLE_BPF);
  handle *program = link == NULL ? NULL : handle_get(env, argv[1], HANDLE_BPF);
  if (program == NULL) return NULL;
  attr.link_fd = (uint32_t)link->fd;
  attr.new_prog_fd = (uint32_t)program->fd;
  if (bpf(LINK_UPDATE, &attr, sizeof attr) != 0) return throw_errno(env, errno, "bpf(BPF_LINK_UPDATE)", link->name);
  return NULL;
}

// bpfClose(handle): a map, a program or a link.
static napi_value bpf_close(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_BPF);
  if (h != NULL) handle_release(env, h);
  return NULL;
}

#define ENTRY(name, call)                                                                                              \
  { name, call }

#else

static napi_value no_xdp(napi_env env, napi_callback_info info) {
  (void)info;
  return throw_errno(env, ENOSYS, "socket(AF_XDP)", "xdp");
}

#define ENTRY(name, call)                                                                                              \
  { name, no_xdp }

#endif

void xdp_exports(napi_env env, napi_value exports) {
  const export_entry entries[] = {
      ENTRY("xdpSocket", xdp_socket_open),
      ENTRY("xdpClose", xdp_socket_close),
      ENTRY("xdpUmem", xdp_umem),
      ENTRY("xdpRings", xdp_rings),
      ENTRY("xdpBind", xdp_bind),
      ENTRY("xdpOptions", xdp_options),
      ENTRY("xdpStatistics", xdp_statistics),
      ENTRY("xdpSetOption", xdp_set_option),
      ENTRY("xdpWakeRx", xdp_wake_rx),
      ENTRY("xdpWakeTx", xdp_wake_tx),
      ENTRY("raiseMemlock", raise_memlock),
      ENTRY("bpfXskMap", bpf_xsk_map),
      ENTRY("bpfDup", bpf_dup),
      ENTRY("bpfMapSet", bpf_map_set),
      ENTRY("bpfXdpProgram", bpf_xdp_program),
      ENTRY("bpfXdpLink", bpf_xdp_link),
      ENTRY("bpfLinkUpdate", bpf_link_update),
      ENTRY("bpfClose", bpf_close),
  };
  export_all(env, exports, entries, sizeof entries / sizeof entries[0]);
}
