import * as abi from '../rings/abi.js';
import * as counted from '../forward/counters.js';
import type { Ring } from '../rings/ring.js';
import { specialize } from '../rings/specialize.js';
import type { Flow } from './headers.js';
import { swapHalf, swapWord, REQUEST } from './tag.js';
import type { Templates } from './templates.js';

/**
 * Puts up to `most` frames into the tx ring, stamped with the time `high` × 2^32 + `low` ns, and moves head. Returns
 * how many: fewer where the ring has no more room. Nothing is allocated and no system call is made.
 */
export type Emit = (most: number, high: number, low: number) => number;

/** Compiled for each ring; see specialize.ts. `stream` is 0..65535. */
export function emitterFor(ring: Ring, flow: Flow, templates: Templates, stream: number, counters: Float64Array): Emit {
  const start = new Int32Array(
    [
      ...[flow.source.port, flow.source.address.low, flow.destination.port, flow.destination.address.low],
      ...[flow.sourceMac.low, flow.destinationMac.low],
    ].flatMap(({ first, last }) => [first, last]),
  );
  const constants = { ...abi, ...counted, REQUEST, streamHalf: swapHalf(stream) << 16 };
  const places = { ...templates.layout, start };
  return specialize(makeEmit, 'emit')(
    constants,
    ring,
    places,
    templates,
    counters,
    swapWord,
    swapHalf,
    buffersUsable,
    longPayload,
  );
}

