import { ETHERNET } from './linktype.js';
import { MAGIC_NS, MAGIC_US, RECORD_HEADER } from './pcap.js';
import {
  BYTE_ORDER_MAGIC,
  ENHANCED_PACKET,
  IF_TSOFFSET,
  IF_TSRESOL,
  INTERFACE_DESCRIPTION,
  SECTION_HEADER,
} from './pcapng.js';
import { u32, type Resolution } from './reader.js';

/** Bytes being put together, little-endian. */
export class Output {
  used = 0;
  constructor(readonly bytes: Uint8Array) {}

  u32(value: number): void {
    const { bytes, used } = this;
    bytes[used] = value;
    bytes[used + 1] = value >>> 8;
    bytes[used + 2] = value >>> 16;
    bytes[used + 3] = value >>> 24;
    this.used = used + 4;
  }
}

/** How a kind of capture file is written: little-endian, frames of Ethernet. */
interface WriteForm {
  /** Most bytes in front of a frame and behind it. */
  readonly overhead: number;
  header(out: Output, snaplen: number): void;
  /** What stands in front of a frame of `length` bytes. Returns false if its time could not be kept. */
  begin(out: Output, length: number, origLen: number, sec: number, nsec: number): boolean;
  /** What stands behind it. */
  end(out: Output, length: number): void;
  /** Of the record at `at`, behind the header: its bytes, and those of the frame in it, -1 where there is none. */
  measure(bytes: Uint8Array, at: number): [length: number, frame: number];
}

/** 2.4, as two 16-bit words, major first. */
const VERSION = 2 | (4 << 16);
const MAX_U32 = 0xffffffff;

/** Classic pcap, version 2.4: times from 1970 to 2106, those outside become the nearest. */
export class PcapForm implements WriteForm {
  readonly overhead = RECORD_HEADER;
  constructor(public resolution: Resolution) {}

  header(out: Output, snaplen: number): void {
    for (const word of [this.resolution === 'ns' ? MAGIC_NS : MAGIC_US, VERSION, 0, 0, snaplen, ETHERNET])
      out.u32(word);
  }

  begin(out: Output, length: number, origLen: number, sec: number, nsec: number): boolean {
    const late = sec > MAX_U32;
    const kept = sec >= 0 && !late;
    const nearest = kept ? nsec : late ? 999_999_999 : 0;
    out.u32(kept ? sec : late ? MAX_U32 : 0);
    out.u32(this.resolution === 'ns' ? nearest : Math.floor(nearest / 1000));
    out.u32(length);
    out.u32(origLen);
    return kept;
  }

  end(): void {
    // Nothing stands behind a frame.
  }

  measure(bytes: Uint8Array, at: number): [length: number, frame: number] {
    const frame = u32(bytes, at + 8, false);
    return [RECORD_HEADER + frame, frame];
  }
}

/** Seconds that the times of one interface span, of the 2⁶⁴ ns (584 years) that they can: times are unsigned. */
const ERA = 2 ** 34;
/** Type, length, interface, time, both lengths; and the length again. */
const PACKET_HEADER = 28;
const TRAILER = 4;
const SECTION_LENGTH = 28;
/** Type, length, link type, snaplen, if_tsresol, if_tsoffset, end of options, length again. */
const INTERFACE_LENGTH = 44;

/**
 * pcapng, version 1.0, times in ns. One interface, whose times begin in 1970; another with its own offset (if_tsoffset)
 * is described when a frame's time does not fit, so that every time is kept.
 */
export class PcapngForm implements WriteForm {
  readonly resolution = 'ns';
  readonly overhead = INTERFACE_LENGTH + PACKET_HEADER + 3 + TRAILER;
  readonly #eras = new Map<number, number>();
  #snaplen = 0;

  header(out: Output, snaplen: number): void {
    this.#snaplen = snaplen;
    // The length of the section is not known, which all ones say.
    for (const word of [SECTION_HEADER, SECTION_LENGTH, BYTE_ORDER_MAGIC, 1, MAX_U32, MAX_U32, SECTION_LENGTH])
      out.u32(word);
    this.#describe(out, 0);
  }

  begin(out: Output, length: number, origLen: number, sec: number, nsec: number): boolean {
    const era = Math.floor(sec / ERA);
    const since = sec - era * ERA;
    const id = this.#eras.get(era) ?? this.#describe(out, era);
    // since × 10⁹ + nsec as two words, in steps that stay below 2⁵³.
    const low = (since % 65536) * 1e9 + nsec;
    const high = Math.floor(since / 65536) * 1e9 + Math.floor(low / 65536);
    const padded = (length + 3) & ~3;
    out.u32(ENHANCED_PACKET);
    out.u32(PACKET_HEADER + padded + TRAILER);
    out.u32(id);
    out.u32(Math.floor(high / 65536));
    out.u32((high % 65536) * 65536 + (low % 65536));
    out.u32(length);
    out.u32(origLen);
    return true;
  }

  end(out: Output, length: number): void {
    const padding = -length & 3;
    for (let i = 0; i < padding; i++) out.bytes[out.used++] = 0;
    out.u32(PACKET_HEADER + length + padding + TRAILER);
  }

  measure(bytes: Uint8Array, at: number): [length: number, frame: number] {
    const packet = u32(bytes, at, false) === ENHANCED_PACKET;
    return [u32(bytes, at + 4, false), packet ? u32(bytes, at + 20, false) : -1];
  }

  /** Describes an interface for the times of an era. Returns its number. */
  #describe(out: Output, era: number): number {
    const offset = era * ERA;
    const option = (code: number, length: number): number => code | (length << 16);
    out.u32(INTERFACE_DESCRIPTION);
    out.u32(INTERFACE_LENGTH);
    out.u32(ETHERNET);
    out.u32(this.#snaplen);
    out.u32(option(IF_TSRESOL, 1));
    out.u32(9);
    out.u32(option(IF_TSOFFSET, 8));
    out.u32(offset % 2 ** 32);
    out.u32(Math.floor(offset / 2 ** 32));
    out.u32(0);
    out.u32(INTERFACE_LENGTH);
    const id = this.#eras.size;
    this.#eras.set(era, id);
    return id;
  }
}
