import { now } from './native.js';

/** How far the reckoned time may be from the system's before the system's is taken anew, in ms. */
const STEP = 10;

/**
 * The time of day, finer than Date.now(): the monotonic clock, set by the time of day when first read and again
 * whenever that is set to something else. Steps of about 0.25 µs, what a double holds of milliseconds since 1970.
 */
export class WallClock {
  /** The time last read: seconds since 1970. */
  sec = 0;
  /** The time last read: nanoseconds within the second, 0 to 999,999,999. */
  nsec = 0;
  #offset = performance.timeOrigin + performance.now() - now() / 1e6;

  /** Reads the clock into `sec` and `nsec`. */
  read(): void {
    const elapsed = now() / 1e6;
    const day = Date.now();
    if (Math.abs(elapsed + this.#offset - day) > STEP) this.#offset = day - elapsed;
    const ms = elapsed + this.#offset;
    this.sec = Math.floor(ms / 1000);
    this.nsec = Math.floor((ms - this.sec * 1000) * 1e6);
  }
}
