import { FIRST_BUFFER, MAX_FRAME_SLOTS, MOREFRAG, SLOT_PTR } from '../rings/abi.js';
import { copyBytes } from '../capture/copy-bytes.js';
import { asPort } from '../capture/capture-error.js';
import { Opening } from '../capture/open-capture.js';
import type { CaptureReader } from '../capture/reader.js';
import { BYTES, COUNTERS, FRAMES, SLOTS, TX_FULL } from '../forward/counters.js';
import { PortError, UsageError } from '../text/errors.js';
import { Histogram } from '../stats/histogram.js';
import type { Port } from '../ports/port.js';
import type { Ring } from '../rings/ring.js';
import { FCS_BYTES, lineRate } from '../text/units.js';
import { Pacer } from './pacer.js';
import { SpanClock } from './span.js';
import type { Sent } from './gen-report.js';
import { sentOf, type Source } from './sender.js';

interface ReplayOptions {
  readonly file: string;
  /** Bits a second on the wire instead of the capture's timing. */
  readonly wireRate?: number | undefined;
  /** How much faster than the capture's own timing; Infinity: as fast as possible. */
  readonly speed: number;
  /** Times the capture is sent. */
  readonly loops: number;
}

/** ns that a sender sleeps for where a FIFO has brought nothing. */
const FIFO_NAP_NS = 1e6;

/**
 * Sends the frames of a capture, as they are, on the first tx ring: at their own timing, faster or slower, or at a
 * steady rate. A frame of which only the beginning was captured cannot be sent as it was; it is left out and counted.
 */
export class Replay implements Source {
  problem: string | undefined;
  readonly #ring: Ring;
  readonly #counters = new Float64Array(COUNTERS);
  readonly #pacer: Pacer | undefined;
  readonly #lateness = new Histogram();
  readonly #fifo: boolean;
  #opening: Opening;
  /** The capture, once its header has come. */
  #reader: CaptureReader | undefined;
  #loops: number;
  readonly #skipped = { short: 0, empty: 0, long: 0 };
  readonly #span = new SpanClock();
  /** Bytes of the frame that has been read and waits to be sent; 0: none. */
  #length = 0;
  /** When it is due, ns. */
  #due = 0;
  /** Time of the capture's first frame, seconds and ns, and when it was sent. */
  #firstSec = 0;
  #firstNsec = 0;
  #started = -1;
  /** Time on the wire of all frames before the one that waits, ns, at the rate asked for in bits. */
  #wireNs = 0;

  /**
   * @param burst most frames put into the ring at once
   * @param rate  frames a second instead of the capture's timing; Infinity: as fast as possible
   * @throws PortError when the capture cannot be read
   */
  constructor(
    readonly port: Port,
    readonly options: ReplayOptions,
    readonly burst: number,
    rate: number | undefined,
  ) {
    this.#ring = port.tx[0];
    this.#pacer = rate === undefined ? undefined : new Pacer(rate, burst);
    this.#loops = options.loops;
    this.#opening = this.#open();
    this.#fifo = this.#opening.isFifo;
    if (this.#fifo && options.loops > 1) {
      this.close();
      throw new UsageError(`${options.file} is a FIFO, and what has been read from one is gone; leave --loops out`);
    }
  }

  get frames(): number {
    return this.#counters[FRAMES];
  }
  get ended(): boolean {
    return this.#loops === 0;
  }

