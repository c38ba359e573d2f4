import * as abi from './abi.js';
import { MAX_FRAME_SLOTS, MOREFRAG, SLOT_LEN_FLAGS } from './abi.js';
import { copier } from './copy.js';
import * as counted from './counters.js';
import { dropFrame, frameSlots } from './frame.js';
import type { Ring } from './ring.js';
import { specialize } from './specialize.js';

/**
 * Moves up to `burst` slots of whole frames from one rx ring to one tx ring; a frame longer than the burst moves
 * nevertheless. Never blocks and makes no system call: the caller syncs the ports. Nothing is allocated.
 * Returns the slots taken from the rx ring; 0: nothing to do, or no room in the tx ring (counted as TX_FULL).
 */
export type Forward = (burst: number) => number;

/** Why frames between the two rings must be copied; undefined: their buffers can be exchanged. */
export function whyCopy(rx: Ring, tx: Ring): string | undefined {
  if (rx.region.id !== tx.region.id) return `different memories, ${rx.region.id} and ${tx.region.id}`;
  if (rx.bufSize !== tx.bufSize) return `different buffer sizes, ${rx.bufSize} and ${tx.bufSize} bytes`;
  // A ring without data offsets could not say where the data starts in a buffer that came with one.
  return rx.offsetMask === tx.offsetMask ? undefined : 'only one of the two has data offsets';
}

/** Whether the two rings lie in one memory, so that buffers are exchanged instead of bytes copied. */
export function isZeroCopy(rx: Ring, tx: Ring): boolean {
  return whyCopy(rx, tx) === undefined;
}

/**
 * The forwarding function for one pair of rings.
 *
 * @param counters the direction's counters (see counters.ts); several pairs may share them
 * @param zeroCopy false copies bytes even where buffers could be exchanged
 */
export function forwarder(rx: Ring, tx: Ring, counters: Float64Array, zeroCopy = isZeroCopy(rx, tx)): Forward {
  if (!zeroCopy) return copier(rx, tx, counters);
  return specialize(makeExchange, 'forward')(abi, counted, rx, tx, counters, exchangeOddFrame);
}

