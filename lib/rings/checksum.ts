/**
 * The Internet checksum (RFC 1071). Sums are of 16-bit words as they lie in memory, low byte first: the arithmetic does
 * not depend on the byte order (RFC 1071, 2(B)) as long as the checksum is stored the same way.
 */

/** Adds `length` bytes from `from` on to `sum`; an odd last byte counts as followed by 0. Exact up to 2^37 bytes. */
export function sumBytes(bytes: Uint8Array, from: number, length: number, sum = 0): number {
  const end = from + length;
  let total = sum;
  for (let i = from; i < end; i++) total += ((i - from) & 1) === 0 ? bytes[i] : bytes[i] << 8;
  return total;
}

/** Adds the carries back in until 16 bits are left. */
export function fold(sum: number): number {
  let folded = sum;
  while (folded > 0xffff) folded = (folded % 0x10000) + Math.floor(folded / 0x10000);
  return folded;
}

/** The checksum of what was summed. */
export function checksum(sum: number): number {
  return fold(sum) ^ 0xffff;
}

/** The checksum as UDP sends it: 0 would say that there is none (RFC 768; RFC 8200, 8.1). */
export function udpChecksum(sum: number): number {
  return checksum(sum) || 0xffff;
}

/** The checksum after a 16-bit word that it covers went from `from` to `to` (RFC 1624, equation 3). */
export function replaceWord(old: number, from: number, to: number): number {
  return checksum((old ^ 0xffff) + (from ^ 0xffff) + to);
}
