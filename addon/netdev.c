#include "common.h"

void netdev_exports(napi_env env, napi_value exports) {
  (void)env;
  (void)exports;
}
