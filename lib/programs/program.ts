/**
 * Frame programs: what runs on every frame in the forwarding thread.
 *
 *     export default ((setup) => {
 *       const queries = setup.counter('queries');
 *       return (frame) => {
 *         if (frame.u16(frame.udp + 2) !== 53) return FORWARD;
 *         queries.add();
 *         return DROP;
 *       };
 *     }) satisfies ProgramFactory;
 *
 * The factory is called once in each forwarding thread, so whatever its function closes over is that thread's own.
 */
import type { Frame } from './frame.js';

/** The frame goes on to the other port. */
export const FORWARD = 0;
/** The frame ends here. */
export const DROP = 1;
/** The frame leaves by the port at which it arrived. */
export const BACK = 2;
/** The frame leaves by the third port, where the bridge was given one. */
export const DIVERT = 3;

/** What becomes of a frame. */
export type Verdict = typeof FORWARD | typeof DROP | typeof BACK | typeof DIVERT;

/** Called for every frame. `frame` is the same object each time: what is to be kept of it has to be copied. */
export type OnFrame = (frame: Frame) => Verdict;

/** A program as one forwarding thread runs it. Times are ns of the monotonic clock, as {@link Frame.time} is. */
export interface Program {
  readonly frame: OnFrame;
  /** Called once, before the first frame. */
  start?(now: number): void;
  /** Called about ten times a second, between frames. */
  tick?(now: number): void;
  /** Called once, after the last frame. */
  stop?(now: number): void;
}

/** What a factory is given. */
export interface Setup {
  /** Number of the forwarding thread, 0 upwards. */
  readonly thread: number;
  /**
   * A counter that appears under this name in statistics, the summed one of all threads. The same name gives the same
   * counter.
   */
  counter(name: string): Counter;
}

/** Makes a program for one forwarding thread. A function alone is a program that needs no more than frames. */
export type ProgramFactory = (setup: Setup) => Program | OnFrame;

/** One named counter of a program: a cell of memory that other threads read. */
export class Counter {
  readonly #cells: Float64Array;
  readonly #at: number;

  /** Counts in `cells[at]`: whole numbers, exact up to 2^53. */
  constructor(cells: Float64Array, at: number) {
    this.#cells = cells;
    this.#at = at;
  }

  add(n = 1): void {
    this.#cells[this.#at] += n;
  }

  get value(): number {
    return this.#cells[this.#at];
  }
}

/** Named counters a program may have. */
export const COUNTERS_MAX = 64;

/** The counters that the programs of one thread asked for. */
export class Counters {
  readonly #names = new Map<string, Counter>();

  /** @param cells where they count, {@link COUNTERS_MAX} doubles; in shared memory where another thread is to read them */
  constructor(readonly cells: Float64Array = new Float64Array(COUNTERS_MAX)) {}

  /** Names in the order of their cells. */
  get names(): string[] {
    return [...this.#names.keys()];
  }

  /** @throws RangeError beyond {@link COUNTERS_MAX} names, or where `cells` ends */
  counter(name: string): Counter {
    let counter = this.#names.get(name);
    if (counter === undefined) {
      if (this.#names.size >= this.cells.length)
        throw new RangeError(`a program has at most ${this.cells.length} counters; '${name}' is one too many`);
      counter = new Counter(this.cells, this.#names.size);
      this.#names.set(name, counter);
    }
    return counter;
  }
}

/** The program that `factory` makes, with its function in place where it is nothing else. */
export function makeProgram(factory: ProgramFactory, setup: Setup): Program {
  const made = factory(setup);
  return typeof made === 'function' ? { frame: made } : made;
}
