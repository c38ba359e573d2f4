import { COUNTERS } from '../forward/counters.js';

/** Words of the shared control block. */
const STOP = 0;
const REPORT = 1;
const WORDS = 16;

/** Doubles of the run, behind the counters of the two directions. */
const RUN = 2 * COUNTERS;
export const TURNS = 0;
/** Turns that moved something. */
export const BUSY_TURNS = 1;
/** Of the turns whose length was sampled: ns in all, and ns of those that moved something. */
export const SAMPLED_NS = 2;
export const BUSY_NS = 3;
/** CLOCK_MONOTONIC when forwarding began and the latest reading, ns. */
export const STARTED_NS = 4;
export const LATEST_NS = 5;
/** CPU time of the forwarding thread since forwarding began, ns. */
export const USER_NS = 6;
export const SYSTEM_NS = 7;
/** Cycles of the core for it; NaN where they cannot be read. */
export const CYCLES = 8;
const RUN_DOUBLES = 16;

/**
 * What the main thread and the forwarding thread share: counters that one adds to and the other reads, and the flags
 * by which the main thread asks. Nothing here ever waits.
 */
export class Control {
  readonly #flags: Int32Array;
  /** Counters a→b and b→a. */
  readonly counters: readonly [Float64Array, Float64Array];
  /** TURNS … SYSTEM_NS. */
  readonly run: Float64Array;

  constructor(readonly shared = new SharedArrayBuffer(4 * WORDS + 8 * (RUN + RUN_DOUBLES))) {
    this.#flags = new Int32Array(shared, 0, WORDS);
    const doubles = new Float64Array(shared, 4 * WORDS);
    this.counters = [doubles.subarray(0, COUNTERS), doubles.subarray(COUNTERS, RUN)];
    this.run = doubles.subarray(RUN);
  }

  /** Asks the forwarding thread to send what it has and end. */
  stop(): void {
    Atomics.store(this.#flags, STOP, 1);
  }
  get stopping(): boolean {
    return Atomics.load(this.#flags, STOP) !== 0;
  }

  /** Asks for a message with the ports' own statistics. */
  askReport(): void {
    Atomics.store(this.#flags, REPORT, 1);
  }
  /** Whether a report was asked for since the last call. */
  takeReport(): boolean {
    return Atomics.load(this.#flags, REPORT) !== 0 && Atomics.exchange(this.#flags, REPORT, 0) !== 0;
  }

  /** Share of the thread's time spent in turns that moved something, 0..1, from the turns sampled so far. */
  get busyShare(): number {
    return this.run[SAMPLED_NS] > 0 ? this.run[BUSY_NS] / this.run[SAMPLED_NS] : 0;
  }
}
