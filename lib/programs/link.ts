import { randomStream } from '../stats/random.js';
import { FCS_BYTES } from '../text/units.js';

/** A link as it is to behave, one way. Shares are probabilities, 0..1; times ns. */
export interface LinkSpec {
  /** From the end of a frame's transmission to its arrival. */
  readonly delay?: number;
  /** The most by which the delay varies, up and down, evenly; frames keep their order nevertheless. */
  readonly jitter?: number;
  /** Bits per second, of frames with their FCS; absent: no limit. */
  readonly rate?: number;
  /** Bytes with FCS that may wait for the link; what comes on top is lost. Absent: no limit. */
  readonly queue?: number;
  readonly loss?: number;
  readonly duplicate?: number;
  /** Frames that skip the delay, and so overtake others. */
  readonly reorder?: number;
  /** Where the random numbers start; default 1. */
  readonly seed?: number;
}

/**
 * One way of an emulated link: says of each frame when it arrives, how often, or that it is lost. It holds no frame.
 *
 * Loss, duplication, reordering and jitter draw from random streams of their own, one number a frame: with the same
 * seed the same frames are lost, whatever the other settings and whenever the frames come.
 */
export class Link {
  readonly #spec: Required<LinkSpec>;
  readonly #loss: () => number;
  readonly #duplicate: () => number;
  readonly #reorder: () => number;
  readonly #jitter: () => number;
  /** Moments in ns: [0] when the link is free again, [1] the latest arrival. An array, because these have fractions. */
  readonly #at = new Float64Array(2);

  /** Copies of the last frame that arrive: 0, 1 or 2. */
  copies = 0;
  /** When the last frame arrives, ns on the clock of `now`. Both copies of a doubled one arrive then. */
  due = 0;
  /** Frames lost by chance. */
  lost = 0;
  /** Frames lost because the queue was full. */
  overflowed = 0;
  duplicated = 0;
  reordered = 0;

  constructor(spec: LinkSpec) {
    const { delay = 0, jitter = 0, rate = Infinity, queue = Infinity, loss = 0, duplicate = 0, reorder = 0 } = spec;
    const { seed = 1 } = spec;
    this.#spec = { delay, jitter, rate, queue, loss, duplicate, reorder, seed };
    // Seeds of streams lie apart by an odd number without a pattern, so that neighbouring seeds share none.
    const stream = (k: number) => randomStream(seed + Math.imul(k, 0x9e3779b1));
    this.#loss = stream(0);
    this.#duplicate = stream(1);
    this.#reorder = stream(2);
    this.#jitter = stream(3);
    this.#at[1] = -Infinity;
  }

  /** Decides what becomes of a frame of `length` bytes without FCS that comes at `now`; see `copies` and `due`. */
  decide(now: number, length: number): void {
    const { delay, jitter, rate, queue, loss, duplicate, reorder } = this.#spec;
    const at = this.#at;
    const lost = this.#loss() < loss;
    const doubled = this.#duplicate() < duplicate;
    const overtakes = this.#reorder() < reorder;
    const varied = delay + (2 * this.#jitter() - 1) * jitter;
    this.copies = 0;
    if (lost) {
      this.lost++;
      return;
    }
    const bytes = length + FCS_BYTES;
    const starts = Math.max(now, at[0]);
    if (((starts - now) * rate) / 8e9 + bytes > queue && starts > now) {
      this.overflowed++;
      return;
    }
    const sent = starts + (bytes * 8e9) / rate;
    at[0] = sent;
    if (overtakes) this.due = sent;
    else this.due = at[1] = Math.max(at[1], sent + Math.max(0, varied));
    this.copies = doubled ? 2 : 1;
    if (overtakes) this.reordered++;
    if (doubled) this.duplicated++;
  }
}
