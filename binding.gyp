{
  "variables": { "werror%": "<!(node -p \"process.env.CI ? '-Werror' : ''\")" },
  "target_defaults": { "default_configuration": "Release" },
  "targets": [
    {
      "target_name": "netmap_bridge",
      "sources": [
        "addon/module.c", "addon/handle.c", "addon/memory.c", "addon/thread.c", "addon/perf.c", "addon/netmap.c",
        "addon/netmap_check.c", "addon/xdp.c", "addon/netns.c", "addon/netdev.c", "addon/netdev-linux.c", "addon/netdev-freebsd.c"
      ],
      "defines": ["NAPI_VERSION=8"],
      "cflags": ["-std=c11", "-O2", "-Wall", "-Wextra", "-Wpedantic", "-fvisibility=hidden", "<(werror)"],
      "conditions": [["OS=='linux'", { "defines": ["_GNU_SOURCE"] }]]
    }
  ]
}
