// Frames for tests: those of the public captures, and made ones with what captures lack.
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { Opening } from '../../lib/capture/open-capture.js';
import { CaptureError } from '../../lib/capture/capture-error.js';
import { checksum, sumBytes } from '../../lib/rings/checksum.js';
import { Counters, type Setup } from '../../lib/programs/program.js';
import { ipBytes, macBytes } from '../../lib/text/address.js';

/** A frame as captured, and its length on the wire where that is more. */
export interface Captured {
  bytes: Uint8Array;
  length: number;
}

/** All Ethernet frames of the captures in test/captures. */
export function capturedFrames(): Captured[] {
  const folder = 'test/captures';
  const files = readdirSync(folder).filter((name) => /\.pcap(ng)?$/.test(name));
  return files.flatMap((name) => {
    const opening = new Opening(join(folder, name));
    const frames: Captured[] = [];
    try {
      const reader = opening.reader()!;
      while (reader.next()) {
        const bytes = reader.data.slice(reader.offset, reader.offset + reader.capLen);
        frames.push({ bytes, length: reader.origLen });
      }
    } catch (error) {
      if (!(error instanceof CaptureError)) throw error; // not Ethernet
    } finally {
      opening.close();
    }
    return frames;
  });
}

/** What a program is given, and the counters it then has. */
export function setup(): { setup: Setup; counters: Counters } {
  const counters = new Counters();
  return { counters, setup: { thread: 0, counter: (name) => counters.counter(name) } };
}

/** Any mix of bytes and 16-bit numbers behind one another: `[0x45, u16(1500)]`. */
export function bytesOf(...parts: readonly (number | readonly number[])[]): number[] {
  return parts.flat();
}

export function u16(value: number): number[] {
  return [value >> 8, value & 0xff];
}

export function mac(text: string): number[] {
  return macBytes(text)!;
}

export function ip(text: string): number[] {
  return ipBytes(text)!;
}

export const SOURCE_MAC = '02:00:00:00:00:01';
export const TARGET_MAC = '02:00:00:00:00:02';

/** An Ethernet frame; `tags` are [type, tci] pairs, outer first. */
export function ethernet(
  type: number,
  payload: readonly number[],
  tags: readonly (readonly [number, number])[] = [],
): number[] {
  const tagged = tags.flatMap(([tpid, tci]) => [...u16(tpid), ...u16(tci)]);
  return bytesOf(mac(TARGET_MAC), mac(SOURCE_MAC), tagged, u16(type), payload);
}

export interface Ipv4 {
  from?: string;
  to?: string;
  protocol: number;
  /** Flags and fragment offset. */
  fragment?: number;
  /** Bytes, a multiple of four. */
  options?: readonly number[];
}

/** An IPv4 packet with a right header checksum. */
export function ipv4(
  { from = '10.0.0.1', to = '10.0.0.2', protocol, fragment = 0, options = [] }: Ipv4,
  payload: readonly number[],
): number[] {
  const size = 20 + options.length;
  const head = bytesOf(0x40 | (size / 4), 0, u16(size + payload.length), u16(7), u16(fragment), 64, protocol, u16(0));
  const header = bytesOf(head, ip(from), ip(to), options);
  putSum(header, 10, checksum(sumBytes(Uint8Array.from(header), 0, size)));
  return [...header, ...payload];
}

/** An IPv6 packet; `headers` are extension headers, each [type, bytes with their own next header at byte 0]. */
export function ipv6(
  { from = 'fd00::1', to = 'fd00::2', protocol }: { from?: string; to?: string; protocol: number },
  payload: readonly number[],
  headers: readonly (readonly [number, readonly number[]])[] = [],
): number[] {
  const types = [...headers.map(([type]) => type), protocol];
  const extensions = headers.flatMap(([, bytes], i) => [types[i + 1], ...bytes.slice(1)]);
  const length = extensions.length + payload.length;
  return bytesOf(0x60, 0, 0, 0, u16(length), types[0], 64, ip(from), ip(to), extensions, payload);
}

/** Checksum of a transport header and what follows, over the pseudo header of `from` and `to`; -1 for `at`: none. */
function withChecksum(from: string, to: string, protocol: number, at: number, packet: number[]): number[] {
  const pseudo = Uint8Array.from(bytesOf(ip(from), ip(to), u16(0), u16(packet.length), u16(protocol)));
  const sum = sumBytes(Uint8Array.from(packet), 0, packet.length, sumBytes(pseudo, 0, pseudo.length));
  putSum(packet, at, protocol === 17 ? checksum(sum) || 0xffff : checksum(sum));
  return packet;
}

/** Checksums are kept low byte first. */
function putSum(bytes: number[], at: number, sum: number): void {
  bytes[at] = sum & 0xff;
  bytes[at + 1] = sum >> 8;
}

interface Ends {
  from?: string;
  to?: string;
}

export function udp(
  sport: number,
  dport: number,
  data: readonly number[] = [],
  { from = '10.0.0.1', to = '10.0.0.2' }: Ends = {},
): number[] {
  return withChecksum(from, to, 17, 6, bytesOf(u16(sport), u16(dport), u16(8 + data.length), u16(0), data));
}

export function tcp(
  sport: number,
  dport: number,
  flags: number,
  data: readonly number[] = [],
  { from = '10.0.0.1', to = '10.0.0.2' }: Ends = {},
): number[] {
  const header = bytesOf(u16(sport), u16(dport), u16(0), u16(1), u16(0), u16(0), 0x50, flags, u16(512), u16(0), u16(0));
  return withChecksum(from, to, 6, 16, [...header, ...data]);
}

