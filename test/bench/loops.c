// What lanes are measured against: the same work on the same memory as plain C loops over netmap's structs, compiled
// -O2. Built for the benchmarks only.
#include <node_api.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

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

/** Buffers of either ring, the two reserved ones left out. */
struct limits {
  uint32_t rx, tx;
};

typedef uint32_t move(struct ring *rx, struct ring *tx, uint32_t burst, struct limits buffers, struct counters *c);

static uint32_t space(const struct ring *r) {
  const int32_t n = (int32_t)r->tail - (int32_t)r->head;
  return (uint32_t)(n < 0 ? n + (int32_t)r->num_slots : n);
}

static uint32_t next(const struct ring *r, uint32_t i) { return i + 1 == r->num_slots ? 0 : i + 1; }

static uint32_t batch(const struct ring *rx, const struct ring *tx, uint32_t burst) {
  uint32_t n = burst;
  if (space(rx) < n) n = space(rx);
  if (space(tx) < n) n = space(tx);
  return n;
}

static void publish(struct ring *rx, uint32_t r, struct ring *tx, uint32_t t) {
  rx->head = rx->cur = r;
  tx->head = tx->cur = t;
}

static void count(struct counters *c, uint64_t frames, uint64_t bytes, uint32_t slots) {
  c->frames += (double)frames;
  c->bytes += (double)bytes;
  c->slots += slots;
  c->batches++;
}

// Not inlined into the timed loop, as a bridge would call it.
__attribute__((noinline)) static uint32_t exchange(struct ring *rx, struct ring *tx, uint32_t burst,
                                                   struct limits buffers, struct counters *c) {
  const uint32_t n = batch(rx, tx, burst), buf_size = rx->buf_size;
  uint32_t moved = 0, r = rx->head, t = tx->head;
  uint64_t bytes = 0, frames = 0;
  for (; moved < n; moved++) {
    struct slot *rs = &rx->slots[r], *ts = &tx->slots[t];
    const uint32_t idx = rs->buf_idx;
    if (idx - 2 >= buffers.rx || rs->len - 1u >= buf_size) break;
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
  publish(rx, r, tx, t);
  count(c, frames, bytes, moved);
  return moved;
}

__attribute__((noinline)) static uint32_t copy(struct ring *rx, struct ring *tx, uint32_t burst, struct limits buffers,
                                               struct counters *c) {
  const uint32_t n = batch(rx, tx, burst), most = rx->buf_size < tx->buf_size ? rx->buf_size : tx->buf_size;
  uint32_t moved = 0, r = rx->head, t = tx->head;
  uint64_t bytes = 0, frames = 0;
  for (; moved < n; moved++) {
    struct slot *rs = &rx->slots[r], *ts = &tx->slots[t];
    const uint32_t from = rs->buf_idx, to = ts->buf_idx, len = rs->len;
    if (from - 2 >= buffers.rx || to - 2 >= buffers.tx || len - 1u >= most) break;
    memcpy((uint8_t *)tx + tx->buf_ofs + (size_t)to * tx->buf_size,
           (uint8_t *)rx + rx->buf_ofs + (size_t)from * rx->buf_size, len);
    ts->len = (uint16_t)len;
    ts->flags = rs->flags & MOREFRAG;
    bytes += len;
    frames += (rs->flags & MOREFRAG) == 0;
    r = next(rx, r);
    t = next(tx, t);
  }
  publish(rx, r, tx, t);
  count(c, frames, bytes, moved);
  return moved;
}

// run(rxWords, rxWord, txWords, txWord, burst, rxBuffers, txBuffers, turns, copies): each turn shows `burst` frames and
// room for them, and moves them.
static napi_value run(napi_env env, napi_callback_info info) {
  napi_value argv[9];
  size_t given = 9, length;
  int32_t n[9];
  void *rx_data, *tx_data;
  if (napi_get_cb_info(env, info, &given, argv, NULL, NULL) != napi_ok || given < 9 ||
      napi_get_typedarray_info(env, argv[0], NULL, &length, &rx_data, NULL, NULL) != napi_ok ||
      napi_get_typedarray_info(env, argv[2], NULL, &length, &tx_data, NULL, NULL) != napi_ok)
    return NULL;
  for (size_t i = 0; i < 9; i++)
    if (i != 0 && i != 2 && napi_get_value_int32(env, argv[i], &n[i]) != napi_ok) return NULL;
  struct ring *rx = (struct ring *)((int32_t *)rx_data + n[1]), *tx = (struct ring *)((int32_t *)tx_data + n[3]);
  const uint32_t burst = (uint32_t)n[4];
  const struct limits buffers = {.rx = (uint32_t)n[5], .tx = (uint32_t)n[6]};
  move *const moves = n[8] ? copy : exchange;
  struct counters c = {0};
  for (int32_t i = 0; i < n[7]; i++) {
    rx->tail = (rx->head + burst) % rx->num_slots;
    tx->tail = (tx->head + burst) % tx->num_slots;
    moves(rx, tx, burst, buffers, &c);
  }
  napi_value result;
  return napi_create_double(env, c.frames, &result) == napi_ok ? result : NULL;
}

// cpuNs(): CPU time of this thread, ns. To the nanosecond, where getrusage(2) counts in ticks on some machines.
static napi_value cpu_ns(napi_env env, napi_callback_info info) {
  (void)info;
  struct timespec ts;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
  napi_value result;
  return napi_create_double(env, (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec, &result) == napi_ok ? result : NULL;
}

NAPI_MODULE_INIT() {
  napi_value function;
  if (napi_create_function(env, "run", NAPI_AUTO_LENGTH, run, NULL, &function) == napi_ok)
    napi_set_named_property(env, exports, "run", function);
  if (napi_create_function(env, "cpuNs", NAPI_AUTO_LENGTH, cpu_ns, NULL, &function) == napi_ok)
    napi_set_named_property(env, exports, "cpuNs", function);
  return exports;
}
