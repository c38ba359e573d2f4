import type { Ring } from '../rings/ring.js';
import { EMPTY, type Move } from './lane-words.js';

/** An rx ring and the tx ring its frames go to. */
export interface RingPair {
  readonly rx: Ring;
  readonly tx: Ring;
}

/**
 * Which tx ring each rx ring is forwarded to: rx ring i to tx ring i mod the number of tx rings. Each rx ring has
 * exactly one tx ring, so a flow, which its NIC keeps on one rx ring, stays in order; with fewer tx than rx rings
 * several share one, with more some stay unused. Nothing is assumed about the two sides having the same number.
 */
export function mapRings(rx: readonly Ring[], tx: readonly Ring[]): RingPair[] {
  return tx.length === 0 ? [] : rx.map((ring, i) => ({ rx: ring, tx: tx[i % tx.length] }));
}

/** What a bridge moves frames with: a lane, or one with a program before it. */
export interface Mover {
  readonly rx: Ring;
  readonly tx: Ring;
  /** Why frames are copied; undefined: buffers are exchanged. */
  readonly whyCopy: string | undefined;
  readonly move: Move;
  /** Why the last move() took no more: EMPTY, BURST_SPENT, or the slots of room that the frame at the head waits for. */
  readonly stopped: number;
  /** The tx ring in which it waits for room. */
  readonly waitsFor: Ring | undefined;
  /** Adds what was tallied to the counters. */
  settle(): void;
}

/**
 * Lanes that share a tx ring. They take turns: each may put its share of the burst into the ring, and one that is
 * stopped by a full ring goes on where it stopped, before the others.
 */
export class LaneGroup {
  readonly #lanes: readonly Mover[];
  /** Whose turn it is, and what is left of its share. */
  #at = 0;
  #left = 0;

  constructor(lanes: readonly Mover[]) {
    this.#lanes = lanes;
  }

  /** Moves up to `burst` slots, as Lane.move() does for one. */
  move(burst: number): number {
    const lanes = this.#lanes;
    if (lanes.length === 1) return lanes[0].move(burst);
    const share = Math.ceil(burst / lanes.length);
    let moved = 0;
    // One visit more than lanes: the first may only finish what was left of its share.
    for (let visits = lanes.length; visits >= 0 && moved < burst; visits--) {
      if (this.#left <= 0) this.#left = share;
      const lane = lanes[this.#at];
      const taken = lane.move(Math.min(this.#left, burst - moved));
      moved += taken;
      this.#left -= taken;
      // Cut off by a full ring, or by the caller's burst, in the midst of its share: it goes on next time.
      if (lane.stopped !== EMPTY && this.#left > 0) break;
      this.#left = 0;
      this.#at = this.#at + 1 < lanes.length ? this.#at + 1 : 0;
    }
    return moved;
  }
}