function makeEmit(
  {
    BAD_BUFFER,
    BAD_RING,
    BYTES,
    FIRST_BUFFER,
    FRAMES,
    REQUEST,
    RING_CUR,
    RING_HEAD,
    RING_TAIL,
    SLOTS,
    streamHalf,
  }: typeof abi & typeof counted & { REQUEST: number; streamHalf: number },
  ring: Ring,
  { family, ip, source, destination, udp, start }: Templates['layout'] & { start: Int32Array },
  templates: Templates,
  counters: Float64Array,
  swap32: typeof swapWord,
  swap16: typeof swapHalf,
  usable: typeof buffersUsable,
  writeLong: typeof longPayload,
): Emit {
  const words = ring.i32;
  const halves = new Uint16Array(words.buffer, words.byteOffset, words.length * 2);
  const { slot0, numSlots, bufSize } = ring;
  const headAt = ring.base + RING_HEAD;
  const curAt = ring.base + RING_CUR;
  const tailAt = ring.base + RING_TAIL;
  const bufBase = ring.bufBase >> 2;
  const bufWords = bufSize >> 2;
  const lastBuffer = ring.bufLimit - 1;
  const offsets = ring.offsetMask !== 0;
  const { headerWords, headers, lengths, tagged, ipSums, udpSums, cycle, payload, payloadSums, randomMask, varying } =
    templates;
  const cycleLength = cycle.length;
  const sumWord = headerWords - 1;
  const sourceHalf = source >> 1;
  const destinationHalf = destination >> 1;
  const portHalf = udp >> 1;
  const ipSumHalf = (ip + 10) >> 1;
  // The buffer last filled in each slot, and how many bytes of payload pattern it holds. A buffer that left the slot
  // comes back, if at all, after another one: as long as it is the same, nobody else has written to it.
  const owned = new Int32Array(numSlots);
  const filled = new Int32Array(numSlots);
  // Source port, source address, destination port, destination address, source MAC, destination MAC of the next frame.
  const state = new Int32Array([start[0], start[2], start[4], start[6], start[8], start[10]]);
  let place = 0;
  let sequence = 1;
  let random = 0x2545f491;

  /**
   * Writes the addresses and ports of the frame of cycle entry `c` whose first word is `data`, and IPv4's checksum. Returns
   * what they add to UDP's.
   */
  function writeVarying(data: number, c: number): number {
    const h = halves;
    const next = state;
    const base = (data << 1) | 0;
    const s0 = swap32(next[1]);
    const d0 = swap32(next[3]);
    const m0 = swap32(next[5]);
    const m1 = swap32(next[4]);
    const p0 = swap16(next[0]);
    const p1 = swap16(next[2]);
    h[(base + 1) | 0] = m0;
    h[(base + 2) | 0] = m0 >>> 16;
    h[(base + 4) | 0] = m1;
    h[(base + 5) | 0] = m1 >>> 16;
    h[(base + sourceHalf) | 0] = s0;
    h[(base + sourceHalf + 1) | 0] = s0 >>> 16;
    h[(base + destinationHalf) | 0] = d0;
    h[(base + destinationHalf + 1) | 0] = d0 >>> 16;
    h[(base + portHalf) | 0] = p0;
    h[(base + portHalf + 1) | 0] = p1;
    const addressSum = ((s0 & 0xffff) + (s0 >>> 16) + (d0 & 0xffff) + (d0 >>> 16)) | 0;
    if (family === 4) {
      let ipSum = (ipSums[c] + addressSum) | 0;
      ipSum = (ipSum & 0xffff) + (ipSum >>> 16);
      ipSum = (ipSum & 0xffff) + (ipSum >>> 16);
      h[(base + ipSumHalf) | 0] = ~ipSum;
    }
    return (addressSum + p0 + p1) | 0;
  }

  /** Moves `state[at]` on within its range. Returns whether it began anew. */
  function stepOne(at: number): boolean {
    const value = state[at];
    const anew = value === start[2 * at + 1];
    state[at] = anew ? start[2 * at] : (value + 1) | 0;
    return anew;
  }

  /**
   * The next frame's values: MAC addresses step with every frame, the others as the wheels of an odometer: source port,
   * source address, destination port, destination address.
   */
  function step(): void {
    stepOne(4);
    stepOne(5);
    for (let at = 0; at < 4 && stepOne(at); at++);
  }

  return function emit(most: number, high: number, low: number): number {
    // Locals, not captured names: V8 sees a captured array as constant inside a loop only so.
    const w = words;
    let i = w[headAt] | 0;
    const tail = w[tailAt] | 0;
    // One test for all: the sign bit is set when head or tail, which a pipe's peer can write, is no slot of the ring.
    if ((i | tail | (numSlots - 1 - i) | (numSlots - 1 - tail)) < 0) {
      counters[BAD_RING]++;
      return 0;
    }
    let room = (tail - i) | 0;
    if (room < 0) room = (room + numSlots) | 0;
    if (room === 0) return 0;
    const sentHigh = swap32(high);
    const sentLow = swap32(low);
    const stampSum = (sentHigh & 0xffff) + (sentHigh >>> 16) + (sentLow & 0xffff) + (sentLow >>> 16);
    const constantSum = (stampSum + (streamHalf >>> 16) + (REQUEST & 0xffff) + (REQUEST >>> 16)) | 0;
    let bytes = 0;
    let slots = 0;
    let frames = 0;
    while (frames < most && slots < room) {
      const c = cycle[place] | 0;
      const len = lengths[c] | 0;
      const needs = len <= bufSize ? 1 : Math.ceil(len / bufSize) | 0;
      if (needs > room - slots) break;
      const at = (slot0 + (i << 2)) | 0;
      const idx = w[at] | 0;
      if (((idx - FIRST_BUFFER) | (lastBuffer - idx)) < 0 || (needs > 1 && !usable(ring, i, needs))) {
        // No buffer of the region: the slot is passed over.
        w[(at + 1) | 0] = 0;
        counters[BAD_BUFFER]++;
        slots = (slots + 1) | 0;
        i = i + 1 === numSlots ? 0 : (i + 1) | 0;
        continue;
      }
      place = place + 1 === cycleLength ? 0 : (place + 1) | 0;
      const data = (bufBase + Math.imul(idx, bufWords)) | 0;
      const isTagged = tagged[c] === 1;
      // Less than two bytes of payload: they share a word with the checksum and are 0.
      const hasBody = len >= headerWords << 2;
      const payloadAt = isTagged ? headerWords + 4 : headerWords;
      let sum = udpSums[c] | 0;
      let from = 0;
      if (randomMask !== 0 && hasBody) {
        random ^= random << 13;
        random ^= random >>> 17;
        random ^= random << 5;
        from = random & randomMask;
        const whole = len >> 2;
        const rest = len & 3;
        const cut = rest === 0 ? 0 : payload[(from + whole) | 0] & ((1 << (rest << 3)) - 1);
        const body = payloadSums[(from + whole) | 0] - payloadSums[(from + payloadAt) | 0];
        sum = (sum + (body & 0xffff) + (body >>> 16) + (cut & 0xffff) + (cut >>> 16)) | 0;
      }
      if (needs > 1) {
        writeLong(ring, i, len, payload, from);
        for (let k = 0; k < needs; k++) owned[(i + k) % numSlots] = 0;
      } else {
        if (randomMask !== 0 || owned[i] !== idx || filled[i] < len) {
          const end = (len + 3) >> 2;
          for (let m = headerWords; m < end; m = (m + 1) | 0) w[(data + m) | 0] = payload[(from + m) | 0];
          owned[i] = idx;
          filled[i] = len;
        }
        w[(at + 1) | 0] = len;
        if (offsets) w[(at + 2) | 0] = 0;
      }

      const header = Math.imul(c, headerWords);
      for (let m = 0; m < sumWord; m = (m + 1) | 0) w[(data + m) | 0] = headers[(header + m) | 0];
      if (varying) {
        sum = (sum + writeVarying(data, c)) | 0;
        step();
      }
      let upper = streamHalf;
      if (isTagged) {
        const tag = (data + headerWords) | 0;
        const sequenceWord = swap32(sequence);
        sequence = (sequence + 1) | 0;
        w[tag] = REQUEST;
        w[(tag + 1) | 0] = sequenceWord;
        w[(tag + 2) | 0] = sentHigh;
        w[(tag + 3) | 0] = sentLow;
        sum = (sum + constantSum + (sequenceWord & 0xffff) + (sequenceWord >>> 16)) | 0;
      } else {
        // The first two bytes of payload share a word with the checksum. The next four words may hold another's tag.
        upper = hasBody ? payload[(from + sumWord) | 0] & ~0xffff : 0;
        if (randomMask !== 0) sum = (sum + (upper >>> 16)) | 0;
        const end = (headerWords + 4) | 0;
        for (let m = headerWords; m < end; m = (m + 1) | 0) w[(data + m) | 0] = payload[(from + m) | 0];
      }
      sum = (sum & 0xffff) + (sum >>> 16);
      sum = (sum & 0xffff) + (sum >>> 16);
      sum = ~sum & 0xffff;
      if (sum === 0) sum = 0xffff; // 0 would say that there is none
      w[(data + sumWord) | 0] = sum | upper;

      bytes = bytes + len;
      slots = (slots + needs) | 0;
      i = (i + needs) | 0;
      if (i >= numSlots) i = (i - numSlots) | 0;
      frames = (frames + 1) | 0;
    }
    w[headAt] = i;
    w[curAt] = i;
    counters[FRAMES] += frames;
    counters[BYTES] += bytes;
    counters[SLOTS] += slots;
    return frames;
  };
}

/** Whether `n` slots from `slot` on name buffers of the region. */
function buffersUsable(ring: Ring, slot: number, n: number): boolean {
  for (let k = 0, i = slot; k < n; k++, i = ring.after(i)) {
    const idx = ring.bufIdx(i);
    if (idx < abi.FIRST_BUFFER || idx >= ring.bufLimit) return false;
  }
  return true;
}

/** Writes the payload of a frame longer than a buffer into the slots from `slot` on, by place in the frame, and sets
 * their lengths and flags. */
function longPayload(ring: Ring, slot: number, length: number, payload: Int32Array, from: number): void {
  for (let done = 0, i = slot; done < length; done += ring.bufSize, i = ring.after(i)) {
    const piece = Math.min(ring.bufSize, length - done);
    const data = (ring.bufBase + ring.bufIdx(i) * ring.bufSize) >> 2;
    const first = from + (done >> 2);
    for (let m = 0; m < (piece + 3) >> 2; m++) ring.i32[data + m] = payload[first + m];
    ring.i32[ring.slotWord(i) + abi.SLOT_PTR] = 0;
    ring.setLenFlags(i, piece, done + piece < length ? abi.MOREFRAG : 0);
  }
}
