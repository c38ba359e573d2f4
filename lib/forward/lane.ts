import type { Ring } from '../rings/ring.js';
import { BATCHES, BYTES, COUNTERS, FRAMES, SLOTS } from './counters.js';
import { copyMove } from './copy.js';
import { exchangeMove } from './exchange.js';
import type { Mover } from './lane-group.js';
import {
  TALLY_BATCHES,
  TALLY_BYTES,
  TALLY_EXTRA_SLOTS,
  TALLY_FRAMES,
  WHY_STOPPED,
  WORDS,
  type Move,
} from './lane-words.js';

/** Why frames between the two rings must be copied; undefined: their buffers can be exchanged. */
export function whyCopy(rx: Ring, tx: Ring): string | undefined {
  if (rx.region.id !== tx.region.id) return `different memories, ${rx.region.id} and ${tx.region.id}`;
  if (rx.bufBase !== tx.bufBase) return `different buffers of one memory, from bytes ${rx.bufBase} and ${tx.bufBase}`;
  if (rx.bufSize !== tx.bufSize) return `different buffer sizes, ${rx.bufSize} and ${tx.bufSize} bytes`;
  // A ring without data offsets could not say where the data starts in a buffer that came with one.
  return rx.offsetMask === tx.offsetMask ? undefined : 'only one of the two has data offsets';
}

export interface LaneOptions {
  /** Copy although buffers could be exchanged. Default false. */
  copy?: boolean;
  /** Where what moves is counted (see counters.ts); several lanes may share them. Made when absent. */
  counters?: Float64Array;
}

/** One rx ring and the tx ring its frames go to. */
export class Lane implements Mover {
  /** Moves frames; see {@link Move}. Compiled for this pair of rings. */
  readonly move: Move;
  readonly whyCopy: string | undefined;
  readonly #counters: Float64Array;
  readonly #words = new Int32Array(WORDS);

  /** @throws RangeError where frames must be copied and a region is larger than 4 GiB */
  constructor(
    readonly rx: Ring,
    readonly tx: Ring,
    { copy = false, counters = new Float64Array(COUNTERS) }: LaneOptions = {},
  ) {
    this.#counters = counters;
    this.whyCopy = copy ? 'asked for' : whyCopy(rx, tx);
    const make = this.whyCopy === undefined ? exchangeMove : copyMove;
    const settle = (): void => {
      this.settle();
    };
    this.move = make({ rx, tx, counters, words: this.#words, settle });
  }

  get stopped(): number {
    return this.#words[WHY_STOPPED];
  }

  get waitsFor(): Ring | undefined {
    return this.stopped > 0 ? this.tx : undefined;
  }

  /** What has moved so far, as counters.ts lists it. */
  get counters(): Float64Array {
    this.settle();
    return this.#counters;
  }

  /** Adds what was tallied to the counters, which others read; move() keeps small integers of its own. */
  settle(): void {
    const words = this.#words;
    const counters = this.#counters;
    const frames = words[TALLY_FRAMES];
    if (frames === 0) return;
    counters[FRAMES] += frames;
    counters[SLOTS] += frames + words[TALLY_EXTRA_SLOTS];
    counters[BYTES] += words[TALLY_BYTES] >>> 0;
    counters[BATCHES] += words[TALLY_BATCHES];
    words[TALLY_FRAMES] = words[TALLY_EXTRA_SLOTS] = words[TALLY_BYTES] = words[TALLY_BATCHES] = 0;
  }
}
