import type { Port } from '../ports/port.js';
import type { Ring } from '../rings/ring.js';

/** One rx ring and the tx ring that its frames go to. */
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

/** The pairs from one port to another. A port bridged to itself is a NIC to its host stack. */
export function pairsBetween(from: Port, to: Port): RingPair[] {
  return mapRings(from.rx, to.tx);
}
