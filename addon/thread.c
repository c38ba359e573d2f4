// The thread that forwards: its CPU, its clock, its waiting.
#include "common.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#ifdef __FreeBSD__
#include <sys/param.h>

#include <sys/cpuset.h> // after param.h: cpuset(2)
#endif

// readClock(): CLOCK_MONOTONIC in nanoseconds into the exported `clock` (an ArrayBuffer of one double). Storing
// instead of returning allocates nothing, and the address comes with the function: looking a typed array up on
// every call took 90 ns of 150. 2^53 ns is 104 days of uptime to the nanosecond, and to 2 ns for 104 more.
static napi_value read_clock(napi_env env, napi_callback_info info) {
  void *data = NULL;
  napi_get_cb_info(env, info, NULL, NULL, NULL, &data);
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  *(double *)data = (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
  return NULL;
}

static void clock_release(napi_env env, void *data, void *hint) {
  (void)env;
  (void)hint;
  free(data);
}

static void clock_export(napi_env env, napi_value exports) {
  double *clock = calloc(1, sizeof *clock);
  napi_value buffer, function;
  napi_ref keep; // strong: the buffer lives as long as the function may be called
  if (clock == NULL) return;
  if (napi_create_external_arraybuffer(env, clock, sizeof *clock, clock_release, NULL, &buffer) != napi_ok ||
      napi_create_reference(env, buffer, 1, &keep) != napi_ok ||
      napi_create_function(env, "readClock", NAPI_AUTO_LENGTH, read_clock, clock, &function) != napi_ok)
    return;
  set_value(env, exports, "clock", buffer);
  set_value(env, exports, "readClock", function);
}

// sleepNs(ns): this thread alone; ends early on a signal.
static napi_value sleep_ns(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  int64_t ns;
  if (!get_args(env, info, 1, argv) || !get_i64(env, argv[0], &ns, "ns")) return NULL;
  if (ns <= 0) return NULL;
  const struct timespec ts = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  nanosleep(&ts, NULL);
  return NULL;
}

// yieldCpu(): lets another thread that is ready have this CPU.
static napi_value yield_cpu(napi_env env, napi_callback_info info) {
  (void)env;
  (void)info;
  sched_yield();
  return NULL;
}

// pin(cpu): this thread runs on that CPU only.
static napi_value pin(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  int32_t cpu;
  if (!get_args(env, info, 1, argv) || !get_i32(env, argv[0], &cpu, "cpu")) return NULL;
  int error = ENOSYS;
#ifdef __linux__
  if (cpu < 0 || cpu >= CPU_SETSIZE) return throw_errno(env, EINVAL, "sched_setaffinity", "cpu");
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  error = sched_setaffinity(0, sizeof set, &set) == 0 ? 0 : errno;
#elif defined(__FreeBSD__)
  if (cpu < 0 || cpu >= CPU_SETSIZE) return throw_errno(env, EINVAL, "cpuset_setaffinity", "cpu");
  cpuset_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  error = cpuset_setaffinity(CPU_LEVEL_WHICH, CPU_WHICH_TID, -1, sizeof set, &set) == 0 ? 0 : errno;
#endif
  return error == 0 ? NULL : throw_errno(env, error, "sched_setaffinity", "cpu");
}

// threadUsage(out): this thread's user and system CPU time in nanoseconds into out[0] and out[1]; voluntary and
// involuntary context switches into out[2] and out[3].
static napi_value thread_usage(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  double *out;
  if (!get_args(env, info, 1, argv) || !get_f64_array(env, argv[0], 4, &out, "out")) return NULL;
  struct rusage usage;
  if (getrusage(RUSAGE_THREAD, &usage) != 0) return throw_errno(env, errno, "getrusage", "thread");
  out[0] = (double)usage.ru_utime.tv_sec * 1e9 + (double)usage.ru_utime.tv_usec * 1e3;
  out[1] = (double)usage.ru_stime.tv_sec * 1e9 + (double)usage.ru_stime.tv_usec * 1e3;
  out[2] = (double)usage.ru_nvcsw;
  out[3] = (double)usage.ru_nivcsw;
  return NULL;
}

_Static_assert(sizeof(struct pollfd) == 8 && offsetof(struct pollfd, events) == 4 &&
                   offsetof(struct pollfd, revents) == 6,
               "two words for each descriptor");

// Waits at most timeout ms, fractions of which count; forever below 0. Throws and returns -1 when that fails.
static int wait_ready(napi_env env, struct pollfd *list, size_t count, double timeout) {
  struct timespec ts, *limit = NULL;
  if (timeout >= 0 && timeout < 1e12) {
    const int64_t ns = (int64_t)(timeout * 1e6);
    ts = (struct timespec){.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
    limit = &ts;
  }
  const int ready = ppoll(list, (nfds_t)count, limit, NULL);
  if (ready >= 0 || errno == EINTR) return ready < 0 ? 0 : ready;
  throw_errno(env, errno, "ppoll", "wait");
  return -1;
}

// poll(list, count, timeoutMs) → descriptors ready. list holds count times struct pollfd in two words: fd, and events |
// revents << 16.
static napi_value poll_fds(napi_env env, napi_callback_info info) {
  napi_value argv[3];
  int32_t *list, count;
  size_t words;
  double timeout;
  if (!get_args(env, info, 3, argv) || !get_i32_array(env, argv[0], &list, &words, "list") ||
      !get_i32(env, argv[1], &count, "count"))
    return NULL;
  if (napi_get_value_double(env, argv[2], &timeout) != napi_ok)
    return throw_argument(env, "timeoutMs: expected a number");
  if (count < 0 || (size_t)count * 2 > words) return throw_argument(env, "count: longer than the list");
  const int ready = wait_ready(env, (struct pollfd *)(void *)list, (size_t)count, timeout);
  return ready < 0 ? NULL : make_i32(env, ready);
}

// What a poller has bound: the list, which is kept.
typedef struct {
  struct pollfd *list;
  size_t count;
  napi_ref array;
} poller;

static void poller_free(napi_env env, void *data, void *hint) {
  (void)hint;
  poller *p = data;
  if (p->array != NULL) napi_delete_reference(env, p->array);
  free(p);
}

// The function of a poller: (timeoutMs) → descriptors ready.
static napi_value poller_run(napi_env env, napi_callback_info info) {
  napi_value argv[1];
  size_t argc = 1;
  void *data = NULL;
  double timeout;
  if (napi_get_cb_info(env, info, &argc, argv, NULL, &data) != napi_ok || argc < 1 ||
      napi_get_value_double(env, argv[0], &timeout) != napi_ok)
    return throw_argument(env, "timeoutMs: expected a number");
  const poller *p = data;
  const int ready = wait_ready(env, p->list, p->count, timeout);
  return ready < 0 ? NULL : make_i32(env, ready);
}

// poller(list) → (timeoutMs) => descriptors ready of all in the list, which is as poll() takes it.
static napi_value make_poller(napi_env env, napi_callback_info info) {
  napi_value argv[1], function;
  int32_t *list;
  size_t words;
  if (!get_args(env, info, 1, argv) || !get_i32_array(env, argv[0], &list, &words, "list")) return NULL;
  poller *p = calloc(1, sizeof *p);
  if (p == NULL) return throw_errno(env, ENOMEM, "malloc", "poller");
  *p = (poller){.list = (struct pollfd *)(void *)list, .count = words / 2};
  if (napi_create_function(env, "poll", NAPI_AUTO_LENGTH, poller_run, p, &function) == napi_ok &&
      napi_create_reference(env, argv[0], 1, &p->array) == napi_ok &&
      napi_add_finalizer(env, function, p, poller_free, NULL, NULL) == napi_ok)
    return function;
  poller_free(env, p, NULL);
  return NULL;
}

void thread_exports(napi_env env, napi_value exports) {
  const export_entry entries[] = {{"sleepNs", sleep_ns},         {"yieldCpu", yield_cpu}, {"pin", pin},
                                  {"threadUsage", thread_usage}, {"poll", poll_fds},      {"poller", make_poller}};
  clock_export(env, exports);
  export_all(env, exports, entries, sizeof entries / sizeof entries[0]);
}
