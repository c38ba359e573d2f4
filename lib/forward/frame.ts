import { MAX_FRAME_SLOTS, MOREFRAG } from '../rings/abi.js';
import { BAD_BUFFER, BAD_LENGTH, NO_TX_ROOM, TOO_MANY_SLOTS, ZERO_SLOTS } from './counters.js';
import type { Ring } from '../rings/ring.js';

/**
 * Slots the frame at the head of `rx` takes, zero-length slots among them; 0 when its end has not arrived.
 * A frame that can never end (the ring is full and no slot ends it) is taken up to the last slot, to be dropped.
 */
export function frameSlots(rx: Ring): number {
  const { space } = rx;
  for (let k = 1, i = rx.head; k <= space; k++, i = rx.after(i)) if ((rx.slotFlags(i) & MOREFRAG) === 0) return k;
  return space === rx.numSlots - 1 ? space : 0;
}

/** Of the `slots` slots at the head of `rx`, those that carry data. */
export function carryingSlots(rx: Ring, slots: number): number {
  let carrying = 0;
  for (let k = 0, i = rx.head; k < slots; k++, i = rx.after(i)) if (rx.len(i) > 0) carrying++;
  return carrying;
}

/**
 * Drops the frame of `slots` slots at the head of `rx` where it cannot be forwarded, and counts why; a frame of only
 * zero-length slots carries nothing and is passed over. Returns the slots taken: 0 where the frame is good.
 *
 * @param needed tx slots it would take; 0: it carries nothing
 * @param most   slots the tx ring takes when it is empty
 */
export function dropFrame(rx: Ring, slots: number, needed: number, most: number, counters: Float64Array): number {
  let reason = 0;
  let last = 0;
  for (let k = 0, i = rx.head; k < slots; k++, i = rx.after(i)) {
    last = i;
    if (rx.len(i) > 0 && !rx.slotValid(i)) reason = rx.bufferValid(i) ? BAD_LENGTH : BAD_BUFFER;
  }
  const carrying = carryingSlots(rx, slots);
  const endless = (rx.slotFlags(last) & MOREFRAG) !== 0;
  if (reason === 0 && (endless || Math.max(carrying, needed) > MAX_FRAME_SLOTS)) reason = TOO_MANY_SLOTS;
  if (reason === 0 && needed > most) reason = NO_TX_ROOM;
  if (reason === 0 && carrying > 0) return 0;
  if (reason !== 0) counters[reason]++;
  counters[ZERO_SLOTS] += slots - carrying;
  rx.advance(slots);
  return slots;
}

/**
 * How many of the `slots` slots of whole frames from slot `start` of `rx` come before the first frame of more than
 * 64 slots; all where there is none.
 */
export function slotsBeforeOverlong(rx: Ring, start: number, slots: number): number {
  let first = 0;
  for (let k = 0, i = start; k < slots; k++, i = rx.after(i)) {
    if ((rx.slotFlags(i) & MOREFRAG) !== 0) continue;
    if (k - first >= MAX_FRAME_SLOTS) return first;
    first = k + 1;
  }
  return slots;
}
