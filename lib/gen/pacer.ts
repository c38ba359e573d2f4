import { Histogram } from '../stats/histogram.js';
import type { Sent } from './gen-report.js';

/**
 * Says how many frames may leave by now, and measures how evenly they did. A sender that was held up catches up by at
 * most `bound` frames: what it is further behind is given up, so that it never bursts for long.
 */
export class Pacer {
  /** Times between one frame and the next, ns. */
  readonly gaps = new Histogram();
  /** Frames of the schedule that were given up. */
  givenUp = 0;
  /** Sum of |time between two frames − nominal|, ns. */
  deviation = 0;
  /** ns from frame to frame; 0: as fast as possible. */
  readonly gap: number;
  /** Time of the first frame of the schedule, and frames that have left since. Kept apart, so that nothing adds up. */
  #origin = -1;
  #count = 0;
  #latest = -1;

  constructor(
    /** Frames a second; Infinity: as fast as possible. */
    readonly rate: number,
    readonly bound: number,
  ) {
    this.gap = rate === Infinity ? 0 : 1e9 / rate;
  }

  /** Frames that may leave at time `t`. The schedule begins with the first call. */
  due(t: number): number {
    if (this.gap === 0) return this.bound;
    if (this.#origin < 0) this.#origin = t;
    const due = Math.floor((t - this.#origin) / this.gap) + 1 - this.#count;
    if (due <= this.bound) return due;
    const behind = due - this.bound;
    this.givenUp += behind;
    this.#origin += behind * this.gap;
    return this.bound;
  }

  /** ns from `t` until the next frame is due. */
  wait(t: number): number {
    return this.#origin < 0 ? 0 : this.#origin + this.#count * this.gap - t;
  }

  /** `n` frames left at time `t`. */
  left(n: number, t: number): void {
    this.#count += n;
    if (this.gap === 0) return;
    const together = this.#latest < 0 ? n - 1 : n;
    if (this.#latest >= 0) {
      this.gaps.record(t - this.#latest);
      this.deviation += Math.abs(t - this.#latest - this.gap);
      this.#zeros(together - 1);
    } else this.#zeros(together);
    this.#latest = t;
  }

  /** Frames that left together with the one before. */
  #zeros(n: number): void {
    if (n <= 0) return;
    this.gaps.record(0, n);
    this.deviation += n * this.gap;
  }

  /** What a report says of pacing; nothing where there was none. */
  report(): Pick<Sent, 'targetPps' | 'gapNs' | 'givenUp' | 'gaps' | 'meanDeviationNs'> {
    if (this.gap === 0) return { givenUp: 0 };
    const { gap: gapNs, gaps, deviation, givenUp, rate } = this;
    return {
      givenUp,
      targetPps: rate,
      gapNs,
      gaps: gaps.toJSON(),
      meanDeviationNs: deviation / Math.max(1, gaps.count),
    };
  }
}
