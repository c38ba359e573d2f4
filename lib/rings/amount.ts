import { LEN_MASK, MOREFRAG, SLOT_LEN_FLAGS } from './abi.js';
import type { Ring } from './ring.js';

/** Frames, and bytes of their data without FCS. */
export interface Amount {
  frames: number;
  bytes: number;
}

export function add(amount: Amount, { frames, bytes }: Readonly<Amount>): void {
  amount.frames += frames;
  amount.bytes += bytes;
}

export function sumOf(amounts: readonly Readonly<Amount>[]): Amount {
  const sum = { frames: 0, bytes: 0 };
  for (const amount of amounts) add(sum, amount);
  return sum;
}

/** A slot's length and flags: a frame counts with its last slot, bytes with every one. */
export function addSlot(amount: Amount, lenFlags: number): void {
  if ((lenFlags & MOREFRAG) === 0) amount.frames++;
  amount.bytes += lenFlags & LEN_MASK;
}

/** What `slots` slots of a ring hold, from slot `first` on. */
export function amountIn(ring: Ring, first: number, slots: number): Amount {
  const amount = { frames: 0, bytes: 0 };
  for (let k = 0, i = first; k < slots; k++, i = ring.after(i))
    addSlot(amount, ring.i32[ring.slotWord(i) + SLOT_LEN_FLAGS]);
  return amount;
}
