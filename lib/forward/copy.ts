/** A lane between two memories: the bytes of frames are copied. */
import * as abi from '../rings/abi.js';
import { MOREFRAG, SLOT_PTR } from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import { specialize } from '../rings/specialize.js';
import { native } from '../shim/native.js';
import * as counted from './counters.js';
import type { HeadFrame } from './frame.js';
import * as laneWords from './lane-words.js';
import type { LaneParts, Move } from './lane-words.js';
import { oddFrames, type OddFrames } from './odd-frames.js';

/**
 * Frames of up to SHORT bytes in batches of up to FEW are copied here, in words; all others by one call of the shim for
 * the whole batch, which costs as much as some thirty words.
 */
const SHORT = 128;
const FEW = 4;

/**
 * The move() of two rings in different memories, or where copying was asked for. A frame longer than the tx ring's
 * buffers becomes several slots.
 * @throws RangeError when a region is larger than 4 GiB: the shim's list has 32-bit byte offsets
 */
export function copyMove({ rx, tx, counters, words, settle }: LaneParts): Move {
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
  return specialize(makeCopy, 'copy')(
    abi,
    counted,
    laneWords,
    rx,
    tx,
    counters,
    words,
    odd,
    settle,
    list,
    copyListed,
    SHORT,
    FEW,
  );
}

