import { CaptureError } from './capture-error.js';
import { ETHERNET, linkName, refusal } from './linktype.js';
import { CaptureReader, MAX_FRAME, u16, u32, type Resolution } from './reader.js';
import { CHUNK } from './source.js';
import { TimestampScale } from './timestamp.js';

/** Block types and constants of draft-ietf-opsawg-pcapng. */
export const SECTION_HEADER = 0x0a0d0d0a;
export const INTERFACE_DESCRIPTION = 1;
const PACKET = 2; // obsolete, still found
const SIMPLE_PACKET = 3;
export const ENHANCED_PACKET = 6;
export const BYTE_ORDER_MAGIC = 0x1a2b3c4d;
const OPT_ENDOFOPT = 0;
export const IF_TSRESOL = 9;
const IF_FCSLEN = 13;
export const IF_TSOFFSET = 14;
/** Type, length, first word of the body or trailing length: what every block has. */
const LEAST = 12;

interface Interface {
  readonly linkType: number;
  readonly scale: TimestampScale;
  readonly snaplen: number;
  readonly fcsLength: number;
}

/** The fewest bytes that a block of each type read here can have, trailing length included. */
const LEAST_LENGTH = new Map([
  [SECTION_HEADER, 28],
  [INTERFACE_DESCRIPTION, 20],
  [PACKET, 32],
  [SIMPLE_PACKET, 16],
  [ENHANCED_PACKET, 32],
]);

function isPacket(type: number): boolean {
  return type === ENHANCED_PACKET || type === SIMPLE_PACKET || type === PACKET;
}

/** Reads pcapng files: any number of sections, each in its own byte order, and interfaces, each in its own time unit. */
export class PcapngReader extends CaptureReader {
  /** An interface of any resolution can appear at any point of the file, so that only nanoseconds are safe. */
  override readonly resolution: Resolution = 'ns';
  #bigEndian = false;
  #interfaces: Interface[] = [];
  /** The block at `source.pos`, once #atBlock() has found one. */
  #type = 0;
  #length = 0;
  /** The block being passed over: its start, its length and how many bytes are still to go before its last word. */
  #passing = false;
  #passStart = 0;
  #passLeft = 0;
  /** Interfaces described so far, in all sections, whose frames are Ethernet's, and whose are not. */
  #ethernet = 0;
  #others = 0;
  /** The link type of the first that is not, and where it is described. */
  #other = '';

  /** The largest of the section's interfaces. */
  override get snaplen(): number {
    return this.#interfaces.some((each) => each.snaplen === 0)
      ? 0
      : this.#interfaces.reduce((most, each) => Math.max(most, each.snaplen), 0);
  }

  override readonly uncopied = 'interfaces and their names, comments, resolved names, statistics';

