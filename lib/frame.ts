import { FIRST_BUFFER, MAX_FRAME_SLOTS, MOREFRAG } from './abi.js';
import { BAD_BUFFER, BAD_LENGTH, NO_TX_ROOM, TOO_MANY_SLOTS, ZERO_SLOTS } from './counters.js';
import type { Ring } from './ring.js';

/**
 * Slots the frame at the head of `rx` takes, zero-length slots among them; 0 when its end has not arrived.
 * A frame that can never end (the ring is full and no slot ends it) counts as ending at the last slot.
 */
export function frameSlots(rx: Ring): number {
  const { space } = rx;
  for (let k = 1, i = rx.head; k <= space; k++, i = rx.after(i)) if ((rx.slotFlags(i) & MOREFRAG) === 0) return k;
  return space === rx.numSlots - 1 ? space : 0;
}

/**
 * Drops the frame of `slots` slots at the head of `rx` where it cannot be forwarded, and counts why; a frame of only
 * zero-length slots carries nothing and is passed over. Returns the slots taken: 0 where the frame is good.
 *
 * @param most slots the destination can take for one frame
 */
export function dropFrame(rx: Ring, slots: number, most: number, counters: Float64Array): number {
  let carrying = 0;
  let reason = 0;
  for (let k = 0, i = rx.head; k < slots; k++, i = rx.after(i)) {
    if (rx.len(i) === 0) continue;
    carrying++;
    if (rx.slotValid(i)) continue;
    const idx = rx.bufIdx(i);
    reason = idx < FIRST_BUFFER || idx >= rx.bufLimit ? BAD_BUFFER : BAD_LENGTH;
  }
  if (reason === 0 && carrying > MAX_FRAME_SLOTS) reason = TOO_MANY_SLOTS;
  if (reason === 0 && carrying > most) reason = NO_TX_ROOM;
  if (reason === 0 && carrying > 0) return 0;
  if (reason !== 0) counters[reason]++;
  counters[ZERO_SLOTS] += slots - carrying;
  rx.advance(slots);
  return slots;
}
