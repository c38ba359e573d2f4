import * as abi from '../rings/abi.js';
import * as counted from '../forward/counters.js';
import type { Histogram } from '../stats/histogram.js';
import type { Ring } from '../rings/ring.js';
import type { SequenceCheck } from '../stats/sequence.js';
import { specialize } from '../rings/specialize.js';
import { swapWord, TAG_BYTES } from './tag.js';

/**
 * Takes up to `most` frames off the rx ring, counts them, and follows the tags of those that carry one; `high` × 2^32 +
 * `low` is the time, ns. Returns the slots taken. Nothing is allocated and no system call is made.
 */
export type Count = (most: number, high: number, low: number) => number;

/** Where a counter reports tagged frames. */
export interface Tracking {
  /** The magic number that counts as ours, and what else does: asked of a tag whose magic number is another. */
  readonly magic: number;
  readonly alsoOurs: (ring: Ring, slot: number, magic: number) => boolean;
  readonly check: SequenceCheck;
  /** A frame whose number is not the expected one; the stream is as it lies in memory. */
  readonly odd: (stream: number, sequence: number) => void;
  /** From the sender's clock to ours. */
  readonly latency: Histogram;
  /** TAGGED, OTHER_CLOCK, OLD. */
  readonly sums: Float64Array;
  /** The only stream that counts; -1: all do. */
  readonly stream: number;
}

/** Positions in {@link Tracking.sums}. Frames with a tag; of these, those from the future by our clock, and very old ones. */
export const TAGGED = 0;
export const OTHER_CLOCK = 1;
export const OLD = 2;
export const SUMS = 3;

/** A tag older than this, ns, lay somewhere for long, or another clock wrote it: its age is no latency. */
const OLDEST_NS = 10e9;

export function counterFor(ring: Ring, tracking: Tracking, counters: Float64Array): Count {
  const constants = { ...abi, ...counted, TAGGED, OTHER_CLOCK, OLD, OLDEST_NS, TAG_BYTES };
  return specialize(makeCount, 'count')(constants, ring, tracking, counters, swapWord, tagWord);
}

