// Counters of the processor, or of the kernel, for the calling thread.
#include "common.h"

#include <errno.h>

#ifdef __linux__
#include <linux/perf_event.h>
#include <math.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static void perf_fd_close(napi_env env, handle *h) {
  (void)env;
  close(h->fd);
}

// perfOpen(type, config) → handle: a counter (perf_event_open(2)) of this thread, kernel included, that runs from now
// on.
static napi_value perf_open(napi_env env, napi_callback_info info) {
  napi_value argv[2];
  uint32_t type, config;
  if (!get_args(env, info, 2, argv) || !get_u32(env, argv[0], &type, "type") ||
      !get_u32(env, argv[1], &config, "config"))
    return NULL;
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof attr);
  attr.size = sizeof attr;
  attr.type = type;
  attr.config = config;
  attr.pinned = 1; // always counting or not at all: never a part that has to be scaled up
  const int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return throw_errno(env, errno, "perf_event_open", "thread");
  int32_t id;
  handle *h = handle_new(env, HANDLE_PERF, "perf", &id);
  if (h == NULL) {
    close(fd);
    return NULL;
  }
  h->fd = fd;
  h->close = perf_fd_close;
  return make_i32(env, id);
}

// perfRead(handle) → its count; NaN when the processor had no counter to spare.
static napi_value perf_read(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  const handle *h = handle_get(env, argv[0], HANDLE_PERF);
  if (h == NULL) return NULL;
  uint64_t count;
  const ssize_t bytes = read(h->fd, &count, sizeof count);
  if (bytes < 0) return throw_errno(env, errno, "read(perf_event)", "thread");
  return make_number(env, bytes == sizeof count ? (double)count : (double)NAN);
}

// perfClose(handle)
static napi_value perf_close(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  if (!get_args(env, info, 1, argv)) return NULL;
  handle *h = handle_get(env, argv[0], HANDLE_PERF);
  if (h != NULL) handle_release(env, h);
  return NULL;
}

#else

static napi_value no_perf(napi_env env, napi_callback_info info) {
  (void)info;
  return throw_errno(env, ENOSYS, "perf_event_open", "thread");
}

#define perf_open no_perf
#define perf_read no_perf
#define perf_close no_perf

#endif

void perf_exports(napi_env env, napi_value exports) {
  const export_entry entries[] = {{"perfOpen", perf_open}, {"perfRead", perf_read}, {"perfClose", perf_close}};
  export_all(env, exports, entries, sizeof entries / sizeof entries[0]);
}
