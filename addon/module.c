// The module: one list of exports a file.
#include "common.h"

NAPI_MODULE_INIT() {
  memory_exports(env, exports);
  thread_exports(env, exports);
  perf_exports(env, exports);
  netmap_exports(env, exports);
  netdev_exports(env, exports);
  xdp_exports(env, exports);
  return exports;
}
