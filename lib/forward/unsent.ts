import { add, amountIn, type Amount } from '../rings/amount.js';
import type { Port } from '../ports/port.js';
import type { Ring } from '../rings/ring.js';

/** A port and those of its rings that frames were put into: its tx rings, or its host tx rings. */
export interface TxSide {
  readonly port: Port;
  readonly tx: readonly Ring[];
}

/** What a port took and will never send. Host rings are no part of it, nor of txPending(). */
export function refusedBy({ port, tx }: TxSide): Amount {
  const { frames, bytes } = (tx === port.tx && port.refused?.()) || { frames: 0, bytes: 0 };
  return { frames, bytes };
}

/**
 * What has not left. Where the port does not tell, that is what the newest slots of its tx rings hold.
 * @param most slots that were put into the rings
 */
export function unsentBy({ port, tx }: TxSide, most: number): Amount {
  const unsent = tx === port.tx ? port.unsent?.() : undefined;
  if (unsent !== undefined) return unsent;
  const sum = { frames: 0, bytes: 0 };
  let left = Math.min(most, tx === port.tx ? port.txPending() : Infinity);
  for (const ring of tx) {
    const slots = ring.intact ? Math.min(left, ring.numSlots - 1 - ring.space) : 0;
    left -= slots;
    add(sum, amountIn(ring, ring.after(ring.head, ring.numSlots - slots), slots));
  }
  return sum;
}
