import { LEN_MASK, MOREFRAG, SLOT_LEN_FLAGS, SLOT_PTR } from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import {
  ARP,
  AUTHENTICATION,
  DESTINATION,
  FRAGMENT,
  HIP,
  HOP_BY_HOP,
  ICMP,
  ICMP6,
  IPV4,
  IPV6,
  MOBILITY,
  NO_NEXT,
  OLD_VLAN,
  ROUTING,
  SERVICE_VLAN,
  SHIM6,
  TCP,
  UDP,
  VLAN,
} from './protocols.js';

/**
 * The offset of a header that a frame does not have. It lies beyond the end of every frame, so what is read there or
 * somewhat behind is -1: `frame.u16(frame.udp + 2) === 53` needs no test for UDP before it.
 */
export const NONE = 0x1000_0000;

/**
 * The frame a program looks at: one object that moves from frame to frame, so that nothing is allocated for any.
 *
 * It stands on a slot: offsets count from the frame's first byte, reads and writes are of the bytes in that slot. Of a
 * frame of several slots a program sees the first, which holds all headers; `length` is that of the whole frame, `size`
 * what can be read. Reads outside answer -1, writes outside change nothing and answer false; neither throws. Numbers
 * of several bytes are big-endian, as in every header.
 */
export class Frame {
  /** The memory in which the frame lies: bytes [start, start + size). Other frames' bytes are around it. */
  bytes: Uint8Array;
  /** Byte of `bytes` at which the frame begins. */
  start = 0;
  /** Bytes of the frame in its first slot, without FCS. */
  size = 0;
  /** Bytes of the whole frame, without FCS. */
  length = 0;
  /** Bytes before the frame that it may grow into: where its data can begin elsewhere in the buffer. */
  headroom = 0;
  /** Bytes that the buffer holds from where its data may begin. */
  #room: number;

  /** 0: from the first port to the second; 1: the other way. */
  direction: 0 | 1 = 0;
  /** Name of the port at which the frame arrived. */
  port = '';
  /** Ring in which it arrived, 0 upwards. */
  ring = 0;
  /** When its batch was taken from the ring: ns of the monotonic clock. */
  time = 0;

  #parsed = false;
  #etherType = -1;
  #tags = 0;
  #network = NONE;
  #protocol = -1;
  #transport = NONE;
  #fragment = false;

  /** @param room bytes of a buffer of that memory */
  constructor(bytes: Uint8Array = new Uint8Array(), room = 0) {
    this.bytes = bytes;
    this.#room = room;
  }

  /** Bytes behind those of the first slot that it may grow into; 0 where another slot follows. */
  get tailroom(): number {
    return this.size === this.length ? this.#room - this.headroom - this.size : 0;
  }

  /**
   * Moves to the frame of one slot at `start` in the same memory. A loop that moves a cursor of its own so pays three
   * stores a frame.
   */
  place(start: number, size: number, headroom: number): void {
    this.start = start;
    this.size = size;
    this.length = size;
    this.headroom = headroom;
    this.#parsed = false;
  }

  /** Moves to other bytes. Of several slots: `size` is the first one's, `length` the sum. */
  moveTo(bytes: Uint8Array, start: number, size: number, length = size, headroom = 0, tailroom = 0): this {
    // Not written where it stays the same: V8 takes it for a constant of a cursor that never changes its memory.
    if (bytes !== this.bytes) this.bytes = bytes;
    this.#room = headroom + size + tailroom;
    this.place(start, size, headroom);
    this.length = length;
    return this;
  }

  /** Moves to the frame that begins in slot `slot` of `ring`. False where the slot is corrupt; then the frame is empty. */
  load(ring: Ring, slot: number): boolean {
    if (!ring.slotValid(slot)) {
      this.moveTo(ring.u8, 0, 0);
      return false;
    }
    const size = ring.len(slot);
    const more = (ring.slotFlags(slot) & MOREFRAG) !== 0;
    const offset = ring.offset(slot); // 0 where the ring has none
    const length = more ? wholeLength(ring, slot) : size;
    this.moveTo(ring.u8, ring.dataStart(slot), size, length, offset, ring.bufSize - offset - size);
    return true;
  }

  /** Writes the frame's length, and where it begins, back into the slot from which it was loaded. */
  store(ring: Ring, slot: number): void {
    const word = ring.slotWord(slot);
    ring.i32[word + SLOT_LEN_FLAGS] = (ring.i32[word + SLOT_LEN_FLAGS] & ~LEN_MASK) | this.size;
    if (ring.offsetMask === 0) return;
    ring.i32[word + SLOT_PTR] = (ring.i32[word + SLOT_PTR] & ~ring.offsetMask) | this.headroom;
  }

