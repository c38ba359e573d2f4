import { MOREFRAG, SLOT_PTR } from '../rings/abi.js';
import { BAD_BUFFER, BAD_RING, BATCHES, BYTES, FRAMES, SLOTS, TX_FULL, ZERO_SLOTS } from './counters.js';
import type { Forward } from './forward.js';
import { dropFrame, frameSlots } from './frame.js';
import { native } from '../shim/native.js';
import type { Ring } from '../rings/ring.js';

/**
 * Forwards between two regions: the slots are read and written here, and the bytes of a whole batch are copied by one
 * call of the shim. A slot longer than the other side's buffers becomes several slots.
 *
 * @throws RangeError when a region is larger than 4 GiB: the shim's list has 32-bit byte offsets
 */
export function copier(rx: Ring, tx: Ring, counters: Float64Array): Forward {
  for (const { region } of [rx, tx])
    if (region.u8.length > 2 ** 32)
      throw new RangeError(`region ${region.id} has ${region.u8.length} bytes; frames are copied within 4 GiB only`);
  // Triples for the shim. Each takes a tx slot, so a turn of the tx ring is the most a batch can need.
  const list = new Int32Array(3 * tx.numSlots);

  return function forwardCopy(burst: number): number {
    if (!rx.intact || !tx.intact) {
      counters[BAD_RING]++;
      return 0;
    }
    let taken = 0; // rx slots, dropped ones included
    let copies = 0;
    let frames = 0;
    let bytes = 0;
    let zero = 0;
    let t = tx.head;
    let room = tx.space;
    const ready = rx.space;
    while (taken < ready && (taken < burst || taken === 0)) {
      const slots = frameSlots(rx);
      if (slots === 0 || (taken > 0 && taken + slots > burst)) break;
      let needed = 0;
      for (let k = 0, i = rx.head; k < slots; k++, i = rx.after(i)) needed += Math.ceil(rx.len(i) / tx.bufSize);
      if (dropFrame(rx, slots, needed, tx.numSlots - 1, counters) > 0) {
        taken += slots;
        continue;
      }
      if (needed > room) {
        counters[TX_FULL]++;
        break;
      }
      taken += slots;
      if (!buffersValid(tx, t, needed)) {
        counters[BAD_BUFFER]++;
        rx.advance(slots);
        continue;
      }
      const copiesBefore = copies;
      const tBefore = t;
      let carried = 0;
      let empty = 0;
      let torn = false;
      for (let k = 0, i = rx.head; k < slots && !torn; k++, i = rx.after(i)) {
        const len = rx.len(i);
        if (len === 0) empty++;
        for (let done = 0; done < len; done += tx.bufSize) {
          const piece = Math.min(len - done, tx.bufSize);
          tx.i32[tx.slotWord(t) + SLOT_PTR] = 0;
          const to = tx.dataStart(t);
          const from = rx.dataStart(i) + done;
          // Checked before, but a pipe's peer may have written to the slots since: what goes to the shim must be right.
          torn = needed === 0 || !inside(tx, to, piece) || !inside(rx, from, piece);
          if (torn) break;
          tx.setLenFlags(t, piece, --needed > 0 ? MOREFRAG : 0);
          list[3 * copies] = to;
          list[3 * copies + 1] = from;
          list[3 * copies + 2] = piece;
          copies++;
          t = tx.after(t);
          carried += piece;
        }
      }
      rx.advance(slots);
      if (torn || needed > 0) {
        copies = copiesBefore;
        t = tBefore;
        counters[BAD_BUFFER]++;
        continue;
      }
      room -= copies - copiesBefore;
      bytes += carried;
      zero += empty;
      frames++;
    }
    if (copies > 0) {
      // Before the rx slots are given back: head is published to the port only by its next sync.
      native.copyFrames(tx.i32, rx.i32, list, copies);
      tx.moveTo(t);
      counters[FRAMES] += frames;
      counters[BYTES] += bytes;
      counters[SLOTS] += copies;
      counters[ZERO_SLOTS] += zero;
      counters[BATCHES]++;
    }
    return taken;
  };
}

/** Whether `bytes` bytes from `start` on lie among the buffers of the region. */
function inside(ring: Ring, start: number, bytes: number): boolean {
  return start >= ring.bufBase && start + bytes <= ring.u8.length;
}

/** Whether the `n` slots from slot `i` name buffers of the region. */
function buffersValid(ring: Ring, i: number, n: number): boolean {
  for (let k = 0; k < n; k++, i = ring.after(i)) if (!ring.bufferValid(i)) return false;
  return true;
}
