/**
 * What a generated frame carries at the beginning of its UDP payload, in network byte order:
 *
 *     0  stream     u16   which run and ring sent it
 *     2  magic      u32   REQUEST, or REPLY when it was sent back by `pong`
 *     6  sequence   u32   1, 2, 3 … within the stream
 *    10  sent       u64   CLOCK_MONOTONIC of the sender, ns
 *
 * 18 bytes, as much as a 64-byte frame with IPv4 has room for. Payloads begin two bytes before a word boundary, whatever
 * the headers (14 + 4 a VLAN tag, 20 or 40, 8), so that everything behind the stream number is aligned.
 */
export const TAG_BYTES = 18;

/** The magic numbers as words in memory, i.e. with their bytes reversed: on the wire 6e 6d 62 3f, "nmb?", and "nmb!". */
export const REQUEST = 0x3f626d6e;
export const REPLY = 0x21626d6e;

/** Reverses the bytes of a 32-bit word: between the number and its place in memory, where the network wants it reversed. */
export function swapWord(x: number): number {
  return (x << 24) | ((x & 0xff00) << 8) | ((x >>> 8) & 0xff00) | (x >>> 24);
}

/** Reverses the bytes of a 16-bit word. */
export function swapHalf(x: number): number {
  return ((x & 0xff) << 8) | (x >>> 8);
}