  /** The bytes of the first slot: a new view, so not for every frame. It shows other frames later. */
  view(): Uint8Array {
    return this.bytes.subarray(this.start, this.start + this.size);
  }

  /** The byte at offset `at`; -1 outside. The numbers of more bytes are big-endian. */
  u8(at: number): number {
    return at >= 0 && at < this.size ? this.bytes[this.start + at] : -1;
  }

  u16(at: number): number {
    if (at < 0 || at + 2 > this.size) return -1;
    const i = this.start + at;
    return (this.bytes[i] << 8) | this.bytes[i + 1];
  }

  u32(at: number): number {
    if (at < 0 || at + 4 > this.size) return -1;
    const { bytes } = this;
    const i = this.start + at;
    return ((bytes[i] << 24) | (bytes[i + 1] << 16) | (bytes[i + 2] << 8) | bytes[i + 3]) >>> 0;
  }

  /** Writes the low 8 bits of `value`; setU16 and setU32 as many as they say. False outside, and nothing changed. */
  setU8(at: number, value: number): boolean {
    if (at < 0 || at >= this.size) return false;
    this.#parsed = false;
    this.bytes[this.start + at] = value;
    return true;
  }

  setU16(at: number, value: number): boolean {
    if (at < 0 || at + 2 > this.size) return false;
    this.#parsed = false;
    const i = this.start + at;
    this.bytes[i] = value >> 8;
    this.bytes[i + 1] = value;
    return true;
  }

  setU32(at: number, value: number): boolean {
    if (at < 0 || at + 4 > this.size) return false;
    this.#parsed = false;
    const { bytes } = this;
    const i = this.start + at;
    bytes[i] = value >> 24;
    bytes[i + 1] = value >> 16;
    bytes[i + 2] = value >> 8;
    bytes[i + 3] = value;
    return true;
  }

  /**
   * Makes room for `count` bytes at offset `at`; what they hold is undefined. False, and nothing changed, where the
   * slot's buffer has no room for them.
   */
  insert(at: number, count: number): boolean {
    const { bytes, start } = this;
    if (at < 0 || at > this.size || count < 0) return false;
    if (count <= this.headroom) {
      for (let i = 0; i < at; i++) bytes[start - count + i] = bytes[start + i];
      this.#shift(-count);
    } else if (count <= this.tailroom) {
      bytes.copyWithin(start + at + count, start + at, start + this.size);
    } else return false;
    this.#grow(count);
    return true;
  }

  /** Takes `count` bytes out at offset `at`. False, and nothing changed, where they are not all in the first slot. */
  remove(at: number, count: number): boolean {
    const { bytes, start } = this;
    if (at < 0 || count < 0 || at + count >= this.size) return false;
    if (this.headroom > 0) {
      for (let i = at - 1; i >= 0; i--) bytes[start + count + i] = bytes[start + i];
      this.#shift(count);
    } else bytes.copyWithin(start + at, start + at + count, start + this.size);
    this.#grow(-count);
    return true;
  }

