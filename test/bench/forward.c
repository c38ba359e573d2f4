// What lib/forward/forward.ts is measured against: the same work on the same memory as a plain C loop over netmap's structs,
// compiled -O2. Built for the benchmark only.
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>

struct slot {
  uint32_t buf_idx;
  uint16_t len, flags;
  uint64_t ptr;
};

struct ring {
  int64_t buf_ofs;
  uint32_t num_slots, buf_size;
  uint16_t ringid, dir;
  uint32_t head, cur, tail, flags;
  uint8_t rest[256 - 36];
  struct slot slots[];
};
_Static_assert(offsetof(struct ring, slots) == 256 && sizeof(struct slot) == 16, "netmap's layout");

#define BUF_CHANGED 0x0001
#define MOREFRAG 0x0020

struct counters {
  double frames, bytes, slots, batches;
};

static uint32_t space(const struct ring *r) {
  const int32_t n = (int32_t)r->tail - (int32_t)r->head;
  return (uint32_t)(n < 0 ? n + (int32_t)r->num_slots : n);
}

static uint32_t next(const struct ring *r, uint32_t i) { return i + 1 == r->num_slots ? 0 : i + 1; }

// Not inlined into the timed loop, as a bridge would call it.
__attribute__((noinline)) static uint32_t forward(struct ring *rx, struct ring *tx, uint32_t burst, uint32_t buffers,
                                                  struct counters *c) {
  uint32_t n = burst, moved = 0, r = rx->head, t = tx->head;
  if (space(rx) < n) n = space(rx);
  if (space(tx) < n) n = space(tx);
  const uint32_t buf_size = rx->buf_size;
  uint64_t bytes = 0, frames = 0;
  for (; moved < n; moved++) {
    struct slot *rs = &rx->slots[r], *ts = &tx->slots[t];
    const uint32_t idx = rs->buf_idx;
    if (idx - 2 >= buffers || rs->len - 1u >= buf_size) break;
    const uint32_t spare = ts->buf_idx;
    ts->buf_idx = idx;
    ts->len = rs->len;
    ts->flags = (uint16_t)((rs->flags & MOREFRAG) | BUF_CHANGED);
    rs->buf_idx = spare;
    rs->flags |= BUF_CHANGED;
    bytes += rs->len;
    frames += (rs->flags & MOREFRAG) == 0;
    r = next(rx, r);
    t = next(tx, t);
  }
  rx->head = rx->cur = r;
  tx->head = tx->cur = t;
  c->frames += (double)frames;
  c->bytes += (double)bytes;
  c->slots += moved;
  c->batches++;
  return moved;
}

// run(words, rxWord, txWord, burst, buffers, turns): each turn shows `burst` frames and room for them, and forwards.
static napi_value run(napi_env env, napi_callback_info info) {
  napi_value argv[6];
  size_t count = 6, length;
  void *data;
  int32_t rx_word, tx_word, burst, buffers, turns;
  if (napi_get_cb_info(env, info, &count, argv, NULL, NULL) != napi_ok || count < 6 ||
      napi_get_typedarray_info(env, argv[0], NULL, &length, &data, NULL, NULL) != napi_ok ||
      napi_get_value_int32(env, argv[1], &rx_word) != napi_ok ||
      napi_get_value_int32(env, argv[2], &tx_word) != napi_ok || napi_get_value_int32(env, argv[3], &burst) != napi_ok ||
      napi_get_value_int32(env, argv[4], &buffers) != napi_ok || napi_get_value_int32(env, argv[5], &turns) != napi_ok)
    return NULL;
  struct ring *rx = (struct ring *)((int32_t *)data + rx_word), *tx = (struct ring *)((int32_t *)data + tx_word);
  struct counters c = {0};
  for (int32_t i = 0; i < turns; i++) {
    rx->tail = (rx->head + (uint32_t)burst) % rx->num_slots;
    tx->tail = (tx->head + (uint32_t)burst) % tx->num_slots;
    forward(rx, tx, (uint32_t)burst, (uint32_t)buffers, &c);
  }
  napi_value result;
  return napi_create_double(env, c.frames, &result) == napi_ok ? result : NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "run", NAPI_AUTO_LENGTH, run, NULL, &function) == napi_ok)
    napi_set_named_property(env, exports, "run", function);
  return exports;
}
