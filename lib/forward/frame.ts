import {
  FIRST_BUFFER,
  LEN_MASK,
  MAX_FRAME_SLOTS,
  MOREFRAG,
  SLOT_BUF_IDX,
  SLOT_LEN_FLAGS,
  SLOT_PTR,
} from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import { BAD_BUFFER, BAD_LENGTH, NO_TX_ROOM, TOO_MANY_SLOTS } from './counters.js';

/**
 * The frame at the head of an rx ring, read once: another party may write to the slots meanwhile (a pipe's peer), and
 * what was judged must be what moves. Made once and reused.
 */
export class HeadFrame {
  /** Slots it takes, zero-length ones among them. */
  slots = 0;
  /** Of these, the ones that carry data; the first 64 are described below. */
  carrying = 0;
  /** Bytes of data, without FCS. */
  bytes = 0;
  /** Why it cannot be forwarded, a position in the counters; 0: it can. */
  reason = 0;
  /** Slot number, buffer, bytes, and ptr's low word (netmap's data offset is in it) of each slot that carries data. */
  readonly slot = new Int32Array(MAX_FRAME_SLOTS);
  readonly buffer = new Int32Array(MAX_FRAME_SLOTS);
  readonly len = new Int32Array(MAX_FRAME_SLOTS);
  readonly ptr = new Int32Array(MAX_FRAME_SLOTS);

  /**
   * Reads it. Returns the slots it takes: 0 when its end has not arrived. A frame that can never end, since the ring is
   * full and no slot ends it, is taken whole and has a reason.
   */
  read(rx: Ring): number {
    const { space } = rx;
    this.slots = this.carrying = this.bytes = this.reason = 0;
    for (let k = 1, i = rx.head; k <= space; k++, i = rx.after(i)) {
      const lenFlags = rx.i32[rx.slotWord(i) + SLOT_LEN_FLAGS];
      this.#take(rx, i, lenFlags & LEN_MASK);
      if ((lenFlags & MOREFRAG) === 0) return (this.slots = k);
    }
    if (space < rx.numSlots - 1) return 0;
    this.reason ||= TOO_MANY_SLOTS;
    return (this.slots = space);
  }

  #take(rx: Ring, i: number, len: number): void {
    if (len === 0) return; // some drivers show such slots; they carry nothing
    const word = rx.slotWord(i);
    const buffer = rx.i32[word + SLOT_BUF_IDX];
    const ptr = rx.i32[word + SLOT_PTR];
    const offset = (ptr & rx.offsetMask) >>> 0; // netmap's widest mask keeps the sign bit
    if (buffer < FIRST_BUFFER || buffer >= rx.bufLimit) this.reason = BAD_BUFFER;
    else if (offset + len > rx.bufSize) this.reason = BAD_LENGTH;
    const k = this.carrying++;
    this.bytes += len;
    if (k >= MAX_FRAME_SLOTS) {
      this.reason ||= TOO_MANY_SLOTS;
      return;
    }
    this.slot[k] = i;
    this.buffer[k] = buffer;
    this.len[k] = len;
    this.ptr[k] = ptr;
  }

  /** Judges the frame by the tx slots it needs: more than a frame may have, or than the ring has at all (`most`). */
  judge(needed: number, most: number): void {
    if (needed > MAX_FRAME_SLOTS) this.reason ||= TOO_MANY_SLOTS;
    if (needed > most) this.reason ||= NO_TX_ROOM;
  }
}
