/** A lane whose frames change rings by exchanging buffers. */
import { BUF_CHANGED, MOREFRAG, SLOT_BUF_IDX, SLOT_LEN_FLAGS, SLOT_PTR } from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import type { HeadFrame } from './frame.js';
import type { LaneParts, Move } from './lane-words.js';
import { makeMove } from './move.js';
import { oddFrames } from './odd-frames.js';

/** The move() of a pair of rings in one memory. */
export function exchangeMove(parts: LaneParts): Move {
  const { rx, tx, counters, words } = parts;
  return makeMove(
    parts,
    oddFrames(rx, tx, counters, words, ({ carrying }) => carrying, exchangeFrame),
  );
}

/** Puts a frame of several slots, or one with empty slots in between, into the tx ring from slot `t` on. */
function exchangeFrame(frame: HeadFrame, rx: Ring, tx: Ring, t: number): boolean {
  for (let k = 0; k < frame.carrying; k++, t = tx.after(t)) {
    const rw = rx.slotWord(frame.slot[k]);
    const tw = tx.slotWord(t);
    rx.i32[rw + SLOT_BUF_IDX] = tx.i32[tw + SLOT_BUF_IDX];
    rx.i32[rw + SLOT_LEN_FLAGS] |= BUF_CHANGED;
    tx.i32[tw + SLOT_BUF_IDX] = frame.buffer[k];
    tx.i32[tw + SLOT_LEN_FLAGS] = frame.len[k] | BUF_CHANGED | (k + 1 < frame.carrying ? MOREFRAG : 0);
    if (rx.offsetMask === 0) continue;
    rx.i32[rw + SLOT_PTR] = tx.i32[tw + SLOT_PTR];
    tx.i32[tw + SLOT_PTR] = frame.ptr[k];
  }
  return true;
}
