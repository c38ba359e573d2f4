import {
  DIR_TX,
  FIRST_BUFFER,
  LEN_MASK,
  RING_BUF_OFS,
  RING_BUF_SIZE,
  RING_CUR,
  RING_FLAGS,
  RING_HEAD,
  RING_ID_DIR,
  RING_NUM_SLOTS,
  RING_OFFSET_MASK,
  RING_SLOTS,
  RING_TAIL,
  SLOT_BUF_IDX,
  SLOT_LEN_FLAGS,
  SLOT_PTR,
  SLOT_WORDS,
} from './abi.js';
import type { Region } from './region.js';

/**
 * A view of one netmap ring. The user owns slots [head, tail): fills them (tx) or consumes them (rx) from head, then
 * advances. Everything is an index or a word of the region; a view of a closed port reads as empty.
 */
export class Ring {
  /** The region's words, here too: one load fewer where it counts. */
  readonly i32: Int32Array;
  readonly u8: Uint8Array;
  readonly numSlots: number;
  /** Bytes a buffer holds. */
  readonly bufSize: number;
  /** Byte offset of buffer 0 in the region. */
  readonly bufBase: number;
  /** Buffer indices below this one lie inside the region. */
  readonly bufLimit: number;
  /** Ring number within its port and direction. */
  readonly id: number;
  readonly direction: 'tx' | 'rx';
  /** Bits of slot.ptr that hold the offset of the data in its buffer; 0: data starts at the buffer. */
  readonly offsetMask: number;
  /** Word of slot 0 in `i32`. */
  readonly slot0: number;

  /**
   * @param region the memory the ring lies in
   * @param base   the ring's first word in `region.i32`
   * @throws RangeError when the header does not describe a ring inside the region
   */
  constructor(
    readonly region: Region,
    readonly base: number,
  ) {
    const { i32 } = region;
    this.i32 = i32;
    this.u8 = region.u8;
    this.slot0 = base + RING_SLOTS;
    this.numSlots = i32[base + RING_NUM_SLOTS] ?? 0;
    this.bufSize = i32[base + RING_BUF_SIZE] ?? 0;
    this.bufBase = base * 4 + region.i64(base + RING_BUF_OFS);
    this.bufLimit = Math.floor((region.u8.length - this.bufBase) / this.bufSize);
    this.id = (i32[base + RING_ID_DIR] ?? 0) & 0xffff;
    this.direction = (i32[base + RING_ID_DIR] ?? 0) >>> 16 === DIR_TX ? 'tx' : 'rx';
    this.offsetMask = i32[base + RING_OFFSET_MASK] ?? 0;
    const inside =
      base >= 0 &&
      this.numSlots > 1 &&
      this.bufSize > 0 &&
      this.bufBase >= 0 &&
      this.bufLimit > FIRST_BUFFER &&
      this.slot0 + this.numSlots * SLOT_WORDS <= i32.length;
    if (!inside)
      throw new RangeError(
        `ring at byte ${base * 4} of region ${region.id} does not lie inside it ` +
          `(${this.numSlots} slots, ${this.bufSize}-byte buffers from byte ${this.bufBase}, region of ${region.u8.length} bytes)`,
      );
  }

  /** First slot the user owns. */
  get head(): number {
    return this.i32[this.base + RING_HEAD] | 0;
  }
  /** netmap's cur: from which slot on news are worth waking for. Moves with head here. */
  get cur(): number {
    return this.i32[this.base + RING_CUR] | 0;
  }
  /** First slot the user does not own; moved by the port in a sync. */
  get tail(): number {
    return this.i32[this.base + RING_TAIL] | 0;
  }
  /** netmap's NR_ flags. */
  get flags(): number {
    return this.i32[this.base + RING_FLAGS] | 0;
  }

  /** Whether head and tail are slots of the ring. tail is the port's word, and a pipe's peer can write both. */
  get intact(): boolean {
    // Unsigned: refuses negative values too.
    return this.head >>> 0 < this.numSlots && this.tail >>> 0 < this.numSlots;
  }

  /** Slots the user owns: frames' slots to read (rx) or room to write (tx). None while the ring is not intact. */
  get space(): number {
    if (!this.intact) return 0;
    const n = this.tail - this.head;
    return n < 0 ? n + this.numSlots : n;
  }

  /** The slot `n` after slot `i`; `n` at most one turn of the ring. */
  after(i: number, n = 1): number {
    const next = i + n;
    return next < this.numSlots ? next : next - this.numSlots;
  }

  /** The slot before slot `i`. */
  before(i: number): number {
    return i === 0 ? this.numSlots - 1 : i - 1;
  }

  /** Gives the next `n` slots to the port: it sends them (tx) or refills them (rx) at its next sync. */
  advance(n: number): void {
    this.moveTo(this.after(this.head, n));
  }

  /** Sets head and cur. */
  moveTo(slot: number): void {
    this.i32[this.base + RING_HEAD] = slot;
    this.i32[this.base + RING_CUR] = slot;
  }

  /** Word of slot `i`. */
  slotWord(i: number): number {
    return this.slot0 + i * SLOT_WORDS;
  }
  /** The buffer of slot `i`, an index into the region's buffers. */
  bufIdx(i: number): number {
    return this.i32[this.slotWord(i) + SLOT_BUF_IDX] | 0;
  }
  /** Bytes of frame data in slot `i`, without FCS. */
  len(i: number): number {
    return this.i32[this.slotWord(i) + SLOT_LEN_FLAGS] & LEN_MASK;
  }
  /** Flags of slot `i` where they stand, in the upper half (compare with MOREFRAG, BUF_CHANGED …). */
  slotFlags(i: number): number {
    return this.i32[this.slotWord(i) + SLOT_LEN_FLAGS] & ~LEN_MASK;
  }
  /** Offset of the data in slot `i`'s buffer, in bytes. */
  offset(i: number): number {
    // Unsigned: netmap's widest mask keeps the sign bit.
    return (this.i32[this.slotWord(i) + SLOT_PTR] & this.offsetMask) >>> 0;
  }
  /** Sets length (bytes) and flags (already in the upper half) of slot `i`. */
  setLenFlags(i: number, len: number, flags = 0): void {
    this.i32[this.slotWord(i) + SLOT_LEN_FLAGS] = (len & LEN_MASK) | flags;
  }
  /** Whether slot `i` names a buffer of the region. */
  bufferValid(i: number): boolean {
    const idx = this.bufIdx(i);
    return idx >= FIRST_BUFFER && idx < this.bufLimit;
  }
  /** Whether slot `i` names a buffer of the region and data inside it. */
  slotValid(i: number): boolean {
    return this.bufferValid(i) && this.offset(i) + this.len(i) <= this.bufSize;
  }
  /** Byte offset in `u8` of slot `i`'s data. */
  dataStart(i: number): number {
    return this.bufBase + this.bufIdx(i) * this.bufSize + this.offset(i);
  }
  /** The bytes of slot `i`; a new view, so not for the hot loop. Empty when the slot is corrupt or the port closed. */
  data(i: number): Uint8Array {
    if (!this.slotValid(i)) return new Uint8Array();
    const start = this.dataStart(i);
    return this.u8.subarray(start, start + this.len(i));
  }
}
