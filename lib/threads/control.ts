/** Words of the shared control block. */
const STOP = 0;
const REPORT = 1;
const LOOK = 2;
const WORDS = 16;

/** Positions in Control.run. */
export const TURNS = 0;
/** Turns that moved something. */
export const BUSY_TURNS = 1;
/** Of the turns whose length was sampled: ns in all, and ns of those that moved something. */
export const SAMPLED_NS = 2;
export const BUSY_NS = 3;
/** CLOCK_MONOTONIC when the run began and the latest reading, ns. */
export const STARTED_NS = 4;
export const LATEST_NS = 5;
/** CPU time of the thread since the run began, ns. */
export const USER_NS = 6;
export const SYSTEM_NS = 7;
/** Cycles of the core for it; NaN where they cannot be read. */
export const CYCLES = 8;
/** Longest time between two looks at the clock, ns: how long the loop was held up. A sleep for lack of work is none. */
export const LONGEST_GAP_NS = 9;
const RUN_DOUBLES = 16;

/**
 * What the thread that runs ports shares with the one that started it: how far the run is, which one writes and the other
 * reads, and flags by which the other asks. Nothing here ever waits.
 */
export class Control {
  readonly #flags: Int32Array;
  /** TURNS … LONGEST_GAP_NS. */
  readonly run: Float64Array;

  constructor(readonly shared = new SharedArrayBuffer(4 * WORDS + 8 * RUN_DOUBLES)) {
    this.#flags = new Int32Array(shared, 0, WORDS);
    this.run = new Float64Array(shared, 4 * WORDS);
  }

  /** Asks the thread to send what it has and end the run. */
  stop(): void {
    Atomics.store(this.#flags, STOP, 1);
  }
  get stopping(): boolean {
    return Atomics.load(this.#flags, STOP) !== 0;
  }

  /** Asks for a message with the state of the run. */
  askReport(): void {
    Atomics.store(this.#flags, REPORT, 1);
  }
  /** Whether a report was asked for since the last call. */
  takeReport(): boolean {
    return this.#take(REPORT);
  }

  /** Asks the thread to let its ports look at their interfaces: one has changed, or seems to be gone. */
  askLook(): void {
    Atomics.store(this.#flags, LOOK, 1);
  }
  takeLook(): boolean {
    return this.#take(LOOK);
  }

  #take(flag: number): boolean {
    return Atomics.load(this.#flags, flag) !== 0 && Atomics.exchange(this.#flags, flag, 0) !== 0;
  }
}
