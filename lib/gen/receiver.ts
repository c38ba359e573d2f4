import { BYTES, COUNTERS, FRAMES } from '../counters.js';
import { Histogram } from '../measure/histogram.js';
import { now } from '../native.js';
import type { Port } from '../port.js';
import { SequenceCheck } from '../sequence.js';
import { counterFor, OTHER_CLOCK, TAGGED, type Count, type Tracking } from './count.js';
import type { Received } from './report.js';

/** Counts what arrives at a port, on all its rx rings, and follows the tagged frames. */
export class Receiver implements Tracking {
  readonly check = new SequenceCheck();
  readonly latency = new Histogram();
  readonly sums = new Float64Array(2);
  readonly #counters = new Float64Array(COUNTERS);
  readonly #count: readonly Count[];
  readonly #first = new Int32Array(1 << 16);
  #streams = 0;
  #before = 0;

  /**
   * @param magic which frames are followed: those sent, or those sent back
   * @param stream the only stream that is followed, as it lies in memory; -1: all are
   */
  constructor(
    readonly port: Port,
    readonly magic: number,
    readonly stream = -1,
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

  /** Takes up to `most` frames that have arrived. Returns how many. */
  receive(most: number): number {
    this.port.rxsync();
    const t = now(); // after the sync: what it shows had been sent by then
    const high = Math.floor(t / 0x1_0000_0000);
    const low = t - high * 0x1_0000_0000;
    const before = this.frames;
    for (const count of this.#count) {
      const left = most - (this.frames - before);
      if (left > 0) count(left, high, low);
    }
    return this.frames - before;
  }

  /** Whether a frame waits in a ring. */
  get waiting(): boolean {
    return this.port.rx.some((ring) => ring.space > 0);
  }

  /** Numbers start at 1, so that the first frame of a stream, which is expected to be 0, always comes here. */
  readonly odd = (stream: number, sequence: number): void => {
    const { expected } = this.check;
    const first = this.#first[stream];
    if (first === 0) {
      this.#first[stream] = sequence;
      this.#streams++;
      this.#before += (sequence - 1) >>> 0;
      expected[stream] = sequence + 1;
    } else if (((sequence - first) | 0) < 0 && this.#before > 0) {
      // It was sent before the first that was seen, and came after it.
      this.#before--;
      this.check.reordered++;
    } else this.check.arrived(stream, sequence);
  };

  report(): Received {
    const { lost, duplicates, reordered } = this.check;
    return {
      frames: this.frames,
      bytes: this.#counters[BYTES],
      tagged: this.tagged,
      streams: this.#streams,
      ...{ lost, duplicates, reordered },
      before: this.#before,
      otherClock: this.sums[OTHER_CLOCK],
      latency: this.latency.toJSON(),
    };
  }
}
