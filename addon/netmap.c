#include "common.h"

void netmap_exports(napi_env env, napi_value exports) {
  (void)env;
  (void)exports;
}
