import { UsageError } from '../text/errors.js';
import { FCS_BYTES } from '../text/units.js';
import { checksum, fold, sumBytes } from '../rings/checksum.js';
import type { AddressRange, Endpoint } from './range.js';
import { TAG_BYTES } from './tag.js';

/** Ethernet, VLAN tags, IPv4 or IPv6, UDP: what all frames of a run have in common but for ranges and sizes. */
export interface Flow {
  readonly sourceMac: AddressRange;
  readonly destinationMac: AddressRange;
  /** Outer first; none, one (802.1Q) or two (802.1ad outside, 802.1Q inside). 0..4094 each. */
  readonly vlans: readonly number[];
  readonly source: Endpoint;
  readonly destination: Endpoint;
}

/** Byte positions in a frame. All are two bytes before a word boundary but for the Ethernet addresses. */
export interface Layout {
  readonly family: 4 | 6;
  readonly ip: number;
  /** Last four bytes of the addresses. */
  readonly source: number;
  readonly destination: number;
  readonly udp: number;
  readonly payload: number;
}

const UDP_BYTES = 8;
const UDP = 17;
/** Hops a frame may take; RFC 1700's default TTL. */
const HOPS = 64;
/** The most that IPv4's total length and IPv6's payload length can say. */
const MOST_IP_BYTES = 65535;

export function layoutOf(flow: Pick<Flow, 'vlans' | 'source'>): Layout {
  const { family } = flow.source;
  const ip = 14 + 4 * flow.vlans.length;
  const address = family === 4 ? ip + 12 : ip + 8 + 12;
  const step = family === 4 ? 4 : 16;
  const udp = ip + (family === 4 ? 20 : 40);
  return { family, ip, source: address, destination: address + step, udp, payload: udp + UDP_BYTES };
}

/** The least frame size, in bytes with FCS, that has room for the headers, and the least with room for the tag too. */
export function leastSizes(flow: Pick<Flow, 'vlans' | 'source'>): { plain: number; tagged: number } {
  const { payload } = layoutOf(flow);
  return { plain: payload + FCS_BYTES, tagged: payload + TAG_BYTES + FCS_BYTES };
}

/** @throws UsageError when frames of `size` bytes with FCS cannot carry the flow's headers */
export function checkSize(flow: Pick<Flow, 'vlans' | 'source'>, size: number): void {
  const layout = layoutOf(flow);
  const least = leastSizes(flow).plain;
  const what = `UDP over IPv${layout.family}${flow.vlans.length === 0 ? '' : ` with ${flow.vlans.length} VLAN tags`}`;
  if (size < least)
    throw new UsageError(
      `frame size ${size} is too small for ${what}: it takes ${least} bytes with FCS; write -l ${least}`,
    );
  const most = layout.ip + (layout.family === 4 ? 0 : 40) + MOST_IP_BYTES + FCS_BYTES;
  if (size > most) throw new UsageError(`frame size ${size} is too large for ${what}: at most ${most} bytes with FCS`);
}

function put16(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value >> 8;
  bytes[at + 1] = value & 0xff;
}

/** Stores a checksum, which is kept in memory order. */
function putSum(bytes: Uint8Array, at: number, value: number): void {
  bytes[at] = value & 0xff;
  bytes[at + 1] = value >> 8;
}

/** Headers of one frame size, and the sums that its checksums begin with. */
interface Headers {
  /** Ethernet to UDP, with every range at its first value, a right IPv4 checksum and 0 for the UDP checksum. */
  readonly bytes: Uint8Array;
  /** Folded sum of the IPv4 header, checksum field 0, the last four bytes of the addresses left out; 0 for IPv6. */
  readonly ipSum: number;
  /** Folded sum of pseudo header and UDP header, checksum 0, the last four bytes of the addresses and the ports left out. */
  readonly udpSum: number;
}

/** The headers of frames of `length` bytes without FCS. */
export function buildHeaders(flow: Flow, length: number): Headers {
  const layout = layoutOf(flow);
  const { family, ip, udp, payload } = layout;
  const bytes = new Uint8Array(payload);
  bytes.set(flow.destinationMac.bytes, 0);
  bytes.set(flow.sourceMac.bytes, 6);
  flow.vlans.forEach((id, k) => {
    // IEEE 802.1Q, 9.6 and 802.1ad: the outer one of two tags is a service tag.
    put16(bytes, 12 + 4 * k, k + 1 < flow.vlans.length ? 0x88a8 : 0x8100);
    put16(bytes, 14 + 4 * k, id);
  });
  put16(bytes, ip - 2, family === 4 ? 0x0800 : 0x86dd);
  const addressBytes = family === 4 ? 4 : 16;
  const sourceAt = layout.source + 4 - addressBytes;
  bytes.set(flow.source.address.bytes, sourceAt);
  bytes.set(flow.destination.address.bytes, sourceAt + addressBytes);
  const udpLength = length - udp;
  if (family === 4) {
    // RFC 791; a datagram that is not to be fragmented needs no identification of its own (RFC 6864).
    bytes[ip] = 0x45;
    put16(bytes, ip + 2, length - ip);
    put16(bytes, ip + 6, 0x4000);
    bytes[ip + 8] = HOPS;
    bytes[ip + 9] = UDP;
    putSum(bytes, ip + 10, checksum(sumBytes(bytes, ip, 20)));
  } else {
    // RFC 8200.
    bytes[ip] = 0x60;
    put16(bytes, ip + 4, udpLength);
    bytes[ip + 6] = UDP;
    bytes[ip + 7] = HOPS;
  }
  put16(bytes, udp, flow.source.port.first);
  put16(bytes, udp + 2, flow.destination.port.first);
  put16(bytes, udp + 4, udpLength);

  const rest = bytes.slice();
  rest.fill(0, layout.source, layout.source + 4);
  rest.fill(0, layout.destination, layout.destination + 4);
  rest.fill(0, udp, udp + 4);
  let ipSum = 0;
  if (family === 4) {
    rest.fill(0, ip + 10, ip + 12);
    ipSum = fold(sumBytes(rest, ip, 20));
  }
  // The pseudo header: addresses, protocol and the length of UDP a second time (RFC 768; RFC 8200, 8.1).
  const pseudo = new Uint8Array([0, UDP, udpLength >> 8, udpLength & 0xff]);
  let udpSum = sumBytes(rest, sourceAt, 2 * addressBytes);
  udpSum = sumBytes(pseudo, 0, 4, udpSum);
  udpSum = fold(sumBytes(rest, udp, UDP_BYTES, udpSum));
  return { bytes, ipSum, udpSum };
}