/** The hot loop. Compiled once a ring pair (see specialize.ts), so everything it needs comes as a parameter. */
function makeExchange(
  { BUF_CHANGED, FIRST_BUFFER, LEN_MASK, MOREFRAG, RING_CUR, RING_HEAD, RING_TAIL }: typeof abi,
  { BATCHES, BYTES, FRAMES, SLOTS, TX_FULL }: typeof counted,
  rx: Ring,
  tx: Ring,
  counters: Float64Array,
  exchangeOdd: typeof exchangeOddFrame,
): Forward {
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
  const kept = LEN_MASK | MOREFRAG;

  // `| 0` keeps sums 32-bit machine integers: without it every one is checked for overflow.
  return function forward(burst: number): number {
    // Locals, not captured names: V8 sees a captured array as constant inside a loop only so.
    const rm = rxWords;
    const tm = txWords;
    let r = rm[rxHead] | 0;
    let t = tm[txHead] | 0;
    let ready = (rm[rxTail] - r) | 0;
    if (ready < 0) ready = (ready + rxSlots) | 0;
    let room = (tm[txTail] - t) | 0;
    if (room < 0) room = (room + txSlots) | 0;
    if (ready === 0) return 0;
    let n = ready < burst ? ready : burst | 0;
    if (room < n) {
      counters[TX_FULL]++;
      if (room === 0) return 0;
      n = room;
    }
    // A frame whose last slot lies beyond stays for the next call.
    let last = (r + n - 1) | 0;
    while (n > 0 && (rm[rxSlot0 + ((last < rxSlots ? last : last - rxSlots) << 2) + 1] & MOREFRAG) !== 0) {
      n = (n - 1) | 0;
      last = (last - 1) | 0;
    }
    let bytes = 0;
    let flags = 0;
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
        const len = lenFlags & LEN_MASK;
        const most = offsetMask === 0 ? bufSize : (bufSize - (rm[(rw + 2) | 0] & offsetMask)) | 0;
        // Unsigned, so that one comparison refuses both ends: no such buffer; no data, or more than the buffer holds.
        if (((idx - FIRST_BUFFER) | 0) >>> 0 >= buffers || ((len - 1) | 0) >>> 0 >= most) break;
        const spare = tm[tw] | 0;
        tm[tw] = idx;
        tm[(tw + 1) | 0] = (lenFlags & kept) | BUF_CHANGED;
        rm[rw] = spare;
        rm[(rw + 1) | 0] = lenFlags | BUF_CHANGED;
        if (offsetMask !== 0) {
          const spareOffset = tm[(tw + 2) | 0] | 0;
          tm[(tw + 2) | 0] = rm[(rw + 2) | 0] | 0;
          rm[(rw + 2) | 0] = spareOffset;
        }
        bytes = (bytes + len) | 0;
        flags |= lenFlags;
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
    let moved = (n - left) | 0;
    if (left > 0) {
      // A slot that is no plain frame: give back what was already taken of its frame, so that it is judged whole.
      while (moved > 0) {
        const before = r === 0 ? rxSlots - 1 : r - 1;
        const rw = rxSlot0 + (before << 2);
        if ((rm[rw + 1] & MOREFRAG) === 0) break;
        r = before;
        t = t === 0 ? txSlots - 1 : t - 1;
        const tw = txSlot0 + (t << 2);
        const idx = tm[tw];
        tm[tw] = rm[rw]!;
        rm[rw] = idx;
        const offset = tm[tw + 2];
        tm[tw + 2] = rm[rw + 2]!;
        rm[rw + 2] = offset;
        bytes -= rm[rw + 1] & LEN_MASK;
        moved--;
      }
    }
    if (moved > 0) {
      let fragments = 0;
      if ((flags & MOREFRAG) !== 0) {
        for (let k = 0, i = tm[txHead]; k < moved; k++, i = i + 1 < txSlots ? i + 1 : 0)
          if ((tm[txSlot0 + (i << 2) + 1] & MOREFRAG) !== 0) fragments++;
      }
      rm[rxHead] = r;
      rm[rxCur] = r;
      tm[txHead] = t;
      tm[txCur] = t;
      counters[FRAMES] += moved - fragments;
      counters[BYTES] += bytes >>> 0; // unsigned: the largest ring of the largest buffers holds less than 2^32
      counters[SLOTS] += moved;
      counters[BATCHES]++;
    }
    // Odd frames are rare: one a call, by readable code. So is one longer than the burst or the room.
    return left > 0 || n === 0 ? moved + exchangeOdd(rx, tx, counters) : moved;
  };
}

/**
 * The frame at the head of `rx`, whatever it is: zero-length slots are passed over, a corrupt or overlong frame is
 * dropped and counted, a whole one is moved if the tx ring has room for it. Returns the slots taken from `rx`.
 */
function exchangeOddFrame(rx: Ring, tx: Ring, counters: Float64Array): number {
  const slots = frameSlots(rx);
  if (slots === 0) return 0;
  const dropped = dropFrame(rx, slots, Math.min(MAX_FRAME_SLOTS, tx.numSlots - 1), counters);
  if (dropped > 0) return dropped;
  let carrying = 0;
  for (let k = 0, i = rx.head; k < slots; k++, i = rx.after(i)) if (rx.len(i) > 0) carrying++;
  if (carrying > tx.space) return 0;
  let t = tx.head;
  let bytes = 0;
  for (let k = 0, i = rx.head, done = 0; k < slots; k++, i = rx.after(i)) {
    const len = rx.len(i);
    if (len === 0) continue;
    done++;
    const rw = rx.slotWord(i);
    const tw = tx.slotWord(t);
    for (const word of [abi.SLOT_BUF_IDX, abi.SLOT_PTR]) {
      const spare = tx.i32[tw + word];
      tx.i32[tw + word] = rx.i32[rw + word]!;
      rx.i32[rw + word] = spare;
    }
    tx.i32[tw + SLOT_LEN_FLAGS] = len | abi.BUF_CHANGED | (done < carrying ? MOREFRAG : 0);
    rx.i32[rw + SLOT_LEN_FLAGS] |= abi.BUF_CHANGED;
    bytes += len;
    t = tx.after(t);
  }
  tx.moveTo(t);
  rx.advance(slots);
  counters[counted.FRAMES]++;
  counters[counted.BYTES] += bytes;
  counters[counted.SLOTS] += carrying;
  counters[counted.ZERO_SLOTS] += slots - carrying;
  counters[counted.BATCHES]++;
  return slots;
}