export function icmp(type: number, code: number, data: readonly number[] = []): number[] {
  const packet = bytesOf(type, code, u16(0), u16(1), u16(1), data);
  putSum(packet, 2, checksum(sumBytes(Uint8Array.from(packet), 0, packet.length)));
  return packet;
}

export function icmp6(
  type: number,
  data: readonly number[],
  { from = 'fd00::1', to = 'fd00::2' }: Ends = {},
): number[] {
  return withChecksum(from, to, 58, 2, bytesOf(type, 0, u16(0), data));
}

export function arp(operation: number, senderIp: string, targetIp: string): number[] {
  return bytesOf(
    u16(1),
    u16(0x0800),
    6,
    4,
    u16(operation),
    mac(SOURCE_MAC),
    ip(senderIp),
    mac('00:00:00:00:00:00'),
    ip(targetIp),
  );
}

/** Eight bytes of an extension header; the first becomes the type of the next. */
export const OPTIONS6 = [0, 0, 1, 4, 0, 0, 0, 0];
export function fragment6(offset: number, more: boolean): number[] {
  return bytesOf(0, 0, u16((offset << 3) | (more ? 1 : 0)), u16(0), u16(9));
}

/**
 * Frames with tags, fragments, extension headers, odd header lengths; `right`: those with
 * right checksums; `cut`: all cut short at every length. */
export function madeFrames(which: 'right' | 'whole' | 'cut'): number[][] {
  const v6 = { from: 'fd00::1', to: 'fd00::2' };
  const data = Array.from({ length: 12 }, (_, i) => i);
  const dns = udp(1053, 53, data);
  const packets: [number, number[]][] = [
    [0x0800, ipv4({ protocol: 17 }, dns)],
    [0x0800, ipv4({ protocol: 17, to: '224.0.0.251' }, udp(5353, 5353, data, { to: '224.0.0.251' }))],
    [0x0800, ipv4({ protocol: 6, from: '192.168.1.7' }, tcp(80, 40000, 0x12, data, { from: '192.168.1.7' }))],
    [0x0800, ipv4({ protocol: 6, options: [1, 1, 1, 0] }, tcp(40000, 80, 0x02))],
    [0x0800, ipv4({ protocol: 132 }, bytesOf(u16(53), u16(80), data))],
    [0x0800, ipv4({ protocol: 1 }, icmp(8, 0, data))],
    [0x0800, ipv4({ protocol: 2, to: '224.0.0.22' }, bytesOf(0x22, 0, u16(0), data))],
    [0x0800, ipv4({ protocol: 17, fragment: 0x2000 }, dns)],
    [0x0800, ipv4({ protocol: 17, fragment: 0x2003 }, dns)],
    [0x0800, ipv4({ protocol: 6, fragment: 0x0003 }, tcp(80, 53, 2))],
    [0x86dd, ipv6({ protocol: 17 }, udp(1053, 53, data, v6))],
    [0x86dd, ipv6({ protocol: 6 }, tcp(80, 53, 2, data, v6))],
    [0x86dd, ipv6({ protocol: 58, to: 'ff02::1' }, icmp6(128, data, { to: 'ff02::1' }))],
    [0x86dd, ipv6({ protocol: 17 }, udp(1053, 53, data, v6), [[0, OPTIONS6]])],
    [0x86dd, ipv6({ protocol: 17 }, udp(1053, 53, data, v6), [[44, fragment6(0, true)]])],
    [0x86dd, ipv6({ protocol: 6 }, tcp(80, 53, 2, data, v6), [[44, fragment6(3, false)]])],
    [
      0x86dd,
      ipv6({ protocol: 6 }, tcp(80, 53, 2, data, v6), [
        [0, OPTIONS6],
        [60, OPTIONS6],
        [44, fragment6(0, false)],
      ]),
    ],
    [0x86dd, ipv6({ protocol: 59 }, [])],
    [0x0806, arp(1, '10.0.0.1', '10.0.0.2')],
    [0x0806, arp(2, '192.168.1.7', '10.0.0.1')],
    [0x8035, arp(3, '10.0.0.1', '10.0.0.1')],
    [0x88b5, data],
    [0x0026, bytesOf(0x42, 0x42, 3, data)],
    [0x0026, bytesOf(0xf0, 0xf0, 3, data)],
  ];
  const plain = packets.map(([type, payload]) => ethernet(type, payload));
  const tagged = packets.flatMap(([type, payload]) => [
    ethernet(type, payload, [[0x8100, 5]]),
    ethernet(type, payload, [
      [0x88a8, 0x6064],
      [0x8100, 5],
    ]),
    ethernet(type, payload, [
      [0x9100, 100],
      [0x8100, 7],
      [0x8100, 5],
    ]),
  ]);
  const broadcast = plain.slice(0, 3).map((frame) => [...mac('ff:ff:ff:ff:ff:ff'), ...frame.slice(6)]);
  const multicast = plain.slice(0, 3).map((frame) => [...mac('01:00:5e:00:00:fb'), ...frame.slice(6)]);
  const versions = plain.map((frame) => frame.map((byte, i) => (i === 14 ? byte ^ 0x2b : byte)));
  const whole = [...plain, ...tagged, ...broadcast, ...multicast, ...versions];
  if (which === 'right') return [...plain, ...tagged];
  if (which === 'whole') return whole;
  return [...plain, ...tagged].flatMap((frame) => frame.slice(0, 80).map((_, n) => frame.slice(0, n + 1)));
}
