import * as abi from '../rings/abi.js';
import { MOREFRAG, SLOT_BUF_IDX, SLOT_LEN_FLAGS, SLOT_PTR } from '../rings/abi.js';
import { copier } from './copy.js';
import * as counted from './counters.js';
import { carryingSlots, dropFrame, frameSlots, slotsBeforeOverlong } from './frame.js';
import type { Ring } from '../rings/ring.js';
import { specialize } from '../rings/specialize.js';

/**
 * Moves up to `burst` slots of whole frames from one rx ring to one tx ring; a frame longer than the burst moves
 * nevertheless. Never blocks and makes no system call: the caller syncs the ports. Nothing is allocated.
 * Returns the slots taken from the rx ring; 0: nothing to do, or no room in the tx ring (counted as TX_FULL).
 */
export type Forward = (burst: number) => number;

/** Why frames between the two rings must be copied; undefined: their buffers can be exchanged. */
export function whyCopy(rx: Ring, tx: Ring): string | undefined {
  if (rx.region.id !== tx.region.id) return `different memories, ${rx.region.id} and ${tx.region.id}`;
  if (rx.bufBase !== tx.bufBase) return `different buffers of one memory, from bytes ${rx.bufBase} and ${tx.bufBase}`;
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
  return specialize(makeExchange, 'forward')(
    abi,
    counted,
    rx,
    tx,
    counters,
    exchangeOddFrame,
    giveBackOddFrame,
    bytesOf,
  );
}

/** The hot loop. Compiled once a ring pair (see specialize.ts), so everything it needs comes as a parameter. */
function makeExchange(
  { BUF_CHANGED, FIRST_BUFFER, LEN_MASK, MAX_FRAME_SLOTS, MOREFRAG, RING_CUR, RING_HEAD, RING_TAIL }: typeof abi,
  { BAD_RING, BATCHES, BYTES, FRAMES, SLOTS, TX_FULL }: typeof counted,
  rx: Ring,
  tx: Ring,
  counters: Float64Array,
  exchangeOdd: typeof exchangeOddFrame,
  giveBack: typeof giveBackOddFrame,
  bytesIn: typeof bytesOf,
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
    const rEnd = rm[rxTail] | 0;
    const tEnd = tm[txTail] | 0;
    // One test for all: the sign bit is set when a head or tail is negative or beyond its last slot.
    const outside =
      r | rEnd | (rxSlots - 1 - r) | (rxSlots - 1 - rEnd) | t | tEnd | (txSlots - 1 - t) | (txSlots - 1 - tEnd);
    if (outside < 0) {
      counters[BAD_RING]++;
      return 0;
    }
    let ready = (rEnd - r) | 0;
    if (ready < 0) ready = (ready + rxSlots) | 0;
    let room = (tEnd - t) | 0;
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
        let most = bufSize;
        if (offsetMask !== 0) {
          const offset = rm[(rw + 2) | 0] & offsetMask;
          most = offset < 0 ? 0 : (bufSize - offset) | 0; // netmap's widest mask keeps the sign bit
        }
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
    if (left > 0 || (moved > MAX_FRAME_SLOTS && (flags & MOREFRAG) !== 0)) {
      const stays = giveBack(rx, tx, moved);
      if (stays < moved) {
        r = (r - (moved - stays)) | 0;
        if (r < 0) r = (r + rxSlots) | 0;
        t = (t - (moved - stays)) | 0;
        if (t < 0) t = (t + txSlots) | 0;
        bytes = bytesIn(rx, stays) | 0;
        moved = stays;
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
    return moved < n || n === 0 ? moved + exchangeOdd(rx, tx, counters, moved, burst) : moved;
  };
}

/**
 * Of `moved` slots from the heads on that have been exchanged and not published, gives back those of the first frame
 * that is not plain (its end was not reached, or it is overlong) and of all after it, so that it is judged whole.
 * Returns the slots that stay exchanged.
 */
function giveBackOddFrame(rx: Ring, tx: Ring, moved: number): number {
  const plain = slotsBeforeOverlong(rx, rx.head, moved);
  for (let stays = moved; stays > 0; stays--) {
    const i = rx.after(rx.head, stays - 1);
    if (stays <= plain && (rx.slotFlags(i) & MOREFRAG) === 0) return stays;
    const rw = rx.slotWord(i);
    exchangeBuffers(rx, rw, tx, tx.slotWord(tx.after(tx.head, stays - 1)));
    rx.i32[rw + SLOT_LEN_FLAGS] &= ~abi.BUF_CHANGED;
  }
  return 0;
}

/** Bytes in the `slots` slots at the head of `rx`. */
function bytesOf(rx: Ring, slots: number): number {
  let bytes = 0;
  for (let k = 0, i = rx.head; k < slots; k++, i = rx.after(i)) bytes += rx.len(i);
  return bytes;
}

/**
 * The frame at the head of `rx`, whatever it is: zero-length slots are passed over, a corrupt or overlong frame is
 * dropped and counted, a whole one is moved if the tx ring has room for it. Returns the slots taken from `rx`.
 *
 * @param moved slots this call of forward() has moved before, of `burst`
 */
function exchangeOddFrame(rx: Ring, tx: Ring, counters: Float64Array, moved: number, burst: number): number {
  const slots = frameSlots(rx);
  if (slots === 0 || (moved > 0 && moved + slots > burst)) return 0;
  const carrying = carryingSlots(rx, slots);
  const dropped = dropFrame(rx, slots, carrying, tx.numSlots - 1, counters);
  if (dropped > 0) return dropped;
  const room = tx.space;
  if (carrying > room) {
    if (room >= burst) counters[counted.TX_FULL]++; // with less room, forward() has counted it
    return 0;
  }
  let t = tx.head;
  let bytes = 0;
  for (let k = 0, i = rx.head, done = 0; k < slots; k++, i = rx.after(i)) {
    const len = rx.len(i);
    if (len === 0) continue;
    done++;
    const rw = rx.slotWord(i);
    const tw = tx.slotWord(t);
    exchangeBuffers(rx, rw, tx, tw);
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
  if (moved === 0) counters[counted.BATCHES]++;
  return slots;
}

/** Exchanges the buffers of two slots, given by their words, and where the data starts in them. */
function exchangeBuffers(rx: Ring, rw: number, tx: Ring, tw: number): void {
  exchangeWord(rx.i32, rw + SLOT_BUF_IDX, tx.i32, tw + SLOT_BUF_IDX);
  if (rx.offsetMask !== 0) exchangeWord(rx.i32, rw + SLOT_PTR, tx.i32, tw + SLOT_PTR);
}

function exchangeWord(a: Int32Array, i: number, b: Int32Array, j: number): void {
  const word = a[i];
  a[i] = b[j]!;
  b[j] = word;
}
