{
  "targets": [
    {
      "target_name": "loops",
      "sources": ["loops.c"],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    }
  ]
}
