import type { Ring } from '../rings/ring.js';

/**
 * What a lane's move() leaves behind, in words of its own: they are quicker to read and write at every call than the
 * doubles that other threads see, which matters for bursts of a few frames.
 */

/** Why the last call took no more from the rx ring: one of the two below, or the slots of tx room that a frame needs. */
export const WHY_STOPPED = 0;
/** No whole frame is there. */
export const EMPTY = 0;
/** As many slots were taken as asked for; more frames may be there. */
export const BURST_SPENT = -1;

/** What has moved since it was last added to the counters. */
export const TALLY_FRAMES = 1;
/** Slots put into the tx ring beyond one a frame. */
export const TALLY_EXTRA_SLOTS = 2;
/** Bytes of data, unsigned. */
export const TALLY_BYTES = 3;
export const TALLY_BATCHES = 4;

/** Words of a lane: a cache line. */
export const WORDS = 16;

/**
 * Moves up to `burst` slots of whole frames from the rx ring to the tx ring; a frame longer than the burst moves
 * nevertheless. Never blocks; makes no system call; allocates nothing. The caller syncs the ports.
 * Returns the slots taken from the rx ring, and leaves in WHY_STOPPED why it took no more.
 */
export type Move = (burst: number) => number;

/** What a lane's move() is made from. */
export interface LaneParts {
  readonly rx: Ring;
  readonly tx: Ring;
  /** See counters.ts. */
  readonly counters: Float64Array;
  readonly words: Int32Array;
  /** Adds the tally to the counters. */
  readonly settle: () => void;
}
