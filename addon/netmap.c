// netmap ports: register with /dev/netmap, map its memory, sync its rings.
#include "common.h"
#include "netmap_abi.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct {
  nm_register body;
  char name[NM_NAME_MAX];
  bool extmem, offsets;
  char file[PATH_MAX]; // of extmem
  nm_option_extmem extmem_option;
  nm_option_offsets offsets_option;
  void *address; // what mmap() gave, of `bytes`
  size_t bytes;
} request;

static uint64_t address_of(const void *pointer) {
  return (uint64_t)(uintptr_t)pointer;
}

// --- The request object ---

// A property that is absent reads as 0, which asks the kernel for its own choice. False when something was thrown, by
// a getter too.
static bool get_member(napi_env env, napi_value object, const char *key, int64_t max, uint64_t *out) {
  napi_value value;
  napi_valuetype type;
  int64_t number;
  *out = 0;
  if (napi_get_named_property(env, object, key, &value) != napi_ok || napi_typeof(env, value, &type) != napi_ok)
    return false;
  if (type == napi_undefined) return true;
  if (!get_i64(env, value, &number, key)) return false;
  if (number < 0 || number > max) {
    char text[80];
    snprintf(text, sizeof text, "%s: expected 0 to %lld", key, (long long)max);
    throw_argument(env, text);
    return false;
  }
  *out = (uint64_t)number;
  return true;
}

static bool get_u16_member(napi_env env, napi_value object, const char *key, uint16_t *out) {
  uint64_t value;
  if (!get_member(env, object, key, UINT16_MAX, &value)) return false;
  *out = (uint16_t)value;
  return true;
}

static bool get_u32_member(napi_env env, napi_value object, const char *key, uint32_t *out) {
  uint64_t value;
  if (!get_member(env, object, key, UINT32_MAX, &value)) return false;
  *out = (uint32_t)value;
  return true;
}

static bool is_object(napi_env env, napi_value value) {
  napi_valuetype type;
  return napi_typeof(env, value, &type) == napi_ok && type == napi_object;
}

// A property that is an object of its own; *has is false where there is none. False when a getter threw.
static bool get_object(napi_env env, napi_value object, const char *key, napi_value *out, bool *has) {
  if (napi_get_named_property(env, object, key, out) != napi_ok) return false;
  *has = is_object(env, *out);
  return true;
}

static bool get_offsets(napi_env env, napi_value object, request *r) {
  napi_value value;
  if (!get_object(env, object, "offsets", &value, &r->offsets)) return false;
  nm_option_offsets *o = &r->offsets_option;
  return !r->offsets ||
         (get_member(env, value, "max", INT64_MAX, &o->max) &&
          get_member(env, value, "initial", INT64_MAX, &o->initial) && get_u32_member(env, value, "bits", &o->bits));
}

static bool get_extmem(napi_env env, napi_value object, request *r) {
  napi_value value, file;
  if (!get_object(env, object, "extmem", &value, &r->extmem)) return false;
  nm_pools *p = &r->extmem_option.pools;
  return !r->extmem ||
         (napi_get_named_property(env, value, "file", &file) == napi_ok &&
          get_string(env, file, r->file, sizeof r->file, "file") && get_u32_member(env, value, "ifNum", &p->if_count) &&
          get_u32_member(env, value, "ifSize", &p->if_bytes) && get_u32_member(env, value, "ringNum", &p->ring_count) &&
          get_u32_member(env, value, "ringSize", &p->ring_bytes) &&
          get_u32_member(env, value, "bufNum", &p->buffer_count) &&
          get_u32_member(env, value, "bufSize", &p->buffer_bytes));
}

static bool get_request(napi_env env, napi_value object, request *r) {
  napi_value value;
  if (!is_object(env, object)) {
    throw_argument(env, "request: expected an object");
    return false;
  }
  if (napi_get_named_property(env, object, "name", &value) != napi_ok ||
      !get_string(env, value, r->name, sizeof r->name, "name"))
    return false;
  nm_register *b = &r->body;
  return get_u32_member(env, object, "mode", &b->mode) && get_u16_member(env, object, "ringId", &b->ring_id) &&
         get_member(env, object, "flags", INT64_MAX, &b->flags) && get_u16_member(env, object, "memId", &b->mem_id) &&
         get_u32_member(env, object, "extraBufs", &b->extra_buffers) &&
         get_u32_member(env, object, "txSlots", &b->tx_slots) && get_u32_member(env, object, "rxSlots", &b->rx_slots) &&
         get_u16_member(env, object, "txRings", &b->tx_rings) && get_u16_member(env, object, "rxRings", &b->rx_rings) &&
         get_u16_member(env, object, "hostTxRings", &b->host_tx_rings) &&
         get_u16_member(env, object, "hostRxRings", &b->host_rx_rings) && get_offsets(env, object, r) &&
         get_extmem(env, object, r);
}

