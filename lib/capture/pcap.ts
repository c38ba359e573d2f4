import { CaptureError } from './capture-error.js';
import { refusal } from './linktype.js';
import { CaptureReader, MAX_FRAME, u16, u32, type Resolution } from './reader.js';
import type { ByteSource } from './source.js';
import { refuseVariantRecords } from './variants.js';

/** Sizes of the file header and of the header before each frame, in bytes (draft-ietf-opsawg-pcap). */
export const FILE_HEADER = 24;
export const RECORD_HEADER = 16;
export const MAGIC_US = 0xa1b2c3d4;
export const MAGIC_NS = 0xa1b23c4d;

/** Whether records give the frame's length before the captured one. */
type Exchanged = 'no' | 'maybe' | 'yes';

/**
 * How libpcap reads the two lengths of a record, by the version of the file (pcap_check_header() in its sf-pcap.c);
 * undefined: no version that it reads. 2.3 put the captured length first, but not all writers of 2.3 did; 543.0 is
 * DG/UX's tcpdump.
 */
function exchangedIn(major: number, minor: number): Exchanged | undefined {
  if (major === 543 && minor === 0) return 'yes';
  if (major !== 2 || minor > 4) return undefined;
  return minor === 4 ? 'no' : minor === 3 ? 'maybe' : 'yes';
}

/** Reads classic pcap files, versions 2.0 to 2.4, of either byte order, with µs or ns timestamps. */
export class PcapReader extends CaptureReader {
  override readonly resolution: Resolution;
  override readonly snaplen: number;
  override readonly format: string;
  readonly #bigEndian: boolean;
  readonly #exchanged: Exchanged;
  /** Nanoseconds in a unit of the records' second time word. */
  readonly #unit: number;

  /** Takes a source that has the file header at hand. Throws CaptureError. */
  constructor(source: ByteSource, bigEndian: boolean) {
    super(source);
    const header = source.pos;
    const bytes = source.bytes;
    const major = u16(bytes, header + 4, bigEndian);
    const minor = u16(bytes, header + 6, bigEndian);
    const exchanged = exchangedIn(major, minor);
    if (exchanged === undefined) {
      throw new CaptureError(
        `${source.path}: pcap version ${major}.${minor} at byte 4, and only 2.0 to 2.4 can be read; if another program reads it, rewrite it: editcap -F pcap OLD NEW`,
      );
    }
    this.#exchanged = exchanged;
    const link = u32(bytes, header + 20, bigEndian);
    // Bits above the link type: 26 = FCS length given, 28 to 31 = that length in 16-bit words.
    const refused = refusal(link & 0x03ffffff);
    if (refused !== undefined) throw new CaptureError(`${source.path}: ${refused}`);
    if (link & 0x04000000) this.fcsLength = (link >>> 28) * 2;
    this.#bigEndian = bigEndian;
    this.resolution = u32(bytes, header, bigEndian) === MAGIC_NS ? 'ns' : 'us';
    this.#unit = this.resolution === 'ns' ? 1 : 1000;
    this.snaplen = u32(bytes, header + 16, bigEndian);
    const version = minor === 4 ? '' : ` ${major}.${minor}`;
    this.format =
      `pcap${version}, ${bigEndian ? 'big' : 'little'}-endian, ${this.resolution === 'ns' ? 'ns' : 'µs'}, ` +
      `snaplen ${this.snaplen}`;
    source.pos += FILE_HEADER;
    refuseVariantRecords(source, bigEndian, 1e9 / this.#unit);
  }

  override next(): boolean {
    if (this.ended) return false;
    const source = this.source;
    if (!source.have(RECORD_HEADER)) {
      if (source.ended && source.available === 0 && source.failure === undefined) return this.stop();
      return this.short(`the header of frame ${this.frame + 1}`, source.offset, RECORD_HEADER);
    }
    const first = u32(source.bytes, source.pos + 8, this.#bigEndian);
    const second = u32(source.bytes, source.pos + 12, this.#bigEndian);
    const exchanged = this.#exchanged === 'yes' || (this.#exchanged === 'maybe' && first > second);
    const capLen = exchanged ? second : first;
    if (capLen > MAX_FRAME) {
      return this.corrupt(
        source.offset + (exchanged ? 12 : 8),
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
    this.origLen = exchanged ? first : second;
    this.offset = at + RECORD_HEADER;
    this.frame++;
    source.pos = at + RECORD_HEADER + capLen;
    return true;
  }
}
