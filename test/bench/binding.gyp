{
  "targets": [
    {
      "target_name": "forward_c",
      "sources": ["forward.c"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    }
  ]
}