  send(t: number, most: number): number {
    const limit = most > 0 ? Math.min(most, this.#pacer?.due(t) ?? this.burst) : 0;
    let sent = 0;
    // Looked at first: only a frame that has been read can be waited for.
    while (this.#ready(t) && sent < limit) {
      const slots = this.#put();
      if (slots === 0) {
        this.#counters[TX_FULL]++;
        break;
      }
      this.#counters[FRAMES]++;
      this.#counters[BYTES] += this.#length;
      this.#counters[SLOTS] += slots;
      if (this.#pacer === undefined && this.options.speed !== Infinity) this.#lateness.record(t - this.#due);
      this.#length = 0;
      sent++;
    }
    if (sent > 0) {
      this.#pacer?.left(sent, t);
      this.#span.moved(sent, t);
    }
    this.port.txsync();
    return sent;
  }

  /** Whether a frame is there and due. */
  #ready(t: number): boolean {
    while (this.#length === 0) {
      if (this.#loops === 0) return false;
      const reader = (this.#reader ??= asPort(this.port.name, () => this.#opening.reader()));
      if (reader === undefined) return false; // a FIFO's header has not come yet
      if (reader.next()) this.#judge(reader, t);
      else if (!reader.ended) return false;
      else this.#again(reader);
    }
    return this.#due <= t;
  }

  /** The frame just read: its length and when it is due, or left out. */
  #judge(reader: CaptureReader, t: number): void {
    const whole = reader.origLen - (reader.fcsLength > 0 ? FCS_BYTES : 0);
    const most = Math.min(MAX_FRAME_SLOTS, this.#ring.numSlots - 1) * this.#ring.bufSize;
    const why = reader.capLen < whole ? 'short' : whole === 0 ? 'empty' : whole > most ? 'long' : undefined;
    if (why !== undefined) {
      this.#skipped[why]++;
      return;
    }
    this.#length = whole;
    if (this.#started < 0) {
      this.#started = t;
      this.#firstSec = reader.tsSec;
      this.#firstNsec = reader.tsNsec;
    }
    const { speed, wireRate } = this.options;
    if (wireRate !== undefined && wireRate !== Infinity) {
      this.#due = this.#started + this.#wireNs;
      this.#wireNs += 1e9 / lineRate(wireRate, whole + FCS_BYTES);
      return;
    }
    const after = (reader.tsSec - this.#firstSec) * 1e9 + (reader.tsNsec - this.#firstNsec);
    const atOnce = this.#pacer !== undefined || speed === Infinity || wireRate === Infinity;
    this.#due = atOnce ? t : this.#started + after / speed;
  }

  /** The capture has ended: once more, or no more. */
  #again({ problem }: CaptureReader): void {
    const none = this.frames === 0 ? `${this.options.file}: no frame in it could be sent` : undefined;
    this.problem ??= problem ?? none;
    this.#opening.close();
    this.#reader = undefined;
    this.#loops = this.frames === 0 || this.#fifo ? 0 : this.#loops - 1;
    if (this.options.wireRate === undefined) this.#started = -1;
    if (this.#loops > 0) this.#opening = this.#open();
  }

  #open(): Opening {
    return asPort(this.port.name, () => Opening.checked(this.options.file));
  }

  /** Puts the frame into the ring. Returns the slots it took; 0: no room. */
  #put(): number {
    const ring = this.#ring;
    const slots = Math.ceil(this.#length / ring.bufSize);
    if (slots > ring.space) return 0;
    const { data, offset } = this.#reader!;
    let done = 0;
    let i = ring.head;
    for (let k = 0; k < slots; k++, i = ring.after(i)) {
      const piece = Math.min(ring.bufSize, this.#length - done);
      const idx = ring.bufIdx(i);
      if (idx < FIRST_BUFFER || idx >= ring.bufLimit)
        throw new PortError(`${this.port.name}: a tx slot names no buffer`, this.port.name);
      ring.i32[ring.slotWord(i) + SLOT_PTR] = 0;
      ring.setLenFlags(i, piece, k + 1 < slots ? MOREFRAG : 0);
      copyBytes(data, offset + done, ring.u8, ring.dataStart(i), piece);
      done += piece;
    }
    ring.moveTo(i);
    return slots;
  }

  wait(t: number): number {
    if (this.#length > 0) return this.#pacer?.wait(t) ?? this.#due - t;
    return this.#loops > 0 && this.#fifo ? FIFO_NAP_NS : 0;
  }

  report(): Sent {
    const pacer = this.#pacer;
    return {
      ...sentOf(this.#counters, this.port),
      givenUp: pacer?.givenUp ?? 0,
      skipped: { ...this.#skipped },
      span: this.#span.span,
      ...pacer?.report(),
      ...(this.#lateness.count > 0 && { lateness: this.#lateness.toJSON() }),
    };
  }

  close(): void {
    this.#opening.close();
  }
}
