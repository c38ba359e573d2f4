import { Histogram } from '../../stats/histogram.js';

/** Arrivals remembered per ring. At the largest rings, 65,536 slots each, every frame on the way has room. */
const KEPT = 1 << 17;

/** When the frames of one rx ring arrived: those whose sequence number is a multiple of `every`, the latest of them. */
export class ArrivalTimes {
  readonly #seqs = new Int32Array(KEPT).fill(-1);
  readonly #times = new Float64Array(KEPT);
  readonly #shift: number;

  /** @param every a power of two */
  constructor(readonly every: number) {
    this.#shift = 31 - Math.clz32(every);
  }

  /** `n` frames from `seq` on arrive at `first`, `first + gap`, … (ns of link time). */
  note(seq: number, n: number, first: number, gap: number): void {
    for (let s = (seq + this.every - 1) & -this.every; ((s - seq) | 0) < n; s = (s + this.every) | 0) {
      const at = (s >>> this.#shift) & (KEPT - 1);
      this.#seqs[at] = s;
      this.#times[at] = first + ((s - seq) | 0) * gap;
    }
  }

  /** Link time at which frame `seq` arrived; NaN where it is not remembered. */
  of(seq: number): number {
    const at = (seq >>> this.#shift) & (KEPT - 1);
    return this.#seqs[at] === seq ? this.#times[at] : NaN;
  }
}

/**
 * Latency of the frames that leave a port, on the clock of the simulated links: from the moment a frame's last bit had
 * arrived to the moment its last bit has left. Every `every`-th frame is looked at.
 */
export class DepartureTimes {
  readonly histogram = new Histogram();
  /** Sampled frames that left and whose arrival was not known any more. */
  unmatched = 0;
  /** What a drain leaves here: [0] the index behind the last entry; from 1 on tag, sequence number, time of departure. */
  readonly taken: Float64Array;

  /**
   * @param arrivals by tag
   * @param slots    of the largest tx ring: no drain takes more frames
   * @param ahead    ns by which the departures' clock began later than the arrivals'
   */
  constructor(
    readonly every: number,
    readonly arrivals: ReadonlyMap<number, ArrivalTimes>,
    slots: number,
    readonly ahead: number,
  ) {
    this.taken = new Float64Array(1 + 3 * (Math.ceil(slots / every) + 1));
  }

  /** Accounts for what a drain took. */
  settle(): void {
    const { taken } = this;
    const end = taken[0];
    for (let i = 1; i < end; i += 3) this.departed(taken[i], taken[i + 1], taken[i + 2]);
  }

  departed(tag: number, seq: number, time: number): void {
    if ((seq & (this.every - 1)) !== 0) return;
    const latency = time + this.ahead - (this.arrivals.get(tag)?.of(seq) ?? NaN);
    if (Number.isNaN(latency)) this.unmatched++;
    else this.histogram.record(latency);
  }

  reset(): void {
    this.histogram.reset();
    this.unmatched = 0;
  }
}
