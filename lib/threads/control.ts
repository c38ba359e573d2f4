/** Words of the shared control block. */
const STOP = 0;
const REPORT = 1;
const LOOK = 2;
const WORDS = 16;

/** Positions in Control.run. */
export const TURNS = 0;
/** Turns that moved something. */
export const BUSY_TURNS = 1;
/** Of these, how many were timed, and their length together, ns: see busyNs(). */
export const TIMED_TURNS = 2;
export const TIMED_NS = 3;
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
/** Time that the thread could have run and had no CPU, ns; NaN where the system does not tell. */
export const WAITED_NS = 10;
const RUN_DOUBLES = 16;

/**
 * Time that a run, or what two readings of it differ by, spent in turns that moved something, ns: as many as there were,
 * each as long as those that were timed, on average. Undefined where none was timed.
 */
export function busyNs(run: ArrayLike<number>): number | undefined {
  if (run[BUSY_TURNS] === 0) return 0;
  return run[TIMED_TURNS] > 0 ? (run[BUSY_TURNS] * run[TIMED_NS]) / run[TIMED_TURNS] : undefined;
}

/**
 * What the thread that runs ports shares with the one that started it: how far the run is, which one writes and the other
 * reads, and flags by which the other asks. Nothing here ever waits.
 */
export class Control {
  readonly #flags: Int32Array;
  /** TURNS … WAITED_NS. */
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
