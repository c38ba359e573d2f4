import { clock, native } from '../../shim/native.js';
import type { SimSpec } from '../../names/sim-name.js';

/** Positions in {@link SimClock.at}, ns: link time now, and of the latest interrupt moderation tick. */
export const TIME = 0;
export const TICK = 1;
/** CLOCK_MONOTONIC at the first tick(), or −1; time since then; longest time between two tick()s. */
const START = 2;
const ELAPSED = 3;
const LONGEST_GAP = 4;

/**
 * The time of a simulated link in nanoseconds since the port was opened. It stands still while the link is down,
 * so nothing arrives and nothing leaves then, and everything else need not know about it.
 */
export class SimClock {
  /**
   * All times. Not fields: a number with a fraction that is stored in a field or handed to a function is an object on
   * the heap, and these change with every sync.
   */
  readonly at = Float64Array.of(0, 0, -1, 0, 0);
  up = true;

  readonly #step: number;
  readonly #up: number;
  readonly #down: number;

  constructor(spec: Pick<SimSpec, 'clock' | 'step' | 'flap'>) {
    this.#step = spec.clock === 'virtual' ? spec.step : 0;
    this.#up = spec.flap?.up ?? Infinity;
    this.#down = spec.flap?.down ?? 0;
  }

  /** CLOCK_MONOTONIC when this clock began, ns; 0 for the virtual clock, and before the first tick(). */
  get origin(): number {
    return Math.max(0, this.at[START]);
  }

  /** Link time of the latest tick(), ns. */
  get time(): number {
    return this.at[TIME];
  }

  /** Longest time between two syncs, ns: a loop held up for longer than the ring holds loses frames. */
  get longestGap(): number {
    return this.at[LONGEST_GAP];
  }
  forgetGaps(): void {
    this.at[LONGEST_GAP] = 0;
  }

  /** Brings the time up to date between syncs. The virtual clock knows no time between them. */
  refresh(): void {
    if (this.#step === 0) this.tick();
  }

  /** Advances: to the machine's time, or by one step of the virtual clock. */
  tick(): void {
    const { at } = this;
    const before = at[ELAPSED];
    if (this.#step > 0) at[ELAPSED] = before + this.#step;
    else {
      native.readClock();
      // The clock starts with the first sync, not with opening: what lies between is not the loop's doing.
      if (at[START] < 0) at[START] = clock[0];
      at[ELAPSED] = clock[0] - at[START];
    }
    const elapsed = at[ELAPSED];
    if (elapsed - before > at[LONGEST_GAP]) at[LONGEST_GAP] = elapsed - before;
    if (this.#up === Infinity) {
      at[TIME] = elapsed;
      return;
    }
    const period = this.#up + this.#down;
    const into = elapsed % period;
    this.up = into < this.#up;
    at[TIME] = Math.floor(elapsed / period) * this.#up + Math.min(into, this.#up);
  }
}