/** The hot loop. Compiled once a lane (see specialize.ts), so everything it needs comes as a parameter. */
function makeCopy(
  { FIRST_BUFFER, LEN_MASK, MOREFRAG, RING_CUR, RING_HEAD, RING_TAIL }: typeof abi,
  { BAD_RING, TX_FULL }: typeof counted,
  { BURST_SPENT, EMPTY, TALLY_BATCHES, TALLY_BYTES, TALLY_FRAMES, WHY_STOPPED }: typeof laneWords,
  rx: Ring,
  tx: Ring,
  counters: Float64Array,
  words: Int32Array,
  odd: OddFrames,
  settle: () => void,
  list: Int32Array,
  copyListed: (copies: number) => void,
  short: number,
  few: number,
): Move {
  const rxWords = rx.i32;
  const txWords = tx.i32;
  const rxSlot0 = rx.slot0;
  const txSlot0 = tx.slot0;
  const rxSlots = rx.numSlots;
  const txSlots = tx.numSlots;
  const rxHead = rx.base + RING_HEAD;
  const txHead = tx.base + RING_HEAD;
  const rxCur = rx.base + RING_CUR;
  const txCur = tx.base + RING_CUR;
  const rxTail = rx.base + RING_TAIL;
  const txTail = tx.base + RING_TAIL;
  const rxBuffers = rx.bufLimit - FIRST_BUFFER;
  const txBuffers = tx.bufLimit - FIRST_BUFFER;
  // Bytes from a region's start, 32 bits wide: their sums wrap and are right below 4 GiB.
  const rxBase = rx.bufBase | 0;
  const txBase = tx.bufBase | 0;
  const rxSize = rx.bufSize;
  const txSize = tx.bufSize;
  const shorter = Math.min(rxSize, txSize);
  const rxOffset = rx.offsetMask;
  const txOffset = tx.offsetMask;
  const lenAndMore = LEN_MASK | MOREFRAG;

  return function move(burst: number): number {
    const rm = rxWords;
    const tm = txWords;
    const own = words;
    const framesBefore = own[TALLY_FRAMES] | 0;
    let taken = 0;
    let why: number;
    for (;;) {
      why = EMPTY;
      let r = rm[rxHead] | 0;
      let t = tm[txHead] | 0;
      const rEnd = rm[rxTail] | 0;
      const tEnd = tm[txTail] | 0;
      // One test for all: the sign bit is set when a head or tail is negative or beyond its last slot.
      const outside =
        r | rEnd | (rxSlots - 1 - r) | (rxSlots - 1 - rEnd) | t | tEnd | (txSlots - 1 - t) | (txSlots - 1 - tEnd);
      if (outside < 0) {
        counters[BAD_RING]++;
        break;
      }
      let ready = (rEnd - r) | 0;
      if (ready < 0) ready = (ready + rxSlots) | 0;
      if (ready === 0) break;
      let room = (tEnd - t) | 0;
      if (room < 0) room = (room + txSlots) | 0;
      let n = (burst - taken) | 0;
      why = BURST_SPENT;
      if (room < n) {
        n = room;
        why = 1;
      }
      if (ready <= n) {
        n = ready;
        why = EMPTY;
      }
      const inWords = n <= few ? short : 0;
      let bytes = 0;
      let copies = 0;
      let moved = 0;
      for (; moved < n; moved = (moved + 1) | 0) {
        const rw = (rxSlot0 + (r << 2)) | 0;
        const tw = (txSlot0 + (t << 2)) | 0;
        const idx = rm[rw] | 0;
        const len = rm[(rw + 1) | 0] & lenAndMore;
        const to = tm[tw] | 0;
        let offset = 0;
        let most = shorter;
        if (rxOffset !== 0) {
          offset = rm[(rw + 2) | 0] & rxOffset;
          if (offset < 0) break; // netmap's widest mask keeps the sign bit
          if (rxSize - offset < most) most = (rxSize - offset) | 0;
        }
        // Unsigned comparisons, as in exchange.ts: no such buffer; no data, too much, or a frame of several slots.
        if (
          ((idx - FIRST_BUFFER) | 0) >>> 0 >= rxBuffers ||
          ((to - FIRST_BUFFER) | 0) >>> 0 >= txBuffers ||
          ((len - 1) | 0) >>> 0 >= (most > 0 ? most : 0)
        )
          break;
        const from = (((rxBase + Math.imul(idx, rxSize)) | 0) + offset) | 0;
        const dest = (txBase + Math.imul(to, txSize)) | 0;
        if (len <= inWords && ((from | dest) & 3) === 0) {
          let f = from >>> 2;
          let d = dest >>> 2;
          const end = (f + (len >> 2)) | 0;
          while (f < end) {
            tm[d] = rm[f] | 0;
            f = (f + 1) | 0;
            d = (d + 1) | 0;
          }
          if ((len & 3) !== 0) {
            const beyond = -1 << ((len & 3) << 3);
            tm[d] = (tm[d] & beyond) | (rm[f] & ~beyond);
          }
        } else {
          list[copies] = dest;
          list[(copies + 1) | 0] = from;
          list[(copies + 2) | 0] = len;
          copies = (copies + 3) | 0;
        }
        tm[(tw + 1) | 0] = len;
        if (txOffset !== 0) tm[(tw + 2) | 0] = 0;
        bytes = (bytes + len) | 0;
        r = (r + 1) | 0;
        if (r === rxSlots) r = 0;
        t = (t + 1) | 0;
        if (t === txSlots) t = 0;
      }
      if (moved > 0) {
        // Before the slots change hands: a pipe's peer may read heads at any time.
        if (copies > 0) copyListed((copies / 3) | 0);
        rm[rxHead] = r;
        rm[rxCur] = r;
        tm[txHead] = t;
        tm[txCur] = t;
        own[TALLY_FRAMES] = own[TALLY_FRAMES] + moved;
        own[TALLY_BYTES] = own[TALLY_BYTES] + bytes;
        taken = (taken + moved) | 0;
      }
      if (moved === n) break;
      // A frame that is not plain: the readable way, then on.
      const slots = odd((burst - taken) | 0, taken === 0) | 0;
      why = own[WHY_STOPPED];
      if (slots === 0) break;
      taken = (taken + slots) | 0;
      if (taken >= burst) break;
    }
    own[WHY_STOPPED] = why;
    if (why > 0) counters[TX_FULL]++;
    if (own[TALLY_FRAMES] !== framesBefore) own[TALLY_BATCHES]++;
    if (own[TALLY_BYTES] < 0) settle();
    return taken;
  };
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
