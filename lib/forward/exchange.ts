/** A lane whose frames change rings by exchanging buffers. */
import * as abi from '../rings/abi.js';
import { BUF_CHANGED, MOREFRAG, SLOT_BUF_IDX, SLOT_LEN_FLAGS, SLOT_PTR } from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import { specialize } from '../rings/specialize.js';
import * as counted from './counters.js';
import type { HeadFrame } from './frame.js';
import * as laneWords from './lane-words.js';
import type { LaneParts, Move } from './lane-words.js';
import { oddFrames, type OddFrames } from './odd-frames.js';

/** The move() of a pair of rings in one memory. */
export function exchangeMove({ rx, tx, counters, words, settle }: LaneParts): Move {
  const odd = oddFrames(rx, tx, counters, words, ({ carrying }) => carrying, exchangeFrame);
  return specialize(makeExchange, 'exchange')(abi, counted, laneWords, rx, tx, counters, words, odd, settle);
}

/** The hot loop. Compiled once a lane (see specialize.ts), so everything it needs comes as a parameter. */
function makeExchange(
  { BUF_CHANGED, FIRST_BUFFER, LEN_MASK, MOREFRAG, RING_CUR, RING_HEAD, RING_TAIL }: typeof abi,
  { BAD_RING, TX_FULL }: typeof counted,
  { BURST_SPENT, EMPTY, TALLY_BATCHES, TALLY_BYTES, TALLY_FRAMES, WHY_STOPPED }: typeof laneWords,
  rx: Ring,
  tx: Ring,
  counters: Float64Array,
  words: Int32Array,
  odd: OddFrames,
  settle: () => void,
): Move {
  const rxWords = rx.i32;
  const txWords = tx.i32;
  const rxSlot0 = rx.slot0;
  const txSlot0 = tx.slot0;
  const rxSlots = rx.numSlots;
  const txSlots = tx.numSlots;
  const rxHead = rx.base + RING_HEAD;
  const txHead = tx.base + RING_HEAD;
  const rxCur = rx.base + RING_CUR;
  const txCur = tx.base + RING_CUR;
  const rxTail = rx.base + RING_TAIL;
  const txTail = tx.base + RING_TAIL;
  const buffers = rx.bufLimit - FIRST_BUFFER;
  const bufSize = rx.bufSize;
  const offsetMask = rx.offsetMask;
  const lenAndMore = LEN_MASK | MOREFRAG;

  // `| 0` keeps sums 32-bit machine integers: without it every one is checked for overflow.
  return function move(burst: number): number {
    // Locals, not captured names: V8 sees a captured array as constant inside a loop only so.
    const rm = rxWords;
    const tm = txWords;
    const own = words;
    const framesBefore = own[TALLY_FRAMES] | 0;
    let taken = 0;
    let why: number;
    for (;;) {
      why = EMPTY;
      let r = rm[rxHead] | 0;
      let t = tm[txHead] | 0;
      const rEnd = rm[rxTail] | 0;
      const tEnd = tm[txTail] | 0;
      // One test for all: the sign bit is set when a head or tail is negative or beyond its last slot.
      const outside =
        r | rEnd | (rxSlots - 1 - r) | (rxSlots - 1 - rEnd) | t | tEnd | (txSlots - 1 - t) | (txSlots - 1 - tEnd);
      if (outside < 0) {
        counters[BAD_RING]++;
        break;
      }
      let ready = (rEnd - r) | 0;
      if (ready < 0) ready = (ready + rxSlots) | 0;
      if (ready === 0) break;
      let room = (tEnd - t) | 0;
      if (room < 0) room = (room + txSlots) | 0;
      let n = (burst - taken) | 0;
      why = BURST_SPENT;
      if (room < n) {
        n = room;
        why = 1;
      }
      if (ready <= n) {
        n = ready;
        why = EMPTY;
      }
      let bytes = 0;
      let left = n;
      while (left > 0) {
        // A run: slots until the first end of either ring.
        let run = left;
        if (rxSlots - r < run) run = (rxSlots - r) | 0;
        if (txSlots - t < run) run = (txSlots - t) | 0;
        const start = (rxSlot0 + (r << 2)) | 0;
        const end = (start + (run << 2)) | 0;
        let rw = start;
        let tw = (txSlot0 + (t << 2)) | 0;
        while (rw < end) {
          const idx = rm[rw] | 0;
          const lenFlags = rm[(rw + 1) | 0] | 0;
          const len = lenFlags & lenAndMore;
          let most = bufSize;
          if (offsetMask !== 0) {
            const offset = rm[(rw + 2) | 0] & offsetMask;
            most = offset < 0 ? 0 : (bufSize - offset) | 0; // netmap's widest mask keeps the sign bit
          }
          // Unsigned, so that one comparison refuses both ends: no such buffer; no data, more than the buffer holds,
          // or (MOREFRAG is far above any length) a frame of several slots.
          if (((idx - FIRST_BUFFER) | 0) >>> 0 >= buffers || ((len - 1) | 0) >>> 0 >= most) break;
          const spare = tm[tw] | 0;
          tm[tw] = idx;
          tm[(tw + 1) | 0] = len | BUF_CHANGED;
          rm[rw] = spare;
          rm[(rw + 1) | 0] = lenFlags | BUF_CHANGED;
          if (offsetMask !== 0) {
            const spareOffset = tm[(tw + 2) | 0] | 0;
            tm[(tw + 2) | 0] = rm[(rw + 2) | 0] | 0;
            rm[(rw + 2) | 0] = spareOffset;
          }
          bytes = (bytes + len) | 0;
          rw = (rw + 4) | 0;
          tw = (tw + 4) | 0;
        }
        run = ((rw - start) | 0) >> 2;
        left = (left - run) | 0;
        r = (r + run) | 0;
        if (r === rxSlots) r = 0;
        t = (t + run) | 0;
        if (t === txSlots) t = 0;
        if (rw < end) break;
      }
      const moved = (n - left) | 0;
      if (moved > 0) {
        rm[rxHead] = r;
        rm[rxCur] = r;
        tm[txHead] = t;
        tm[txCur] = t;
        own[TALLY_FRAMES] = own[TALLY_FRAMES] + moved;
        own[TALLY_BYTES] = own[TALLY_BYTES] + bytes;
        taken = (taken + moved) | 0;
      }
      if (left === 0) break;
      // A frame that is not plain: the readable way, then on.
      const slots = odd((burst - taken) | 0, taken === 0) | 0;
      why = own[WHY_STOPPED];
      if (slots === 0) break;
      taken = (taken + slots) | 0;
      if (taken >= burst) break;
    }
    own[WHY_STOPPED] = why;
    if (why > 0) counters[TX_FULL]++;
    if (own[TALLY_FRAMES] !== framesBefore) own[TALLY_BATCHES]++;
    if (own[TALLY_BYTES] < 0) settle(); // above 2^31; rings in 4 GiB cannot move as much again before the next look
    return taken;
  };
}

/** Puts a frame of several slots, or one with empty slots in between, into the tx ring from slot `t` on. */
function exchangeFrame(frame: HeadFrame, rx: Ring, tx: Ring, t: number): boolean {
  for (let k = 0; k < frame.carrying; k++, t = tx.after(t)) {
    const rw = rx.slotWord(frame.slot[k]);
    const tw = tx.slotWord(t);
    rx.i32[rw + SLOT_BUF_IDX] = tx.i32[tw + SLOT_BUF_IDX];
    rx.i32[rw + SLOT_LEN_FLAGS] |= BUF_CHANGED;
    tx.i32[tw + SLOT_BUF_IDX] = frame.buffer[k];
    tx.i32[tw + SLOT_LEN_FLAGS] = frame.len[k] | BUF_CHANGED | (k + 1 < frame.carrying ? MOREFRAG : 0);
    if (rx.offsetMask === 0) continue;
    rx.i32[rw + SLOT_PTR] = tx.i32[tw + SLOT_PTR];
    tx.i32[tw + SLOT_PTR] = frame.ptr[k];
  }
  return true;
}