  #shift(by: number): void {
    this.start += by;
    this.headroom += by;
  }

  #grow(count: number): void {
    this.size += count;
    this.length += count;
    this.#parsed = false;
  }

  /** Type of what follows Ethernet header and VLAN tags; at most 1500: a length, LLC follows; -1: the frame is too short. */
  get etherType(): number {
    if (!this.#parsed) this.#parse();
    return this.#etherType;
  }
  /** VLAN tags; tag `k` stands at offset 12 + 4k, the outermost first. */
  get tags(): number {
    if (!this.#parsed) this.#parse();
    return this.#tags;
  }
  /** VLAN of the outermost tag, 0..4095; -1 without one. */
  get vlan(): number {
    return this.tags === 0 ? -1 : this.u16(14) & 0xfff;
  }
  /** Offset of what follows Ethernet header and VLAN tags. */
  get network(): number {
    if (!this.#parsed) this.#parse();
    return this.#network;
  }
  /** Offset of the header, as of all protocols that follow; NONE where the frame has no such header. */
  get arp(): number {
    return this.etherType === ARP ? this.#network : NONE;
  }
  get ipv4(): number {
    return this.etherType === IPV4 && this.#protocol >= 0 ? this.#network : NONE;
  }
  get ipv6(): number {
    return this.etherType === IPV6 && this.#protocol >= 0 ? this.#network : NONE;
  }
  /** IP protocol of what follows IP header and IPv6 extension headers; -1 where there is none, or no whole IP header. */
  get protocol(): number {
    if (!this.#parsed) this.#parse();
    return this.#protocol;
  }
  /** Whether an IP datagram has come in pieces, of which this is one. */
  get fragment(): boolean {
    if (!this.#parsed) this.#parse();
    return this.#fragment;
  }
  /** Offset of what follows the IP headers; NONE in all fragments but the first, and where the slot ends before. */
  get transport(): number {
    if (!this.#parsed) this.#parse();
    return this.#transport;
  }
  get tcp(): number {
    return this.protocol === TCP ? this.#transport : NONE;
  }
  get udp(): number {
    return this.protocol === UDP ? this.#transport : NONE;
  }
  get icmp(): number {
    return this.protocol === ICMP && this.#etherType === IPV4 ? this.#transport : NONE;
  }
  get icmp6(): number {
    return this.protocol === ICMP6 && this.#etherType === IPV6 ? this.#transport : NONE;
  }

  /** Reads bytes straight from memory: what is asked for most has to cost little. */
  #parse(): void {
    this.#parsed = true;
    this.#protocol = -1;
    this.#transport = NONE;
    this.#fragment = false;
    const { bytes, start, size } = this;
    let at = 14;
    let type = size < at ? -1 : (bytes[start + 12] << 8) | bytes[start + 13];
    while (type === VLAN || type === SERVICE_VLAN || type === OLD_VLAN) {
      at += 4;
      type = size < at ? -1 : (bytes[start + at - 2] << 8) | bytes[start + at - 1];
    }
    this.#tags = (at - 14) >> 2;
    this.#etherType = type;
    this.#network = type < 0 ? NONE : at;
    if (type === IPV6) this.#parseIpv6(at);
    if (type !== IPV4 || size < at + 20) return;
    // RFC 791.
    const ip = start + at;
    const header = (bytes[ip] & 0xf) << 2;
    if (bytes[ip] >> 4 !== 4 || header < 20 || size < at + header) return;
    this.#protocol = bytes[ip + 9];
    const fragment = ((bytes[ip + 6] << 8) | bytes[ip + 7]) & 0x3fff;
    this.#fragment = fragment !== 0;
    if ((fragment & 0x1fff) === 0) this.#found(at + header);
  }

  /** RFC 8200, with the extension headers that IANA lists. */
  #parseIpv6(ip: number): void {
    const { bytes, start, size } = this;
    if (size < ip + 40 || bytes[start + ip] >> 4 !== 6) return;
    let next = bytes[start + ip + 6];
    let at = ip + 40;
    while (EXTENSIONS[next] === 1 && at + 8 <= size) {
      const later = next === FRAGMENT && (this.u16(at + 2) & 0xfff8) !== 0;
      if (next === FRAGMENT) this.#fragment = true;
      const length = extensionBytes(next, bytes[start + at + 1]);
      next = bytes[start + at];
      at += length;
      if (later) at = NONE;
    }
    this.#protocol = next;
    if (EXTENSIONS[next] === 0 && next !== NO_NEXT) this.#found(at);
  }

  #found(transport: number): void {
    if (transport < this.size) this.#transport = transport;
  }
}

/** 1 for the headers behind which another follows in IPv6: all of at least eight bytes, beginning with its type. */
const EXTENSIONS = new Uint8Array(256);
for (const header of [HOP_BY_HOP, ROUTING, FRAGMENT, AUTHENTICATION, DESTINATION, MOBILITY, HIP, SHIM6])
  EXTENSIONS[header] = 1;

/** Bytes of an extension header whose second byte, its length in all but fragment headers, is `length`. */
function extensionBytes(header: number, length: number): number {
  if (header === FRAGMENT) return 8;
  return header === AUTHENTICATION ? (length + 2) << 2 : (length + 1) << 3;
}

/** Bytes of the frame that begins in slot `slot`, as far as its slots have arrived. */
function wholeLength(ring: Ring, slot: number): number {
  let length = ring.len(slot);
  for (let i = slot; (ring.slotFlags(i) & MOREFRAG) !== 0;) {
    i = ring.after(i);
    if (i === ring.tail || i === slot) break;
    length += ring.len(i);
  }
  return length;
}
