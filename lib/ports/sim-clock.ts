import { now } from '../native.js';
import type { SimSpec } from '../spec/sim.js';

/**
 * The time of a simulated link in nanoseconds since the port was opened. It stands still while the link is down,
 * so nothing arrives and nothing leaves then, and everything else need not know about it.
 */
export class SimClock {
  /** Link time of the latest tick(). */
  time = 0;
  up = true;
  /** Longest time between two syncs, ns: a loop held up for longer than the ring holds loses frames. */
  longestGap = 0;

  readonly #step: number;
  readonly #up: number;
  readonly #down: number;
  #start = -1;
  #elapsed = 0;

  constructor(spec: Pick<SimSpec, 'clock' | 'step' | 'flap'>) {
    this.#step = spec.clock === 'virtual' ? spec.step : 0;
    this.#up = spec.flap?.up ?? Infinity;
    this.#down = spec.flap?.down ?? 0;
  }

  /** CLOCK_MONOTONIC when this clock began, ns; 0 for the virtual clock, and before the first tick(). */
  get origin(): number {
    return Math.max(0, this.#start);
  }

  /** Brings the time up to date between syncs. The virtual clock knows no time between them. */
  refresh(): void {
    if (this.#step === 0) this.tick();
  }

  /** Advances: to the machine's time, or by one step of the virtual clock. */
  tick(): void {
    let elapsed: number;
    if (this.#step > 0) elapsed = this.#elapsed + this.#step;
    else {
      const t = now();
      // The clock starts with the first sync, not with opening: what lies between is not the loop's doing.
      if (this.#start < 0) this.#start = t;
      elapsed = t - this.#start;
    }
    const gap = elapsed - this.#elapsed;
    if (gap > this.longestGap) this.longestGap = gap;
    this.#elapsed = elapsed;
    if (this.#up === Infinity) {
      this.time = elapsed;
      return;
    }
    const period = this.#up + this.#down;
    const into = elapsed % period;
    this.up = into < this.#up;
    this.time = Math.floor(elapsed / period) * this.#up + Math.min(into, this.#up);
  }
}
