/** A lane with a program before it: every frame goes where the program says. */
import { inspect } from 'node:util';
import type { Frame } from '../programs/frame.js';
import { BACK, DIVERT, DROP, type OnFrame, type Verdict } from '../programs/program.js';
import type { Ring } from '../rings/ring.js';
import { COUNTERS, DIVERTED, DROPPED, FRAMES, NOT_FORWARDED, SENT_BACK } from './counters.js';
import { GATE_STOPPED, GATE_WORDS, gateMove } from './gate.js';
import { Lane, type LaneOptions } from './lane.js';
import type { Mover } from './lane-group.js';
import type { Move } from './lane-words.js';

/** What judges the frames of an rx ring. */
export interface Judge {
  readonly onFrame: OnFrame;
  /** The cursor it is called with; its port, ring and direction are filled in. */
  readonly frame: Frame;
  /** The verdict on a frame at which onFrame threw, or gave none. What it throws ends the run. */
  readonly failed: (error: unknown, frame: Frame) => Verdict;
  /** Where frames are sent back: a tx ring of the port at which they arrived, where it has one. */
  readonly back?: Ring | undefined;
  /** A tx ring of the third port, where there is one. */
  readonly third?: Ring | undefined;
}

/** Another way out of an rx ring than its lane's, for one frame at a time. */
class Exit {
  readonly lane: Lane;
  readonly #own = new Float64Array(COUNTERS);
  readonly #into: Float64Array;
  readonly #as: number;

  /** @param as where its frames are counted */
  constructor(rx: Ring, tx: Ring, as: number, { copy = false, counters }: Counting) {
    this.lane = new Lane(rx, tx, { copy, counters: this.#own });
    this.#into = counters;
    this.#as = as;
  }

  /** Takes the frame at the head. Returns whether there was room. */
  take(): boolean {
    if (this.lane.move(1) === 0) return false;
    this.lane.settle();
    this.#into[this.#as] += this.#own[FRAMES];
    for (const reason of NOT_FORWARDED.keys()) this.#into[reason] += this.#own[reason];
    this.#own.fill(0);
    return true;
  }
}

type Counting = LaneOptions & { counters: Float64Array };

/** An rx ring whose frames go where a program says. Each frame is judged once, also where it then waits for room. */
export class ProgramLane implements Mover {
  readonly rx: Ring;
  readonly tx: Ring;
  readonly whyCopy: string | undefined;
  readonly move: Move;
  readonly #lane: Lane;
  readonly #exits = new Map<unknown, Exit>();
  readonly #words = new Int32Array(GATE_WORDS);
  /** The exit that had no room when the last move() stopped. */
  #full: Exit | undefined;

  /** @throws RangeError as a lane does */
  constructor(rx: Ring, tx: Ring, judge: Judge, options: Counting) {
    const { onFrame, frame, failed, back, third } = judge;
    this.rx = rx;
    this.tx = tx;
    this.#lane = new Lane(rx, tx, options);
    this.whyCopy = this.#lane.whyCopy;
    if (back !== undefined) this.#exits.set(BACK, new Exit(rx, back, SENT_BACK, options));
    if (third !== undefined) this.#exits.set(DIVERT, new Exit(rx, third, DIVERTED, options));
    this.move = gateMove({
      rx,
      onFrame,
      frame,
      own: this.#words,
      lane: this.#lane,
      check: (verdict) => {
        if (verdict !== DROP && !this.#exits.has(verdict)) throw new TypeError(impossible(verdict, frame.port));
      },
      failed,
      leave: (verdict, slots) => {
        this.#full = undefined;
        if (verdict !== DROP) return this.#leaveBy(this.#exits.get(verdict)!);
        rx.advance(slots);
        options.counters[DROPPED]++;
        return true;
      },
      awaited: () => this.#full?.lane.stopped ?? 0,
    });
  }

  get stopped(): number {
    return this.#words[GATE_STOPPED];
  }

  get waitsFor(): Ring | undefined {
    return this.stopped > 0 ? (this.#full?.lane.tx ?? this.tx) : undefined;
  }

  settle(): void {
    this.#lane.settle();
  }

  #leaveBy(exit: Exit): boolean {
    if (exit.take()) return true;
    this.#full = exit;
    return false;
  }
}

function impossible(verdict: unknown, port: string): string {
  if (verdict === BACK) return `the verdict was BACK, and ${port} cannot send`;
  if (verdict === DIVERT) return 'the verdict was DIVERT, and there is no third port that could send';
  return `the verdict was ${inspect(verdict)}; it must be FORWARD, DROP, BACK or DIVERT`;
}