function makeCount(
  {
    BAD_BUFFER,
    BAD_LENGTH,
    BAD_RING,
    BATCHES,
    BYTES,
    FIRST_BUFFER,
    FRAMES,
    LEN_MASK,
    MOREFRAG,
    OLD,
    OLDEST_NS,
    OTHER_CLOCK,
    RING_CUR,
    RING_HEAD,
    RING_TAIL,
    SLOTS,
    TAGGED,
    ZERO_SLOTS,
  }: typeof abi &
    typeof counted & { TAGGED: number; OTHER_CLOCK: number; OLD: number; OLDEST_NS: number; TAG_BYTES: number },
  ring: Ring,
  { magic, alsoOurs, check, odd, latency, sums, stream: only }: Tracking,
  counters: Float64Array,
  swap32: typeof swapWord,
  find: typeof tagWord,
): Count {
  const words = ring.i32;
  const { slot0, numSlots, bufSize, offsetMask } = ring;
  const headAt = ring.base + RING_HEAD;
  const curAt = ring.base + RING_CUR;
  const tailAt = ring.base + RING_TAIL;
  const bufBase = ring.bufBase >> 2;
  const bufWords = bufSize >> 2;
  const lastBuffer = ring.bufLimit - 1;
  const { expected } = check;
  /** Word of the frame where the magic number was last found: most frames are like the one before. */
  let place = 11;
  /** Whether the next slot begins a frame. */
  let begins = true;

  return function count(most: number, high: number, low: number): number {
    const w = words;
    const next = expected;
    let i = w[headAt] | 0;
    const tail = w[tailAt] | 0;
    // One test for all: the sign bit is set when head or tail, which a pipe's peer can write, is no slot of the ring.
    if ((i | tail | (numSlots - 1 - i) | (numSlots - 1 - tail)) < 0) {
      counters[BAD_RING]++;
      return 0;
    }
    let ready = (tail - i) | 0;
    if (ready < 0) ready = (ready + numSlots) | 0;
    if (ready === 0) return 0;
    let frames = 0;
    let bytes = 0;
    let tagged = 0;
    let taken = 0;
    for (; taken < ready && frames < most; taken = (taken + 1) | 0) {
      const at = (slot0 + (i << 2)) | 0;
      const slot = i;
      const idx = w[at] | 0;
      const lenFlags = w[(at + 1) | 0] | 0;
      const len = lenFlags & LEN_MASK;
      i = (i + 1) | 0;
      if (i === numSlots) i = 0;
      if (len === 0) {
        counters[ZERO_SLOTS]++;
        continue;
      }
      const offset = offsetMask === 0 ? 0 : w[(at + 2) | 0] & offsetMask;
      const first = begins;
      begins = (lenFlags & MOREFRAG) === 0;
      if (begins) frames = (frames + 1) | 0;
      bytes = bytes + len;
      if (((idx - FIRST_BUFFER) | (lastBuffer - idx)) < 0) {
        counters[BAD_BUFFER]++;
        continue;
      }
      if (bufSize - len - offset < 0) {
        counters[BAD_LENGTH]++;
        continue;
      }
      if (!first) continue;
      const data = (bufBase + Math.imul(idx, bufWords) + (offset >> 2)) | 0;
      let t = (data + place) | 0;
      if ((offset & 3) !== 0 || len < (place + 4) << 2 || w[t] !== magic) {
        const found = find(ring, slot);
        t = (data + found) | 0;
        if (found < 0) continue;
        if (w[t] === magic) place = found;
        else if (!alsoOurs(ring, slot, w[t])) continue;
      }
      const stream = w[(t - 1) | 0] >>> 16;
      if (only >= 0 && stream !== only) continue;
      tagged = (tagged + 1) | 0;
      const sequence = swap32(w[(t + 1) | 0]);
      if (sequence === next[stream]) next[stream] = sequence + 1;
      else odd(stream, sequence);
      const sentHigh = swap32(w[(t + 2) | 0]);
      const sentLow = swap32(w[(t + 3) | 0]);
      const took = (high - (sentHigh >>> 0)) * 4294967296 + low - (sentLow >>> 0);
      if (took < 0) sums[OTHER_CLOCK]++;
      else if (took < OLDEST_NS) latency.record(took);
      else sums[OLD]++;
    }
    w[headAt] = i;
    w[curAt] = i;
    counters[FRAMES] += frames;
    counters[BYTES] += bytes;
    counters[SLOTS] += taken;
    counters[BATCHES]++;
    sums[TAGGED] += tagged;
    return taken;
  };
}

/**
 * The word of the frame in `slot` where a tag's magic number would lie, by its headers; -1 where it is no UDP datagram
 * with room for one. Data that begin off a word boundary are moved to one, within their buffer.
 */
export function tagWord(ring: Ring, slot: number): number {
  const { u8 } = ring;
  const length = ring.len(slot);
  let start = ring.dataStart(slot);
  const off = start & 3;
  if (off !== 0) {
    u8.copyWithin(start - off, start, start + length);
    ring.i32[ring.slotWord(slot) + abi.SLOT_PTR] -= off;
    start -= off;
  }
  const payload = payloadOf(u8, start, length);
  return payload < 0 || length < payload + TAG_BYTES ? -1 : (payload + 2) >> 2;
}

/** Where the header behind Ethernet's and up to two VLAN tags begins, in bytes from `start`. */
export function ipHeader(u8: Uint8Array, start: number): number {
  let at = 14;
  for (; at < 14 + 8; at += 4) {
    const type = (u8[start + at - 2] << 8) | u8[start + at - 1];
    if (type !== 0x8100 && type !== 0x88a8) break;
  }
  return at;
}

/** Where the UDP payload of the frame at `start` begins, in bytes from there; -1: it is no whole UDP datagram. */
export function payloadOf(u8: Uint8Array, start: number, length: number): number {
  const at = ipHeader(u8, start);
  const ip = start + at;
  const type = (u8[ip - 2] << 8) | u8[ip - 1];
  let udp = length;
  // IPv4 without options, not a later fragment; IPv6 without extension headers: what generators send.
  if (type === 0x0800 && u8[ip] === 0x45 && u8[ip + 9] === 17) {
    if ((((u8[ip + 6] & 0x1f) << 8) | u8[ip + 7]) === 0) udp = at + 20;
  } else if (type === 0x86dd && u8[ip] >> 4 === 6 && u8[ip + 6] === 17) udp = at + 40;
  return length < udp + 8 ? -1 : udp + 8;
}
