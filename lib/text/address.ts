/** Addresses as people write them. */
import { isIPv4, isIPv6 } from 'node:net';

/** The six bytes of a MAC address, `02:00:00:00:00:01`; undefined where it is none. */
export function macBytes(text: string): number[] | undefined {
  if (!/^[0-9a-f]{2}(:[0-9a-f]{2}){5}$/i.test(text)) return undefined;
  return text.split(':').map((byte) => parseInt(byte, 16));
}

/** The 4 or 16 bytes of an IP address, in dotted form or any of RFC 4291, 2.2; undefined where it is none. */
export function ipBytes(text: string): number[] | undefined {
  if (isIPv4(text)) return ipv4Bytes(text);
  return isIPv6(text) && !text.includes('%') ? ipv6Bytes(text) : undefined;
}

function ipv4Bytes(text: string): number[] {
  return text.split('.').map(Number);
}

function ipv6Bytes(text: string): number[] {
  const part = (side: string): number[] =>
    side === ''
      ? []
      : side.split(':').flatMap((group) => {
          if (group.includes('.')) return ipv4Bytes(group);
          const value = parseInt(group, 16);
          return [value >> 8, value & 0xff];
        });
  const [before, after] = text.split('::') as [string, string | undefined];
  const front = part(before);
  const back = part(after ?? '');
  return [...front, ...Array.from({ length: 16 - front.length - back.length }, () => 0), ...back];
}
