import { add, amountIn, sumOf, type Amount } from '../../rings/amount.js';
import { FIRST_BUFFER, MAX_FRAME_SLOTS, MOREFRAG } from '../../rings/abi.js';
import type { CaptureWriter } from '../../capture/writer.js';
import { Kring } from '../../rings/kring.js';
import type { Ring } from '../../rings/ring.js';
import { WallClock } from '../../shim/wallclock.js';
import type { Stamps } from './pcap-stamps.js';

/** Empties a tx ring into a capture. */
export class CaptureTx {
  /** Frames left out because a slot names bytes outside the memory. */
  corrupt = 0;
  /** Frames left out because they take more than 64 slots. */
  tooLong = 0;
  readonly #leftOut: Amount = { frames: 0, bytes: 0 };
  readonly kring: Kring;
  readonly #clock = new WallClock();
  /** Whether the clock has been read in this sync. */
  #clockRead = false;
  /** Whether the slots up to the next end of a frame belong to one that was given up. */
  #skipping = false;
  /** Slots taken that have not been handed to the file. */
  #buffered = 0;

  constructor(
    readonly writer: CaptureWriter,
    readonly ring: Ring,
    readonly stamps: Stamps,
  ) {
    this.kring = new Kring(ring);
  }

  /** Slots whose bytes the file has not got: buffered ones, and those of a frame whose end is still to come. */
  get pending(): number {
    const waiting = this.ring.head - this.kring.hwcur;
    return this.#buffered + (waiting < 0 ? waiting + this.ring.numSlots : waiting);
  }

  /** Frames taken and not written: corrupt, too long, or lost when the file could not be written. */
  get refused(): Amount {
    return sumOf([this.#leftOut, this.writer.lost]);
  }

  /** Frames whose bytes the file has not got and may still get. */
  get unsent(): Amount {
    const { hwcur, ring } = this.kring;
    const waiting = (ring.head - hwcur + ring.numSlots) % ring.numSlots;
    return sumOf([this.writer.buffered, amountIn(ring, hwcur, waiting)]);
  }

  /** Throws CaptureError when the file cannot be written; the frames not yet taken stay in the ring. */
  sync(): void {
    const { kring, ring } = this;
    const head = kring.begin();
    this.#clockRead = false;
    let taken = 0;
    try {
      for (let slots = this.#frameSlots(head); slots > 0; slots = this.#frameSlots(head)) {
        if (!this.#take(slots)) break;
        taken += slots;
        kring.hwcur = ring.after(kring.hwcur, slots);
        this.#buffered += slots;
      }
      // Nothing waits in memory for long: it goes to the file when there is nothing else to do, or half a ring of it.
      if (this.#buffered > 0 && (taken === 0 || this.#buffered >= ring.numSlots / 2)) {
        if (this.writer.flush()) this.#buffered = 0;
      }
    } finally {
      kring.publish(ring.after(kring.hwcur, ring.numSlots - 1));
    }
  }

  /** Slots of the next frame; 0 where there is none or its end has not come. A full ring without an end counts as one. */
  #frameSlots(head: number): number {
    const { ring } = this;
    let slots = 0;
    for (let i = this.kring.hwcur; i !== head; i = ring.after(i)) {
      slots++;
      if ((ring.slotFlags(i) & MOREFRAG) === 0 || slots === ring.numSlots - 1) return slots;
    }
    return 0;
  }

  /** Takes the next frame: into the file, or out of the way and counted. Returns whether there was room for it. */
  #take(slots: number): boolean {
    const { ring, stamps, writer } = this;
    const first = this.kring.hwcur;
    let length = 0;
    let carrying = 0;
    let bad = false;
    let sec = 0;
    let nsec = 0;
    let missing = 0;
    let last = first;
    for (let k = 0, i = first; k < slots; k++, i = ring.after(i)) {
      last = i;
      const len = ring.len(i);
      if (len === 0) continue;
      const buffer = ring.bufIdx(i);
      if (!ring.slotValid(i)) bad = true;
      else if (carrying === 0 && stamps.has(buffer)) {
        sec = stamps.sec(buffer);
        nsec = stamps.nsec(buffer);
        missing = stamps.missing(buffer);
      } else if (carrying === 0) {
        this.#readClock();
        sec = this.#clock.sec;
        nsec = this.#clock.nsec;
      }
      length += len;
      carrying++;
    }
    const skip = this.#skipping;
    const endless = (ring.slotFlags(last) & MOREFRAG) !== 0;
    const tooLong = carrying > MAX_FRAME_SLOTS || endless;
    const good = !skip && !bad && !tooLong && length > 0;
    if (good && !writer.fits(length)) return false;
    this.#skipping = endless;
    if (skip) return true;
    if (bad || tooLong) {
      if (bad) this.corrupt++;
      else this.tooLong++;
      add(this.#leftOut, { frames: 1, bytes: length });
    } else if (good) {
      writer.begin(length, (length + missing) >>> 0, sec, nsec);
      for (let k = 0, i = first; k < slots; k++, i = ring.after(i))
        writer.piece(ring.u8, ring.dataStart(i), ring.len(i));
    }
    // Only now: where the file cannot be written, the frame stays in the ring as it was.
    for (let k = 0, i = first; k < slots; k++, i = ring.after(i)) {
      const buffer = ring.bufIdx(i);
      if (buffer >= FIRST_BUFFER && buffer < ring.bufLimit) stamps.clear(buffer);
    }
    return true;
  }

  #readClock(): void {
    if (!this.#clockRead) this.#clock.read();
    this.#clockRead = true;
  }
}
