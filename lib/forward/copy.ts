/** A lane between two memories: the bytes of frames are copied. */
import { MOREFRAG, SLOT_PTR } from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import { native } from '../shim/native.js';
import type { HeadFrame } from './frame.js';
import type { LaneParts, Move } from './lane-words.js';
import { makeMove } from './move.js';
import { oddFrames } from './odd-frames.js';

/**
 * Frames of up to SHORT bytes in batches of up to FEW are copied in words; all others by one call of the shim for the
 * whole batch, which costs as much as some thirty words.
 */
const SHORT = 128;
const FEW = 4;

/**
 * The move() of two rings in different memories, or where copying was asked for. A frame longer than the tx ring's
 * buffers becomes several slots.
 * @throws RangeError when a region is larger than 4 GiB: the shim's list has 32-bit byte offsets
 */
export function copyMove(parts: LaneParts): Move {
  const { rx, tx, counters, words } = parts;
  for (const { region } of [rx, tx])
    if (region.u8.length > 2 ** 32)
      throw new RangeError(`region ${region.id} has ${region.u8.length} bytes; frames are copied within 4 GiB only`);
  // Triples for the shim. Each takes a tx slot, so a turn of the tx ring is the most a batch can need.
  const list = new Int32Array(3 * tx.numSlots);
  const copyListed = native.copier(tx.i32, rx.i32, list);
  const odd = oddFrames(rx, tx, counters, words, piecesOf(tx.bufSize), (frame, from, to, t) => {
    const pieces = listPieces(frame, from, to, t, list);
    if (pieces > 0) copyListed(pieces);
    return pieces > 0;
  });
  return makeMove(parts, odd, { list, copyListed, short: SHORT, few: FEW });
}

/** Tx slots of `bufSize` bytes that a frame needs: each of its pieces starts one. */
function piecesOf(bufSize: number): (frame: HeadFrame) => number {
  return ({ carrying, len }) => {
    let pieces = 0;
    for (let k = 0; k < carrying && k < len.length; k++) pieces += Math.ceil(len[k] / bufSize);
    return Math.max(pieces, carrying);
  };
}

/** Lists the copies that put a frame into the tx ring from slot `t` on. Returns how many; 0: a buffer there is none. */
function listPieces(frame: HeadFrame, rx: Ring, tx: Ring, t: number, list: Int32Array): number {
  let pieces = 0;
  for (let k = 0; k < frame.carrying; k++) {
    const from = rx.bufBase + frame.buffer[k] * rx.bufSize + ((frame.ptr[k] & rx.offsetMask) >>> 0);
    for (let done = 0; done < frame.len[k]; done += tx.bufSize, t = tx.after(t)) {
      if (!tx.bufferValid(t)) return 0;
      const piece = Math.min(frame.len[k] - done, tx.bufSize);
      const last = k + 1 === frame.carrying && done + piece === frame.len[k];
      tx.i32[tx.slotWord(t) + SLOT_PTR] = 0;
      tx.setLenFlags(t, piece, last ? 0 : MOREFRAG);
      list[3 * pieces] = tx.dataStart(t);
      list[3 * pieces + 1] = from + done;
      list[3 * pieces + 2] = piece;
      pieces++;
    }
  }
  return pieces;
}
