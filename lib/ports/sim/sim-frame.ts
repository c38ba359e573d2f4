/**
 * What a simulated frame carries, as 32-bit words from the start of its data: three words of MAC addresses, then
 * EtherType and tag, the sequence number, and a mark made from tag, sequence number and length. The mark stands again
 * every 256 bytes (plus its place) and in the last whole word: a frame that was exchanged with another, sent twice,
 * cut, or put together from other frames' slots does not check out.
 */

/** dst 02:00:00:00:00:02, src 02:00:00:00:00:01: locally administered, so nobody's. Words as they lie in memory. */
export const MAC_WORDS: readonly [number, number, number] = [0x00000002, 0x00020200, 0x01000000];
/** EtherType 0x88B5, IEEE 802 local experimental, in network order in the low half of its word. */
export const ETHERTYPE = 0xb588;
export const TAG_WORD = 3;
export const SEQ_WORD = 4;
export const MARK_WORD = 5;
/** Words from one repeated mark to the next. */
export const MARK_STRIDE = 64;
/** Odd, from the golden ratio: multiplying by it is a bijection that spreads neighbouring numbers. */
export const MIX = 0x9e3779b1 | 0;
/** A frame shorter than this (bytes without FCS) has no room for the stamp; Ethernet's shortest has 60. */
export const STAMP_BYTES = 24;

/** Writes a frame of `len` bytes (without FCS) at `words[0]`. Bytes that carry no stamp are left as they are. */
export function stampFrame(words: Int32Array, len: number, tag: number, seq: number): void {
  const mark = Math.imul(seq ^ (tag << 16), MIX) ^ len;
  words.set(MAC_WORDS);
  words[TAG_WORD] = ETHERTYPE | (tag << 16);
  words[SEQ_WORD] = seq;
  words[MARK_WORD] = mark;
  for (let at = MARK_STRIDE; at < len >> 2; at += MARK_STRIDE) words[at] = mark + at;
  words[(len >> 2) - 1] = mark;
}

/** What a frame's stamp says of it. */
export type Verdict = 'good' | 'corrupt' | 'foreign';

/** Holds the frame of `len` bytes at `words[at]` against its stamp. */
export function judgeFrame(words: Int32Array, at: number, len: number): Verdict {
  const tagWord = words[at + TAG_WORD];
  if (len < STAMP_BYTES || (tagWord & 0xffff) !== ETHERTYPE) return 'foreign';
  const mark = Math.imul(words[at + SEQ_WORD] ^ (tagWord & ~0xffff), MIX) ^ len;
  const last = (len >> 2) - 1;
  if (words[at + MARK_WORD] !== mark || words[at + last] !== mark) return 'corrupt';
  for (let m = MARK_STRIDE; m < last; m += MARK_STRIDE) if (words[at + m] !== ((mark + m) | 0)) return 'corrupt';
  return 'good';
}
