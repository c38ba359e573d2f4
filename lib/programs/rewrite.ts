import { checksum, udpChecksum } from '../rings/checksum.js';
import { NONE, type Frame } from './frame.js';
import { FORWARD, type ProgramFactory } from './program.js';
import { ICMP6, TCP, UDP } from './protocols.js';

/** What is written into frames; what is left out stays as it is. */
export interface Rewrite {
  /** Six bytes. */
  readonly sourceMac?: readonly number[];
  readonly targetMac?: readonly number[];
  /** 4 or 16 bytes: written into frames of that version of IP, the other's pass unchanged. */
  readonly source?: readonly number[];
  readonly target?: readonly number[];
  /** Of TCP and UDP. */
  readonly sourcePort?: number;
  readonly targetPort?: number;
}

/**
 * Rewrites addresses and ports, and brings the checksums of IPv4, TCP, UDP and ICMPv6 up to date by what has changed
 * (RFC 1624): a wrong checksum stays wrong by as much. ICMP does not cover addresses. A UDP checksum of 0 says that there
 * is none and stays. Fragments but the first have no ports; a frame whose headers do not lie whole in its first slot
 * keeps its addresses and ports.
 */
export function rewrite(change: Rewrite): ProgramFactory {
  return () => {
    const words = new WordWriter();
    return (frame) => {
      if (change.targetMac !== undefined) putBytes(frame, 0, change.targetMac);
      if (change.sourceMac !== undefined) putBytes(frame, 6, change.sourceMac);
      rewriteIp(frame, change, words);
      return FORWARD;
    };
  };
}

function putBytes(frame: Frame, at: number, bytes: readonly number[]): void {
  if (at + bytes.length > frame.size) return;
  for (let i = 0; i < bytes.length; i += 2) frame.setU16(at + i, (bytes[i] << 8) | bytes[i + 1]);
}

function rewriteIp(frame: Frame, change: Rewrite, words: WordWriter): void {
  const { ipv4, ipv6, protocol, transport } = frame;
  const ip = Math.min(ipv4, ipv6);
  if (ip === NONE) return;
  const size = ipv4 === ip ? 4 : 16;
  const addresses = ipv4 === ip ? ip + 12 : ip + 8;
  const sum = checksumOf(protocol, transport);
  // Where the checksum is out of reach nothing may change but in fragments that come after the one that has it.
  if (sum !== NONE && frame.u16(sum) < 0 && !(transport === NONE && frame.fragment)) return;
  words.difference = 0;
  if (change.source?.length === size) words.put(frame, addresses, change.source);
  if (change.target?.length === size) words.put(frame, addresses + size, change.target);
  if (ipv4 === ip) update(frame, ip + 10, words.difference);
  if (transport === NONE) return;
  if (protocol === TCP || protocol === UDP) {
    if (change.sourcePort !== undefined) words.putWord(frame, transport, change.sourcePort);
    if (change.targetPort !== undefined) words.putWord(frame, transport + 2, change.targetPort);
  }
  if (protocol === UDP) updateUdp(frame, sum, words.difference);
  else if (sum !== NONE) update(frame, sum, words.difference);
}

/** Offset of the checksum that covers addresses and ports, wherever the frame ends; NONE where there is none. */
function checksumOf(protocol: number, transport: number): number {
  if (protocol === TCP) return transport + 16;
  if (protocol === UDP) return transport + 6;
  return protocol === ICMP6 ? transport + 2 : NONE;
}

/** RFC 1624, equation 3: HC' = ~(~HC + ~m + m'), where `difference` is the sum of ~m + m'. */
function update(frame: Frame, at: number, difference: number): void {
  frame.setU16(at, checksum((frame.u16(at) ^ 0xffff) + difference));
}

/** 0 says that there is no checksum; one that comes out as 0 is sent as its other form (RFC 768). */
function updateUdp(frame: Frame, at: number, difference: number): void {
  const old = frame.u16(at);
  if (old !== 0) frame.setU16(at, udpChecksum((old ^ 0xffff) + difference));
}

/** Writes 16-bit words and adds up what that does to a checksum. */
class WordWriter {
  /** Sum of ~old + new. */
  difference = 0;

  put(frame: Frame, at: number, bytes: readonly number[]): void {
    for (let i = 0; i < bytes.length; i += 2) this.putWord(frame, at + i, (bytes[i] << 8) | bytes[i + 1]);
  }

  putWord(frame: Frame, at: number, value: number): void {
    this.difference += (frame.u16(at) ^ 0xffff) + value;
    frame.setU16(at, value);
  }
}
