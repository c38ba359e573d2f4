/** What frames are addressed with: MAC addresses, and IP addresses with UDP ports, each one value or a range of them. */
import { isIPv4, isIPv6 } from 'node:net';
import { ipBytes, macBytes } from '../text/address.js';
import { printable, UsageError } from '../text/errors.js';
import { parseCountWithin } from '../text/units.js';

/** Consecutive numbers, both ends included. */
interface Range {
  readonly first: number;
  readonly last: number;
}

/** Consecutive addresses: the bytes before the last four are the same in all. */
export interface AddressRange {
  /** The first address; 4, 6 or 16 bytes. */
  readonly bytes: Uint8Array;
  /** The last four bytes as a number. */
  readonly low: Range;
}

/** One end of the flows. */
export interface Endpoint {
  readonly family: 4 | 6;
  readonly address: AddressRange;
  readonly port: Range;
}

/** Whether the address at `at` of `u8` is in the range. */
export function holdsAddress({ bytes, low }: AddressRange, u8: Uint8Array, at: number): boolean {
  const front = bytes.length - 4;
  for (let k = 0; k < front; k++) if (u8[at + k] !== bytes[k]) return false;
  let value = 0;
  for (let k = front; k < bytes.length; k++) value = value * 256 + u8[at + k];
  return value >= low.first && value <= low.last;
}

const MAC_FORM = 'write 02:00:00:00:00:01, or a range 02:00:00:00:00:01-02:00:00:00:00:ff';
const IP_FORM = 'write ADDRESS[:PORT][-ADDRESS[:PORT]], for example 10.0.0.1:2000-10.0.1.255:2050 or [fd00::1]:2000';

function refuse(what: string, text: string, cause: string, form: string): never {
  throw new UsageError(`${what} '${printable(text)}' ${cause}; ${form}`);
}

function low32(bytes: readonly number[]): number {
  return bytes.slice(-4).reduce((value, byte) => value * 256 + byte, 0);
}

function addresses(
  what: string,
  text: string,
  form: string,
  from: readonly number[],
  to: readonly number[],
): AddressRange {
  const range = { first: low32(from), last: low32(to) };
  if (from.slice(0, -4).some((byte, i) => byte !== to[i]))
    refuse(what, text, 'is a range whose ends differ before their last four bytes', form);
  if (range.last < range.first) refuse(what, text, 'is a range that ends before it begins', form);
  return { bytes: Uint8Array.from(from), low: range };
}

/** `02:00:00:00:00:01` or `02:00:00:00:00:01-02:00:00:00:00:ff`. @throws UsageError */
export function parseMacRange(text: string): AddressRange {
  const ends = text
    .split('-')
    .map((end) => macBytes(end) ?? refuse('MAC address', text, 'is not six bytes in hexadecimal', MAC_FORM));
  if (ends.length > 2) refuse('MAC address', text, 'has more than two ends', MAC_FORM);
  return addresses('MAC address', text, MAC_FORM, ends[0], ends.at(-1)!);
}

interface End {
  family: 4 | 6;
  bytes: number[];
  port: number | undefined;
}

function parseEnd(text: string, whole: string): End {
  const match = /^(?:\[([^\]]*)\]|([^:]*))(?::(.*))?$/s.exec(text);
  // An IPv6 address without a port needs no brackets.
  const bare = isIPv6(text) ? text : undefined;
  const address = bare ?? match?.[1] ?? match?.[2] ?? '';
  const family = isIPv4(address) && match?.[1] === undefined ? 4 : isIPv6(address) && !address.includes('%') ? 6 : 0;
  if (family === 0) return refuse('address', whole, `has no IPv4 or IPv6 address in '${printable(text)}'`, IP_FORM);
  const port = bare === undefined ? match?.[3] : undefined;
  return {
    family,
    bytes: ipBytes(address)!,
    port: port === undefined ? undefined : parseCountWithin(port, 0, 65535, 'UDP port'),
  };
}

/**
 * `10.0.0.1`, `10.0.0.1:2000`, `10.0.0.1:2000-10.0.1.255:2050`, `fd00::1`, `[fd00::1]:2000-[fd00::ff]:2050`.
 * A range's ends may differ in the last 32 bits of the address, and in the port.
 * @param defaultPort where none is written; an end of a range without one has the other's
 * @throws UsageError
 */
export function parseEndpoint(text: string, defaultPort: number): Endpoint {
  const ends = text.split('-').map((end) => parseEnd(end, text));
  if (ends.length > 2) refuse('address', text, 'has more than two ends', IP_FORM);
  const [from, to] = [ends[0], ends.at(-1)!];
  if (from.family !== to.family) refuse('address', text, 'goes from one IP version to the other', IP_FORM);
  const first = from.port ?? defaultPort;
  const last = to.port ?? first;
  if (last < first) refuse('address', text, 'is a range whose ports end before they begin', IP_FORM);
  return {
    family: from.family,
    address: addresses('address', text, IP_FORM, from.bytes, to.bytes),
    port: { first, last },
  };
}
