#include "common.h"

void xdp_exports(napi_env env, napi_value exports) {
  (void)env;
  (void)exports;
}