// --- Opening, step by step; each returns 0 or an errno and names the call that failed ---

// The caller's own memory: netmap lays its pools into this mapping, and it is the region too.
static int map_extmem(request *r, const char **call) {
  *call = "open extmem";
  int fd = open(r->file, O_RDWR | O_CLOEXEC);
  if (fd < 0) return errno;
  struct stat st;
  int error = fstat(fd, &st) != 0 ? errno : st.st_size <= 0 ? EINVAL : 0;
  if (error == 0) {
    *call = "mmap extmem";
    r->bytes = (size_t)st.st_size;
    r->address = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (r->address == MAP_FAILED) error = errno;
  }
  close(fd);
  return error;
}

static int register_port(int fd, request *r, const char **call) {
  nm_header header = {.version = NM_API, .type = NM_REGISTER, .body = address_of(&r->body)};
  memcpy(header.name, r->name, sizeof header.name);
  nm_option *const extmem = &r->extmem_option.option, *const offsets = &r->offsets_option.option;
  if (r->offsets) {
    offsets->type = NM_OPTION_OFFSETS;
    header.options = address_of(offsets);
  }
  if (r->extmem) {
    extmem->type = NM_OPTION_EXTMEM;
    r->extmem_option.address = address_of(r->address);
    r->extmem_option.pools.memsize = r->bytes;
    extmem->next = header.options;
    header.options = address_of(extmem);
  }
  *call = "NIOCCTRL REGISTER";
  const int error = ioctl(fd, NM_CTRL, &header) == 0 ? 0 : errno;
  // An option carries its own verdict. One the kernel never came to keeps "not supported", so after a failure only
  // the option that says the same as the call is the cause.
  if (extmem->status != 0 && (error == 0 || error == (int)extmem->status)) {
    *call = "NIOCCTRL REGISTER option extmem";
    return (int)extmem->status;
  }
  if (offsets->status != 0 && (error == 0 || error == (int)offsets->status)) {
    *call = "NIOCCTRL REGISTER option offsets";
    return (int)offsets->status;
  }
  return error;
}

static int open_port(int *fd, request *r, const char **call) {
  int error = 0;
  if (r->extmem) error = map_extmem(r, call);
  if (error != 0) return error;
  *call = "open " NM_DEVICE;
  *fd = open(NM_DEVICE, O_RDWR | O_CLOEXEC);
  error = *fd < 0 ? errno : register_port(*fd, r, call);
  if (error == 0 && !r->extmem) {
    *call = "mmap";
    r->bytes = (size_t)r->body.memsize;
    r->address = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
    if (r->address == MAP_FAILED) error = errno;
  }
  if (error == 0) return 0;
  if (r->extmem) munmap(r->address, r->bytes);
  if (*fd >= 0) close(*fd);
  return error;
}

// The mapping first: a mapping that is left keeps the port open in the kernel, whatever is closed.
static void port_close(napi_env env, handle *h) {
  if (h->state != NULL) mapping_close(env, h->state);
  if (h->fd >= 0) close(h->fd);
}

// netmapOpen(request) → what the kernel granted, and the mapped memory. Every step is undone when a later one fails.
static napi_value netmap_open(napi_env env, napi_callback_info info) {
  napi_value argv[1], buffer;
  request r = {.address = MAP_FAILED};
  if (!get_args(env, info, 1, argv) || !get_request(env, argv[0], &r)) return NULL;
  int fd = -1;
  const char *call = NULL;
  const int error = open_port(&fd, &r, &call);
  if (error != 0) return throw_errno(env, error, call, r.name);
  mapping *m = mapping_new(env, r.address, r.bytes, &buffer);
  int32_t id;
  handle *h = m == NULL ? NULL : handle_new(env, HANDLE_NETMAP, r.name, &id);
  if (h == NULL) {
    if (m != NULL) mapping_close(env, m);
    close(fd);
    return NULL;
  }
  h->fd = fd;
  h->state = m;
  h->close = port_close;

  napi_value result;
  napi_create_object(env, &result);
  set_number(env, result, "handle", id);
  set_number(env, result, "fd", fd);
  set_value(env, result, "buffer", buffer);
  set_number(env, result, "offset", (double)r.body.offset);
  set_number(env, result, "memsize", (double)r.body.memsize);
  set_number(env, result, "txSlots", r.body.tx_slots);
  set_number(env, result, "rxSlots", r.body.rx_slots);
  set_number(env, result, "txRings", r.body.tx_rings);
  set_number(env, result, "rxRings", r.body.rx_rings);
  set_number(env, result, "hostTxRings", r.body.host_tx_rings);
  set_number(env, result, "hostRxRings", r.body.host_rx_rings);
  set_number(env, result, "memId", r.body.mem_id);
  set_number(env, result, "ringId", r.body.ring_id);
  set_number(env, result, "extraBufs", r.body.extra_buffers);
  set_number(env, result, "maxOffset", (double)r.offsets_option.max);
  return result;
}

