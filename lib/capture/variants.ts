import { CaptureError } from './capture-error.js';
import { MAX_FRAME, u32 } from './reader.js';
import type { ByteSource } from './source.js';

/** Variants of pcap that are not read here, by their magic number. */
const BY_MAGIC = new Map([
  [0xa1b2cd34, "pcap with Alexey Kuznetzov's longer record headers, as some Linux distributions wrote it around 1999"],
  [0x1c0001ab, "Ixia's variant of pcap, with software timestamps"],
  [0x1c0001ac, "Ixia's variant of pcap, with hardware timestamps"],
]);

/** Variants under the usual magic, by the size of their record headers in bytes (16 is the usual one). */
const BY_RECORD_HEADER = [
  [20, "Nokia's variant of pcap, whose record headers have 20 bytes"],
  [24, 'pcap as the tcpdump of Red Hat Linux 6.1 wrote it, whose record headers have 24 bytes'],
] as const;

const USUAL = 16;

/** Throws CaptureError where the file's first word, big-endian, is the magic of a variant, in either order of bytes. */
export function refuseVariantMagic(path: string, magic: number, swapped: number): void {
  const variant = BY_MAGIC.get(magic) ?? BY_MAGIC.get(swapped);
  if (variant !== undefined) refuse(path, variant);
}

/**
 * Throws CaptureError where the first two records, at `source.pos`, make sense only as those of a variant. Looks at
 * the bytes at hand and no further.
 * @param perSecond units of the records' second time word
 */
export function refuseVariantRecords(source: ByteSource, bigEndian: boolean, perSecond: number): void {
  if (sensible(source, USUAL, bigEndian, perSecond)) return;
  const variant = BY_RECORD_HEADER.find(([header]) => sensible(source, header, bigEndian, perSecond));
  if (variant !== undefined) refuse(source.path, variant[1]);
}

function refuse(path: string, variant: string): never {
  throw new CaptureError(`${path}: ${variant}; convert it first: editcap -F pcap ${path} FILE.pcap`);
}

/** No Ethernet frame is captured shorter than its header. */
const LEAST = 14;

/**
 * Whether two records with headers of `header` bytes stand at `source.pos`. Of the usual ones, fewer make sense too, at
 * the end of what is there.
 */
function sensible(source: ByteSource, header: number, bigEndian: boolean, perSecond: number): boolean {
  const { bytes, end } = source;
  let at = source.pos;
  for (let record = 0; record < 2; record++) {
    if (at + header > end) return header === USUAL;
    const capLen = u32(bytes, at + 8, bigEndian);
    if (u32(bytes, at + 4, bigEndian) >= perSecond || capLen > MAX_FRAME) return false;
    if (header !== USUAL && (capLen < LEAST || capLen > u32(bytes, at + 12, bigEndian))) return false;
    at += header + capLen;
  }
  return at <= end || header === USUAL;
}
