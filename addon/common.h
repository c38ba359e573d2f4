// What every part of the shim shares: handles, checked arguments, errors that name call and port.
#ifndef NETMAP_BRIDGE_COMMON_H
#define NETMAP_BRIDGE_COMMON_H

#include <node_api.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PORT_NAME_MAX 128

// A handle is a small integer that JavaScript keeps; it indexes this environment's table.
// The upper bits count reuses, so that a stale handle is refused with EBADF instead of meaning another port.
typedef enum {
  HANDLE_FREE = 0,
  HANDLE_NETMAP,
  HANDLE_MEMORY,
  HANDLE_XDP,
  HANDLE_SOCKET,
  HANDLE_LOCK,
  HANDLE_BPF,
  HANDLE_PERF
} handle_kind;

typedef struct handle {
  handle_kind kind;
  uint32_t generation;
  int fd; // -1 where there is none
  char name[PORT_NAME_MAX];
  void *state;                              // the kind's own, freed by its closer
  void (*close)(napi_env, struct handle *); // releases fd and state; called once
} handle;

handle *handle_new(napi_env env, handle_kind kind, const char *name, int32_t *id); // NULL: thrown
handle *handle_find(napi_env env, napi_value value, handle_kind kind);             // NULL: stale, nothing thrown
handle *handle_get(napi_env env, napi_value value, handle_kind kind);              // NULL: thrown EBADF
void handle_release(napi_env env, handle *h);                                      // closes and frees the entry

// Throws an Error with code ("ENXIO"), errno, syscall and port; always returns NULL.
napi_value throw_errno(napi_env env, int error, const char *syscall, const char *port);
// Throws a TypeError with code EINVAL; always returns NULL.
napi_value throw_argument(napi_env env, const char *message);

// Arguments. Each returns false after throwing.
bool get_args(napi_env env, napi_callback_info info, size_t count, napi_value *argv);
bool get_string(napi_env env, napi_value value, char *out, size_t size, const char *what);
bool get_i32(napi_env env, napi_value value, int32_t *out, const char *what);
bool get_u32(napi_env env, napi_value value, uint32_t *out, const char *what);
bool get_i64(napi_env env, napi_value value, int64_t *out, const char *what);
bool get_bool(napi_env env, napi_value value, bool *out, const char *what);
// A typed array's memory; `words` and `bytes` may be NULL. Refuses a detached or too short one.
bool get_i32_array(napi_env env, napi_value value, int32_t **out, size_t *words, const char *what);
bool get_f64_array(napi_env env, napi_value value, size_t least, double **out, const char *what);

// Results.
napi_value make_i32(napi_env env, int32_t value);
napi_value make_number(napi_env env, double value);
void set_number(napi_env env, napi_value object, const char *key, double value);
void set_string(napi_env env, napi_value object, const char *key, const char *value);
void set_bool(napi_env env, napi_value object, const char *key, bool value);
void set_null(napi_env env, napi_value object, const char *key);
void set_value(napi_env env, napi_value object, const char *key, napi_value value);

// Memory that JavaScript sees as an external ArrayBuffer. Closing detaches the buffer, then puts empty pages of the
// process's own over the mapping: the file or device behind it is let go at once, and an address somebody still
// holds reads zeros instead of faulting. The address range itself is returned when V8 lets the buffer go.
typedef struct mapping mapping;
mapping *mapping_new(napi_env env, void *address, size_t bytes, napi_value *buffer); // NULL: thrown, memory unmapped
void mapping_close(napi_env env, mapping *m);
uint8_t *mapping_address(const mapping *m);
size_t mapping_bytes(const mapping *m);

// Each part adds its functions to the exports.
typedef struct {
  const char *name;
  napi_callback call;
} export_entry;
void export_all(napi_env env, napi_value exports, const export_entry *entries, size_t count);
void memory_exports(napi_env env, napi_value exports);
void thread_exports(napi_env env, napi_value exports);
void perf_exports(napi_env env, napi_value exports);
void netmap_exports(napi_env env, napi_value exports);
void netdev_exports(napi_env env, napi_value exports);
void xdp_exports(napi_env env, napi_value exports);

#endif