// netmapPortInfo(name, memId): the port's geometry without opening it; name "" asks for the memory only.
static napi_value netmap_port_info(napi_env env, napi_callback_info info) {
  napi_value argv[2], result;
  uint32_t mem_id;
  nm_port_info body = {0};
  nm_header header = {.version = NM_API, .type = NM_PORT_INFO, .body = address_of(&body)};
  if (!get_args(env, info, 2, argv) || !get_string(env, argv[0], header.name, sizeof header.name, "name") ||
      !get_u32(env, argv[1], &mem_id, "memId"))
    return NULL;
  if (mem_id > UINT16_MAX) return throw_argument(env, "memId: expected 0 to 65535");
  body.mem_id = (uint16_t)mem_id;
  const int fd = open(NM_DEVICE, O_RDWR | O_CLOEXEC);
  if (fd < 0) return throw_errno(env, errno, "open " NM_DEVICE, header.name);
  const int error = ioctl(fd, NM_CTRL, &header) == 0 ? 0 : errno;
  close(fd);
  if (error != 0) return throw_errno(env, error, "NIOCCTRL PORT_INFO_GET", header.name);
  napi_create_object(env, &result);
  set_number(env, result, "memsize", (double)body.memsize);
  set_number(env, result, "txSlots", body.tx_slots);
  set_number(env, result, "rxSlots", body.rx_slots);
  set_number(env, result, "txRings", body.tx_rings);
  set_number(env, result, "rxRings", body.rx_rings);
  set_number(env, result, "hostTxRings", body.host_tx_rings);
  set_number(env, result, "hostRxRings", body.host_rx_rings);
  set_number(env, result, "memId", body.mem_id);
  return result;
}

// The hot path: an errno is returned, never thrown, and nothing is allocated.
static napi_value sync_port(napi_env env, napi_callback_info info, unsigned long call) {
  napi_value argv[1];
  size_t count = 1;
  if (napi_get_cb_info(env, info, &count, argv, NULL, NULL) != napi_ok) return make_i32(env, EINVAL);
  const handle *h = handle_find(env, argv[0], HANDLE_NETMAP);
  if (h == NULL) return make_i32(env, EBADF);
  return make_i32(env, ioctl(h->fd, call, NULL) == 0 ? 0 : errno);
}

// netmapTxsync(handle) → 0 or a positive errno
static napi_value netmap_txsync(napi_env env, napi_callback_info info) {
  return sync_port(env, info, NM_TXSYNC);
}

// netmapRxsync(handle) → 0 or a positive errno
static napi_value netmap_rxsync(napi_env env, napi_callback_info info) {
  return sync_port(env, info, NM_RXSYNC);
}

// netmapClose(handle): detach, unmap, close.
static napi_value netmap_close(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_NETMAP);
  if (h != NULL) handle_release(env, h);
  return NULL;
}

// netmapAvailable() → 0, or the errno of opening the device (ENOENT no module, ENXIO no driver, EACCES not root)
static napi_value netmap_available(napi_env env, napi_callback_info info) {
  (void)info;
  const int fd = open(NM_DEVICE, O_RDWR | O_CLOEXEC);
  if (fd < 0) return make_i32(env, errno);
  close(fd);
  return make_i32(env, 0);
}

void netmap_exports(napi_env env, napi_value exports) {
  const export_entry entries[] = {{"netmapOpen", netmap_open},     {"netmapPortInfo", netmap_port_info},
                                  {"netmapTxsync", netmap_txsync}, {"netmapRxsync", netmap_rxsync},
                                  {"netmapClose", netmap_close},   {"netmapAvailable", netmap_available}};
  export_all(env, exports, entries, sizeof entries / sizeof entries[0]);
}
