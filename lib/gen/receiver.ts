import { BYTES, COUNTERS, FRAMES } from '../forward/counters.js';
import { Histogram } from '../stats/histogram.js';
import { now } from '../shim/native.js';
import type { Port } from '../ports/port.js';
import { SequenceCheck } from '../stats/sequence.js';
import { SpanClock } from './span.js';
import { counterFor, OLD, OTHER_CLOCK, SUMS, TAGGED, type Count, type Tracking } from './count.js';
import { UNLIMITED } from './quota.js';
import type { Ring } from '../rings/ring.js';
import type { Received } from './gen-report.js';
import { holdsAddress, type AddressRange } from './range.js';
import { REQUEST } from './tag.js';

/** A frame that comes this many behind the first one seen was reordered; no network holds one up for longer. */
const MOST_EARLY = 65_536;

/** Counts what arrives at a port, on all its rx rings, and follows the tagged frames. */
export class Receiver implements Tracking {
  readonly check = new SequenceCheck();
  readonly latency = new Histogram();
  readonly sums = new Float64Array(SUMS);
  readonly #counters = new Float64Array(COUNTERS);
  readonly #count: readonly Count[];
  readonly #first = new Int32Array(1 << 16);
  readonly #streams: number[] = [];
  readonly #span = new SpanClock();

  /**
   * @param magic which frames are followed: those sent, or those sent back
   * @param stream the only stream that is followed, as it lies in memory; -1: all are
   * @param home where frames were sent from: those that come back to it with another magic number are followed too
   */
  constructor(
    readonly port: Port,
    readonly magic: number,
    readonly stream = -1,
    readonly home?: AddressRange,
  ) {
    this.#count = port.rx.map((ring) => counterFor(ring, this, this.#counters));
  }

  get frames(): number {
    return this.#counters[FRAMES];
  }
  /** Followed frames so far. */
  get tagged(): number {
    return this.sums[TAGGED];
  }

  /** Takes the frames that have arrived, as many as the quota grants. Returns how many. */
  receive(quota = UNLIMITED): number {
    const { port } = this;
    port.rxsync();
    const waiting = slotsWaiting(port);
    if (waiting === 0) return 0;
    // After the sync: what it shows had been sent by then. A file's frames were sent in another life: of no age at all.
    const arrived = now();
    const t = port.driver === 'pcap' ? 0 : arrived;
    const high = Math.floor(t / 0x1_0000_0000);
    const low = t - high * 0x1_0000_0000;
    const before = this.frames;
    const most = quota.claim(waiting);
    for (const count of this.#count) {
      const left = most - (this.frames - before);
      if (left > 0) count(left, high, low);
    }
    const taken = this.frames - before;
    quota.settle(most, taken);
    if (taken > 0) this.#span.moved(taken, arrived);
    return taken;
  }

  /** netmap's pong exchanges the addresses and leaves the payload alone: its answers carry the mark of a request. */
  readonly alsoOurs = (ring: Ring, slot: number, magic: number): boolean =>
    magic === REQUEST && this.home !== undefined && holdsAddress(this.home, ring.u8, ring.dataStart(slot));

  /** Numbers start at 1, so that the first frame of a stream, which is expected to be 0, always comes here. */
  readonly odd = (stream: number, sequence: number): void => {
    const { expected } = this.check;
    const first = this.#first[stream];
    if (first === 0) {
      this.#first[stream] = sequence;
      this.#streams.push(stream);
      expected[stream] = sequence + 1;
      return;
    }
    const early = (first - sequence) | 0;
    // In a run so long that numbers may have wrapped, nothing is that early any more.
    if (early > 0 && early <= MOST_EARLY && (expected[stream] - first) >>> 0 < 0x8000_0000) {
      this.check.preceded(stream, sequence, first);
      this.#first[stream] = sequence;
    } else this.check.arrived(stream, sequence);
  };

  /** Frames numbered before the first that was seen. */
  get #before(): number {
    return this.#streams.reduce((total, stream) => total + ((this.#first[stream] - 1) >>> 0), 0);
  }

  report(): Received {
    const { lost, duplicates, reordered } = this.check;
    return {
      frames: this.frames,
      bytes: this.#counters[BYTES],
      tagged: this.tagged,
      streams: this.#streams.length,
      ...{ lost, duplicates, reordered },
      before: this.#before,
      otherClock: this.sums[OTHER_CLOCK],
      old: this.sums[OLD],
      latency: this.latency.toJSON(),
      span: this.#span.span,
      seen: this.#streams.map((stream) => ({
        stream,
        first: this.#first[stream],
        next: this.check.expected[stream],
        lost: this.check.lostOf[stream],
      })),
    };
  }
}

/** Slots of received frames that nobody has taken yet. */
export function slotsWaiting({ rx }: Port): number {
  let slots = 0;
  for (const ring of rx) slots += ring.space;
  return slots;
}
