import { CaptureError } from './capture-error.js';
import { refusal } from './linktype.js';
import { CaptureReader, MAX_FRAME, u16, u32, type Resolution } from './reader.js';
import type { ByteSource } from './source.js';

/** Sizes of the file header and of the header before each frame, in bytes (draft-ietf-opsawg-pcap). */
export const FILE_HEADER = 24;
export const RECORD_HEADER = 16;
export const MAGIC_US = 0xa1b2c3d4;
export const MAGIC_NS = 0xa1b23c4d;

/** Reads classic pcap files, version 2.4, of either byte order, with µs or ns timestamps. */
export class PcapReader extends CaptureReader {
  override readonly resolution: Resolution;
  override readonly snaplen: number;
  override readonly format: string;
  readonly #bigEndian: boolean;
  /** Nanoseconds in a unit of the records' second time word. */
  readonly #unit: number;

  /** Takes a source that has the file header at hand. Throws CaptureError. */
  constructor(source: ByteSource, bigEndian: boolean) {
    super(source);
    const header = source.pos;
    const bytes = source.bytes;
    const major = u16(bytes, header + 4, bigEndian);
    const minor = u16(bytes, header + 6, bigEndian);
    if (major !== 2 || minor !== 4) {
      throw new CaptureError(
        `${source.path}: pcap version ${major}.${minor} at byte 4, and only 2.4 can be read; rewrite it: tcpdump -r OLD -w NEW`,
      );
    }
    const link = u32(bytes, header + 20, bigEndian);
    // Bits above the link type: 26 = FCS length given, 28 to 31 = that length in 16-bit words.
    const refused = refusal(link & 0x03ffffff);
    if (refused !== undefined) throw new CaptureError(`${source.path}: ${refused}`);
    if (link & 0x04000000) this.fcsLength = (link >>> 28) * 2;
    this.#bigEndian = bigEndian;
    this.resolution = u32(bytes, header, bigEndian) === MAGIC_NS ? 'ns' : 'us';
    this.#unit = this.resolution === 'ns' ? 1 : 1000;
    this.snaplen = u32(bytes, header + 16, bigEndian);
    this.format =
      `pcap, ${bigEndian ? 'big' : 'little'}-endian, ${this.resolution === 'ns' ? 'ns' : 'µs'}, ` +
      `snaplen ${this.snaplen}`;
    source.pos += FILE_HEADER;
  }

  override next(): boolean {
    if (this.ended) return false;
    const source = this.source;
    if (!source.have(RECORD_HEADER)) {
      if (source.ended && source.available === 0 && source.failure === undefined) return this.stop();
      return this.short(`the header of frame ${this.frame + 1}`, source.offset, RECORD_HEADER);
    }
    const capLen = u32(source.bytes, source.pos + 8, this.#bigEndian);
    if (capLen > MAX_FRAME) {
      return this.corrupt(
        source.offset + 8,
        `frame ${this.frame + 1} claims ${capLen} captured bytes, more than the ${MAX_FRAME} that are possible`,
      );
    }
    if (!source.have(RECORD_HEADER + capLen)) {
      return this.short(`frame ${this.frame + 1}`, source.offset, RECORD_HEADER + capLen);
    }
    const at = source.pos;
    const nsec = u32(source.bytes, at + 4, this.#bigEndian) * this.#unit;
    // A second time word of a second and more is against the format, but it has one meaning.
    const carry = Math.floor(nsec / 1e9);
    this.tsSec = u32(source.bytes, at, this.#bigEndian) + carry;
    this.tsNsec = nsec - carry * 1e9;
    this.capLen = capLen;
    this.origLen = u32(source.bytes, at + 12, this.#bigEndian);
    this.offset = at + RECORD_HEADER;
    this.frame++;
    source.pos = at + RECORD_HEADER + capLen;
    return true;
  }
}
