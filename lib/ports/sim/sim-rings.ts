import * as abi from '../../rings/abi.js';
import type { Ring } from '../../rings/ring.js';
import { specialize } from '../../rings/specialize.js';
import * as frame from './sim-frame.js';
import * as wires from './sim-wire.js';

/**
 * Fills slots [slot, slot + n) of an rx ring with single-slot frames of `len` bytes, stamped with consecutive
 * sequence numbers from `seq`. Returns how many were filled: fewer than `n` where a stamp would have no buffer to go to.
 */
export type Fill = (slot: number, n: number, seq: number, len: number) => number;

/** Compiled for each ring; see specialize.ts. */
export function fillFor(ring: Ring, tag: number, stamp: boolean): Fill {
  return specialize(makeFill, 'sim-fill')(abi, frame, ring, tag, stamp);
}

function makeFill(
  { FIRST_BUFFER }: typeof abi,
  { ETHERTYPE, MAC_WORDS, MARK_STRIDE, MARK_WORD, MIX, SEQ_WORD, TAG_WORD }: typeof frame,
  ring: Ring,
  tag: number,
  stamp: boolean,
): Fill {
  const words = ring.i32;
  const { slot0, numSlots } = ring;
  const bufBase = ring.bufBase >> 2;
  const bufWords = ring.bufSize >> 2;
  const buffers = ring.bufLimit - FIRST_BUFFER;
  const offsets = ring.offsetMask !== 0;
  const [mac0, mac1, mac2] = MAC_WORDS;
  const tagWord = ETHERTYPE | (tag << 16);
  const tagBits = tag << 16;

  return function fill(slot: number, n: number, seq: number, len: number): number {
    const w = words;
    const trailer = (len >> 2) - 1;
    let i = slot;
    let s = seq | 0;
    for (let k = 0; k < n; k = (k + 1) | 0) {
      const at = (slot0 + (i << 2)) | 0;
      if (stamp) {
        const idx = w[at] | 0;
        if (((idx - FIRST_BUFFER) | 0) >>> 0 >= buffers) return k;
        const data = (bufBase + Math.imul(idx, bufWords)) | 0;
        const mark = Math.imul(s ^ tagBits, MIX) ^ len;
        w[data] = mac0;
        w[(data + 1) | 0] = mac1;
        w[(data + 2) | 0] = mac2;
        w[(data + TAG_WORD) | 0] = tagWord;
        w[(data + SEQ_WORD) | 0] = s;
        w[(data + MARK_WORD) | 0] = mark;
        for (let m = MARK_STRIDE; m < trailer; m = (m + MARK_STRIDE) | 0) w[(data + m) | 0] = mark + m;
        w[(data + trailer) | 0] = mark;
      }
      w[(at + 1) | 0] = len;
      if (offsets) w[(at + 2) | 0] = 0;
      s = (s + 1) | 0;
      i = (i + 1) | 0;
      if (i === numSlots) i = 0;
    }
    return n;
  };
}

/**
 * Lets single-slot frames leave slots [slot, slot + n) of a tx ring, one after the other, each when the wire is free
 * and until UNTIL; checks their stamps. Stops before the first frame that is not plain (several slots, zero length, no
 * data of the region, a stamp that is not the expected one). Returns how many left. The wire is brought up to date,
 * and of every `every`-th frame `taken` gets what latency is made from; see DepartureTimes.
 */
export type Drain = (slot: number, n: number) => number;

export function drainFor(
  ring: Ring,
  wire: wires.SimWire,
  check: boolean,
  expected: Int32Array,
  every = 0,
  taken: Float64Array = new Float64Array(1),
): Drain {
  return specialize(makeDrain, 'sim-drain')(abi, frame, wires, ring, wire, check, expected, every, taken);
}

function makeDrain(
  { FIRST_BUFFER, LEN_MASK, MOREFRAG }: typeof abi,
  { ETHERTYPE, MARK_STRIDE, MARK_WORD, MIX, SEQ_WORD, STAMP_BYTES, TAG_WORD }: typeof frame,
  { BESIDE_LEN, LEAST_LEN, SENT_BYTES, UNTIL, WIRE_FREE }: typeof wires,
  ring: Ring,
  { state, nsPerByte }: wires.SimWire,
  check: boolean,
  expected: Int32Array,
  every: number,
  taken: Float64Array,
): Drain {
  const words = ring.i32;
  const { slot0, numSlots, bufSize, offsetMask } = ring;
  const bufBase = ring.bufBase >> 2;
  const bufWords = bufSize >> 2;
  const buffers = ring.bufLimit - FIRST_BUFFER;
  const lenAndMore = LEN_MASK | MOREFRAG;
  const shortest = check ? STAMP_BYTES : 1;
  const sampled = every !== 0;
  const others = every - 1;

  return function drain(slot: number, n: number): number {
    const w = words;
    const next = expected;
    let free = state[WIRE_FREE];
    const until = state[UNTIL];
    let bytes = 0;
    let i = slot;
    let k = 0;
    let noted = 1;
    for (; k < n; k = (k + 1) | 0) {
      const at = (slot0 + (i << 2)) | 0;
      const lenFlags = w[(at + 1) | 0] | 0;
      const len = lenFlags & lenAndMore;
      const offset = offsetMask === 0 ? 0 : w[(at + 2) | 0] & offsetMask;
      // MOREFRAG is far above any length, so two comparisons refuse a frame of several slots, too.
      if (len < shortest || len > bufSize - offset) break;
      let left = 0;
      if (nsPerByte !== 0) {
        left = free + ((len < LEAST_LEN ? LEAST_LEN : len) + BESIDE_LEN) * nsPerByte;
        if (left > until) break;
      }
      if (check) {
        const idx = w[at] | 0;
        if (((idx - FIRST_BUFFER) | 0) >>> 0 >= buffers) break;
        const data = (bufBase + Math.imul(idx, bufWords) + (offset >> 2)) | 0;
        const tagWord = w[(data + TAG_WORD) | 0] | 0;
        const tag = tagWord >>> 16;
        const seq = w[(data + SEQ_WORD) | 0] | 0;
        const mark = Math.imul(seq ^ (tag << 16), MIX) ^ len;
        const trailer = (len >> 2) - 1;
        if (
          (tagWord & 0xffff) !== ETHERTYPE ||
          seq !== next[tag] ||
          w[(data + MARK_WORD) | 0] !== mark ||
          w[(data + trailer) | 0] !== mark
        )
          break;
        let m = MARK_STRIDE;
        while (m < trailer && w[(data + m) | 0] === ((mark + m) | 0)) m = (m + MARK_STRIDE) | 0;
        if (m < trailer) break;
        next[tag] = seq + 1;
        if (sampled && (seq & others) === 0) {
          taken[noted] = tag;
          taken[(noted + 1) | 0] = seq;
          taken[(noted + 2) | 0] = left;
          noted = (noted + 3) | 0;
        }
      }
      // It leaves: only now the wire is charged.
      free = left;
      bytes = (bytes + len) | 0;
      i = (i + 1) | 0;
      if (i === numSlots) i = 0;
    }
    if (sampled) taken[0] = noted;
    if (nsPerByte !== 0) state[WIRE_FREE] = free;
    state[SENT_BYTES] += bytes >>> 0; // unsigned: a full turn of the largest ring of the largest buffers is below 2^32
    return k;
  };
}
