import { FIRST_BUFFER, MAX_FRAME_SLOTS, MOREFRAG, SLOT_PTR } from '../../rings/abi.js';
import { copyBytes } from '../../capture/copy-bytes.js';
import type { Opening } from '../../capture/open-capture.js';
import type { CaptureReader } from '../../capture/reader.js';
import { Kring } from '../../rings/kring.js';
import type { Ring } from '../../rings/ring.js';
import { FCS_BYTES } from '../../text/units.js';
import type { PcapSpec } from '../../names/portspec.js';
import type { Stamps } from './pcap-stamps.js';

/** What becomes of frames that the capture holds in another length than they had. */
type Short = NonNullable<PcapSpec['short']> | 'keep';

/** Fills an rx ring with the frames of a capture. */
export class CaptureRx {
  /** Frames put into the ring. */
  frames = 0;
  /** Frames left out because the capture holds only their beginning. */
  shortCaptured = 0;
  /** Such frames that were delivered: as they are, to a capture; filled up with zeros; as if they ended there. */
  readonly shortSent = { keep: 0, pad: 0, cut: 0 };
  /** Frames whose record has more bytes than they had: delivered with those, to a capture, or without. */
  readonly excess = { keep: 0, pad: 0, cut: 0 };
  /** Frames left out because they need more than 64 slots. */
  tooLong = 0;
  /** Frames left out because they have no bytes. */
  empty = 0;
  /** Slots passed over because they came back with a buffer outside the memory. */
  badBuffers = 0;
  readonly kring: Kring;
  /** Bytes of the frame that has been read and waits for room in the ring; 0: none. */
  #waiting = 0;
  /** Of those, the ones that the capture has; zeros follow. */
  #captured = 0;
  /** Bytes that the frame had and what waits has not. */
  #missing = 0;

  /** The capture, once its header has come. */
  reader: CaptureReader | undefined;

  constructor(
    readonly opening: Opening,
    readonly ring: Ring,
    readonly stamps: Stamps,
    /** undefined: kept between captures, dropped elsewhere. */
    readonly short: Exclude<Short, 'keep'> | undefined,
    /** Frames are copied on their way, and lose what stamps tell of them. */
    readonly copied: boolean,
  ) {
    this.kring = new Kring(ring);
    if (opening.known !== undefined) this.#open();
  }

  /** Whether the last frame is in the ring. */
  get ended(): boolean {
    return this.reader?.ended === true && this.#waiting === 0;
  }

  #open(): CaptureReader | undefined {
    if (this.reader !== undefined) return this.reader;
    this.reader = this.opening.reader();
    if (this.reader !== undefined) this.stamps.read(this.reader);
    return this.reader;
  }

  /** Throws CaptureError when what a FIFO brings is no capture that can be bridged. */
  sync(): void {
    const { kring, ring } = this;
    const head = kring.begin();
    kring.hwcur = head;
    const reader = this.#open();
    if (reader === undefined) return;
    let tail = kring.hwtail;
    let room = head - tail - 1;
    if (room < 0) room += ring.numSlots;
    // A ring's worth of frames at most, put in or left out: a sync does not last.
    for (let k = 0; k < ring.numSlots; k++) {
      if (this.#waiting === 0) {
        if (!reader.next()) break;
        this.#waiting = this.#judge(reader);
        if (this.#waiting === 0) continue;
      }
      const used = this.#put(reader, tail, room);
      if (used === 0) break;
      tail = ring.after(tail, used);
      room -= used;
      this.#waiting = 0;
      this.frames++;
    }
    kring.publish(tail);
  }

  /** Bytes the frame just read takes in the ring; 0 and counted where it is not delivered. */
  #judge(reader: CaptureReader): number {
    // A slot has none. Whatever length is stated: Ethernet has one FCS, and early drafts of pcapng gave it in bits.
    const fcs = reader.fcsLength > 0 ? FCS_BYTES : 0;
    const whole = Math.max(0, reader.origLen - fcs);
    const captured = fcs > 0 ? Math.min(reader.capLen, whole) : reader.capLen;
    const how = this.#treatment(captured, whole);
    const length = how === 'pad' ? whole : how === 'cut' ? Math.min(captured, whole) : captured;
    if (length > MAX_FRAME_SLOTS * this.ring.bufSize) this.tooLong++;
    else if (whole === 0) this.empty++;
    else if (how === 'drop' || length === 0) this.shortCaptured++;
    else {
      if (captured < whole) this.shortSent[how]++;
      else if (captured > whole) this.excess[how]++;
      this.#captured = Math.min(captured, length);
      this.#missing = how === 'keep' ? whole - captured : 0;
      return length;
    }
    return 0;
  }

  /** What to do about a frame of `whole` bytes whose record has `captured`. */
  #treatment(captured: number, whole: number): Short {
    const keep = !this.copied && this.stamps.onlyCaptures;
    if (captured < whole) return this.short ?? (keep ? 'keep' : 'drop');
    return keep ? 'keep' : 'cut';
  }

  /** Puts the frame that waits into the slots from `tail` on. Returns how many it took, 0 where `room` does not suffice. */
  #put(reader: CaptureReader, tail: number, room: number): number {
    const { ring, stamps } = this;
    let left = this.#waiting;
    if (Math.ceil(left / ring.bufSize) > room) return 0;
    let from = reader.offset;
    const end = from + this.#captured;
    let used = 0;
    for (let i = tail; left > 0; i = ring.after(i)) {
      if (used === room) return 0;
      used++;
      const buffer = ring.bufIdx(i);
      if (buffer < FIRST_BUFFER || buffer >= ring.bufLimit) {
        // A slot without bytes: whoever reads the ring passes over it.
        ring.setLenFlags(i, 0, MOREFRAG);
        this.badBuffers++;
        continue;
      }
      if (left === this.#waiting) stamps.set(buffer, reader.tsSec, reader.tsNsec, this.#missing);
      else stamps.clear(buffer);
      const piece = Math.min(left, ring.bufSize);
      left -= piece;
      ring.i32[ring.slotWord(i) + SLOT_PTR] = 0;
      ring.setLenFlags(i, piece, left > 0 ? MOREFRAG : 0);
      const at = ring.dataStart(i);
      const captured = Math.min(piece, end - from);
      copyBytes(reader.data, from, ring.u8, at, captured);
      if (captured < piece) ring.u8.fill(0, at + captured, at + piece);
      from += captured;
    }
    return used;
  }
}