  override get format(): string {
    const units = this.#interfaces.map(({ scale }) => scale.unit + (scale.exact ? '' : ' rounded to ns'));
    const count = `${units.length} interface${units.length === 1 ? '' : 's'}`;
    const listed = units.length === 0 ? count : `${count} (${units.join(', ')})`;
    const types = new Set(this.#interfaces.map(({ linkType }) => linkType).filter((type) => type !== ETHERNET));
    const others = [...types].map((type) => `link type ${linkName(type)}`).join(', ');
    const without = others === '' ? '' : `; left out: frames of ${others}`;
    return `pcapng, ${this.#bigEndian ? 'big' : 'little'}-endian, ${listed}, snaplen ${this.snaplen}${without}`;
  }

  /**
   * Reads up to the first frame of an Ethernet interface, so that a capture that has none is refused at the start: a
   * file when it has been read to its end, a live one at its first frame, since the next may be long in coming.
   * Returns false if a live capture has not yet brought such an interface. Throws CaptureError where there is none, or
   * damage before the first interface.
   */
  readInterfaces(): boolean {
    while (!this.ended && this.#atBlock()) {
      // A live FIFO may bring its first frame much later.
      if (this.#ethernet > 0 && (isPacket(this.#type) || this.source.live)) return true;
      if (!isPacket(this.#type)) {
        if (!this.#readOther()) break;
      } else if (!this.#readPacket() || this.source.live) break;
    }
    if (this.#ethernet > 0) return this.ended;
    if (this.#others > 0 && (this.ended || this.foreign.size > 0)) throw new CaptureError(this.#other);
    if (this.problem !== undefined) throw new CaptureError(this.problem);
    return this.ended;
  }

  override next(): boolean {
    const before = this.frame;
    while (!this.ended && this.#atBlock()) {
      if (!(isPacket(this.#type) ? this.#readPacket() : this.#readOther())) return false;
      if (this.frame > before) return true;
    }
    return false;
  }

  /** Finds the next block and checks its length; false if it is not there or is wrong. Repeatable while a FIFO is waited for. */
  #atBlock(): boolean {
    if (this.#passing && !this.#pass()) return false;
    const { source } = this;
    if (!source.have(LEAST)) {
      if (source.ended && source.available === 0 && source.failure === undefined) return this.stop();
      return this.short(`the block`, source.offset, LEAST);
    }
    const at = source.pos;
    this.#type = u32(source.bytes, at, this.#bigEndian);
    if (this.#type === SECTION_HEADER) {
      // The type reads the same in both orders; the magic tells which one the section has, from its length on.
      this.#bigEndian = u32(source.bytes, at + 8, true) === BYTE_ORDER_MAGIC;
      if (!this.#bigEndian && u32(source.bytes, at + 8, false) !== BYTE_ORDER_MAGIC) {
        return this.corrupt(source.offset + 8, 'the section header lacks the byte-order magic 1a2b3c4d');
      }
    }
    this.#length = u32(source.bytes, at + 4, this.#bigEndian);
    const least = LEAST_LENGTH.get(this.#type);
    if (this.#length % 4 !== 0) return this.#wrongLength('not a multiple of 4');
    if (this.#length < (least ?? LEAST)) return this.#wrongLength(`fewer than the ${least ?? LEAST} it needs`);
    if (least !== undefined && this.#length > CHUNK)
      return this.#wrongLength(`more than the ${CHUNK} that are possible`);
    return true;
  }

  /** The 1-based number of the frame at hand, among all of the file. */
  get #number(): number {
    return this.frame + [...this.foreign.values()].reduce((sum, frames) => sum + frames, 1);
  }

  #wrongLength(why: string): false {
    return this.corrupt(this.source.offset + 4, `${this.#what()} claims a length of ${this.#length} bytes, ${why}`);
  }

  #what(): string {
    return isPacket(this.#type)
      ? `frame ${this.#number}`
      : this.#type === SECTION_HEADER
        ? 'the section header'
        : this.#type === INTERFACE_DESCRIPTION
          ? `the description of interface ${this.#interfaces.length}`
          : `the block of type ${this.#type}`;
  }

  /** Whether the whole block is at hand, and its last word repeats its length. */
  #whole(): boolean {
    const { source } = this;
    if (!source.have(this.#length)) return this.short(this.#what(), source.offset, this.#length);
    return this.#trailerFits(source.pos + this.#length - 4);
  }

  #trailerFits(at: number): boolean {
    const trailer = u32(this.source.bytes, at, this.#bigEndian);
    if (trailer === this.#length) return true;
    const { pos, offset } = this.source;
    return this.corrupt(
      offset + at - pos,
      `${this.#what()} begins with a length of ${this.#length} bytes and ends with one of ${trailer}`,
    );
  }

  /** Takes any block but a packet. */
  #readOther(): boolean {
    if (this.#type === SECTION_HEADER) return this.#readSection();
    if (this.#type === INTERFACE_DESCRIPTION) return this.#readInterface();
    this.#passing = true;
    this.#passStart = this.source.offset;
    this.#passLeft = this.#length - 4;
    return this.#pass();
  }

  /** Passes over a block of no interest, which may be longer than the buffer. */
  #pass(): boolean {
    const { source } = this;
    this.#passLeft = source.skip(this.#passLeft);
    if (this.#passLeft > 0 || !source.have(4)) return this.short(this.#what(), this.#passStart, this.#length);
    if (!this.#trailerFits(source.pos)) return false;
    source.pos += 4;
    this.#passing = false;
    return true;
  }

  #readSection(): boolean {
    if (!this.#whole()) return false;
    const { bytes, pos, offset } = this.source;
    const major = u16(bytes, pos + 12, this.#bigEndian);
    const minor = u16(bytes, pos + 14, this.#bigEndian);
    // Minor version 2 is version 1.0 as some writers number it (section 4.1 of the draft).
    if (major !== 1 || (minor !== 0 && minor !== 2)) {
      return this.corrupt(offset + 12, `pcapng version ${major}.${minor}, and only 1.0 can be read`);
    }
    this.#interfaces = [];
    this.source.pos += this.#length;
    return true;
  }

  #readInterface(): boolean {
    if (!this.#whole()) return false;
    const { bytes, pos, offset } = this.source;
    const linkType = u16(bytes, pos + 8, this.#bigEndian);
    // Of an option given twice the first counts, as in Wireshark.
    let tsresol: number | undefined;
    let tsoffset: number | undefined;
    let fcsLength: number | undefined;
    const end = pos + this.#length - 4;
    let at = pos + 16;
    while (at < end) {
      const code = u16(bytes, at, this.#bigEndian);
      const length = u16(bytes, at + 2, this.#bigEndian);
      if (code === OPT_ENDOFOPT) break;
      const value = at + 4;
      const expected = code === IF_TSOFFSET ? 8 : code === IF_TSRESOL || code === IF_FCSLEN ? 1 : length;
      if (length !== expected || value + length > end) {
        return this.corrupt(
          offset + at - pos,
          `${this.#what()} has option ${code} with a wrong length of ${length} bytes`,
        );
      }
      if (code === IF_TSRESOL) tsresol ??= bytes[value];
      else if (code === IF_FCSLEN) fcsLength ??= bytes[value];
      else if (code === IF_TSOFFSET) {
        const high = u32(bytes, value + (this.#bigEndian ? 0 : 4), this.#bigEndian) | 0;
        tsoffset ??= high * 4294967296 + u32(bytes, value + (this.#bigEndian ? 4 : 0), this.#bigEndian);
      }
      at = value + Math.ceil(length / 4) * 4;
    }
    const snaplen = u32(bytes, pos + 12, this.#bigEndian);
    const refused = refusal(linkType);
    if (refused === undefined) this.#ethernet++;
    else if (this.#others++ === 0)
      this.#other = `${this.path}: interface ${this.#interfaces.length} at byte ${offset}: ${refused}`;
    const scale = new TimestampScale(tsresol ?? 6, tsoffset ?? 0);
    this.#interfaces.push({ linkType, scale, snaplen, fcsLength: fcsLength ?? 0 });
    this.source.pos += this.#length;
    return true;
  }

  /** Takes a packet: into the public fields, or past it and counted where it is no Ethernet frame. */
  #readPacket(): boolean {
    if (!this.#whole()) return false;
    const bytes = this.source.bytes;
    const pos = this.source.pos;
    const offset = this.source.offset;
    const simple = this.#type === SIMPLE_PACKET;
    const index = simple
      ? 0
      : this.#type === PACKET
        ? u16(bytes, pos + 8, this.#bigEndian)
        : u32(bytes, pos + 8, this.#bigEndian);
    const from = this.#interfaces.at(index);
    if (from === undefined) {
      return this.corrupt(
        offset + 8,
        `frame ${this.#number} is of interface ${index}, and the section has described ${this.#interfaces.length}`,
      );
    }
    const header = simple ? 12 : 28;
    const origLen = u32(bytes, pos + header - 4, this.#bigEndian);
    let capLen: number;
    if (simple) capLen = from.snaplen === 0 ? origLen : Math.min(origLen, from.snaplen);
    else capLen = u32(bytes, pos + 20, this.#bigEndian);
    const room = Math.min(this.#length - header - 4, MAX_FRAME);
    if (capLen > room) {
      return this.corrupt(
        offset + (simple ? 8 : 20),
        `frame ${this.#number} claims ${capLen} captured bytes, more than the ${room} that are possible`,
      );
    }
    this.source.pos = pos + this.#length;
    if (from.linkType !== ETHERNET) {
      this.foreign.set(from.linkType, (this.foreign.get(from.linkType) ?? 0) + 1);
      return true;
    }
    if (simple) {
      this.tsSec = this.tsNsec = 0;
    } else {
      from.scale.convert(u32(bytes, pos + 12, this.#bigEndian), u32(bytes, pos + 16, this.#bigEndian));
      this.tsSec = from.scale.seconds;
      this.tsNsec = from.scale.nanoseconds;
    }
    this.interface = index;
    this.fcsLength = from.fcsLength;
    this.offset = pos + header;
    this.capLen = capLen;
    this.origLen = origLen;
    this.frame++;
    return true;
  }
}
