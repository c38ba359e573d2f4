/**
 * Every buffer of a pipe memory belongs to exactly one slot. A process killed between the two stores of an exchange
 * leaves one buffer in two slots and another in none. It had one of its own slots in hand, and nobody else touches
 * those: the buffer in no slot goes where the doubled one is second.
 */
import { FIRST_BUFFER, SLOT_BUF_IDX, SLOT_LEN_FLAGS, SLOT_WORDS } from '../../rings/abi.js';
import { native } from '../../shim/native.js';
import { damaged, type PipeMemory } from './pipe-memory.js';
import * as layout from './pipe-layout.js';

/** Snapshots taken before giving up, a millisecond apart: a process held up in mid-exchange needs time to finish. */
const TRIES = 500;

/** Words of slots, by who may be writing them now. */
interface Slots {
  /** Of closed ends: frames that wait to be read, then all others. Nobody writes these. */
  waiting: number[];
  idle: number[];
  /** Of open ends: their owners may be exchanging buffers among them at this moment. */
  live: number[];
}

/**
 * Puts lost buffers of closed ends back. Open ends go on meanwhile. Needs the guard.
 * Returns how many were put back.
 * @param opening lock file of the end that is being opened: held, yet not in use
 * @throws PortError when shared words make no sense
 */
export function repair(memory: PipeMemory, opening: string, port: string): number {
  const limit = layout.firstBuffer(memory.geometry.slots, memory.pipes().length);
  const { i32 } = memory.region;
  const seen = new Uint8Array(limit);
  let before = '';
  for (let tries = 0; tries < TRIES; tries++) {
    const open = memory.files.live(port);
    open.delete(opening);
    const now = [...open].sort().join(' ');
    // What an end held before it died says nothing about what is lost.
    if (now !== before) seen.fill(0);
    before = now;
    const holes = look(i32, sortSlots(memory, open, port), seen, limit);
    if (holes.length === 0) return 0;
    const lost: number[] = [];
    for (let idx = FIRST_BUFFER; idx < limit; idx++) if (seen[idx] === 0) lost.push(idx);
    // More missing than holes: an open end has some in hand. Look again until it was seen putting them down.
    if (lost.length === holes.length) {
      for (const [n, word] of holes.entries()) {
        i32[word + SLOT_BUF_IDX] = lost[n];
        i32[word + SLOT_LEN_FLAGS] = 0;
      }
      return holes.length;
    }
    native.sleepNs(1e6);
  }
  throw damaged(port, memory.files);
}

/** Slots of closed ends that hold no buffer of their own. Marks what is seen anywhere. */
function look(i32: Int32Array, slots: Slots, seen: Uint8Array, limit: number): number[] {
  const holder = new Int32Array(limit);
  const holes: number[] = [];
  for (const word of [...slots.waiting, ...slots.idle]) {
    const idx = i32[word + SLOT_BUF_IDX];
    if (idx < FIRST_BUFFER || idx >= limit || holder[idx] !== 0) holes.push(word);
    else {
      holder[idx] = word;
      seen[idx] = 1;
    }
  }
  for (const word of slots.live) {
    const idx = i32[word + SLOT_BUF_IDX];
    if (idx < FIRST_BUFFER || idx >= limit) continue;
    // Slots pass from open ends to closed ones, never back: this buffer is the open end's.
    if (holder[idx] !== 0) holes.push(holder[idx]);
    holder[idx] = 0;
    seen[idx] = 1;
  }
  return holes;
}

/** Whose every slot is: a sent slot that was not given back is the reader's, all others are the sender's. */
function sortSlots(memory: PipeMemory, open: ReadonlySet<string>, port: string): Slots {
  const { i32 } = memory.region;
  const { slots } = memory.geometry;
  const sorted: Slots = { waiting: [], idle: [], live: [] };
  for (const [k, id] of memory.pipes().entries()) {
    const live = [open.has(memory.files.lockPath(id, 'master')), open.has(memory.files.lockPath(id, 'slave'))];
    for (const side of [0, 1]) {
      const tx = memory.ring(k, side, 0, port);
      const rx = memory.ring(k, 1 - side, 1, port);
      const cons = Atomics.load(i32, layout.consWord(k, side));
      let sent = Atomics.load(i32, layout.prodWord(k, side)) - cons;
      if (sent < 0) sent += slots;
      const rest = live[side] ? sorted.live : sorted.idle;
      for (let i = 0; i < slots; i++) {
        rest.push(tx.slot0 + i * SLOT_WORDS);
        const behind = i < cons ? i - cons + slots : i - cons;
        const readers = live[1 - side] ? sorted.live : sorted.waiting;
        (behind < sent ? readers : rest).push(rx.slot0 + i * SLOT_WORDS);
      }
    }
  }
  return sorted;
}
