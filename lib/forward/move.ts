/** The hot loop of a lane, for exchange and for copying. */
import * as abi from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import { specialize } from '../rings/specialize.js';
import * as counted from './counters.js';
import * as laneWords from './lane-words.js';
import type { LaneParts, Move } from './lane-words.js';
import type { OddFrames } from './odd-frames.js';

/** How a lane between two memories copies; the lane of one memory exchanges buffers and needs none of it. */
export interface CopyPlan {
  /** Triples of a copy: byte offset in the tx region, in the rx region, bytes. */
  readonly list: Int32Array;
  /** Does the first `copies` of the list. */
  readonly copyListed: (copies: number) => void;
  /** Frames of up to so many bytes … */
  readonly short: number;
  /** … in batches of up to so many are copied in words, without the call. */
  readonly few: number;
}

/** The move() of a pair of rings. `odd` takes the frames that are not plain. */
export function makeMove(parts: LaneParts, odd: OddFrames, copy?: CopyPlan): Move {
  const { rx, tx, counters, words, settle } = parts;
  const { list = words, copyListed = settle, short = 0, few = 0 } = copy ?? {};
  const kind = copy === undefined ? 'exchange' : 'copy';
  const make = specialize(compile, kind);
  const copying = copy !== undefined;
  return make(abi, counted, laneWords, rx, tx, counters, words, odd, settle, copying, list, copyListed, short, few);
}

/** Compiled once a lane (see specialize.ts), so everything it needs comes as a parameter. */
function compile(
  { BUF_CHANGED, FIRST_BUFFER, LEN_MASK, MOREFRAG, RING_CUR, RING_HEAD, RING_TAIL }: typeof abi,
  { BAD_RING, TX_FULL }: typeof counted,
  { BURST_SPENT, EMPTY, TALLY_BATCHES, TALLY_BYTES, TALLY_FRAMES, WHY_STOPPED }: typeof laneWords,
  rx: Ring,
  tx: Ring,
  counters: Float64Array,
  words: Int32Array,
  odd: OddFrames,
  settle: () => void,
  copying: boolean,
  list: Int32Array,
  copyListed: (copies: number) => void,
  short: number,
  few: number,
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
  const rxBuffers = rx.bufLimit - FIRST_BUFFER;
  const txBuffers = tx.bufLimit - FIRST_BUFFER;
  // Bytes from a region's start, 32 bits wide: their sums wrap and are right below 4 GiB.
  const rxBase = rx.bufBase | 0;
  const txBase = tx.bufBase | 0;
  const rxSize = rx.bufSize;
  const txSize = tx.bufSize;
  const shorter = Math.min(rxSize, txSize);
  const rxOffset = rx.offsetMask;
  const txOffset = tx.offsetMask;
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
      const inWords = n <= few ? short : 0;
      let bytes = 0;
      let copies = 0;
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
          let offset = 0;
          let most = shorter;
          if (rxOffset !== 0) {
            offset = rm[(rw + 2) | 0] & rxOffset;
            const held = offset < 0 ? 0 : (rxSize - offset) | 0; // netmap's widest mask keeps the sign bit
            if (held < most) most = held > 0 ? held : 0;
          }
          // Unsigned, so that one comparison refuses both ends: no such buffer; no data, more than the buffer holds,
          // or (MOREFRAG is far above any length) a frame of several slots.
          if (((idx - FIRST_BUFFER) | 0) >>> 0 >= rxBuffers || ((len - 1) | 0) >>> 0 >= most) break;
          const other = tm[tw] | 0;
          if (!copying) {
            tm[tw] = idx;
            tm[(tw + 1) | 0] = len | BUF_CHANGED;
            rm[rw] = other;
            rm[(rw + 1) | 0] = lenFlags | BUF_CHANGED;
            if (rxOffset !== 0) {
              const otherOffset = tm[(tw + 2) | 0] | 0;
              tm[(tw + 2) | 0] = rm[(rw + 2) | 0] | 0;
              rm[(rw + 2) | 0] = otherOffset;
            }
          } else {
            if (((other - FIRST_BUFFER) | 0) >>> 0 >= txBuffers) break;
            const from = (((rxBase + Math.imul(idx, rxSize)) | 0) + offset) | 0;
            const to = (txBase + Math.imul(other, txSize)) | 0;
            if (len <= inWords && ((from | to) & 3) === 0) {
              let f = from >>> 2;
              let d = to >>> 2;
              const last = (f + (len >> 2)) | 0;
              while (f < last) {
                tm[d] = rm[f] | 0;
                f = (f + 1) | 0;
                d = (d + 1) | 0;
              }
              if ((len & 3) !== 0) {
                const beyond = -1 << ((len & 3) << 3);
                tm[d] = (tm[d] & beyond) | (rm[f] & ~beyond);
              }
            } else {
              list[copies] = to;
              list[(copies + 1) | 0] = from;
              list[(copies + 2) | 0] = len;
              copies = (copies + 3) | 0;
            }
            tm[(tw + 1) | 0] = len;
            if (txOffset !== 0) tm[(tw + 2) | 0] = 0;
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
        // Before the slots change hands: a pipe's peer may read heads at any time.
        if (copies > 0) copyListed((copies / 3) | 0);
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
