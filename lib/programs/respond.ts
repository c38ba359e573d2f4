import { replaceWord } from '../rings/checksum.js';
import type { Frame } from './frame.js';
import { BACK, FORWARD, type ProgramFactory, type Verdict } from './program.js';

/** The address that is answered for. */
export interface Responder {
  /** IPv4, four bytes. */
  readonly ip: readonly number[];
  /** Six bytes. */
  readonly mac: readonly number[];
}

const REQUEST = 1;
const REPLY = 2;
const ECHO = 8;
const ECHO_REPLY = 0;

/** Answers ARP requests and pings for one IPv4 address, in place, back to where they came from; forwards all else. */
export function respond({ ip, mac }: Responder): ProgramFactory {
  const address = ((ip[0] << 24) | (ip[1] << 16) | (ip[2] << 8) | ip[3]) >>> 0;
  const high = (mac[0] << 8) | mac[1];
  const low = ((mac[2] << 24) | (mac[3] << 16) | (mac[4] << 8) | mac[5]) >>> 0;

  const putMac = (frame: Frame, at: number): void => {
    frame.setU16(at, high);
    frame.setU32(at + 2, low);
  };
  /** The frame goes to where it came from. */
  const turnRound = (frame: Frame): void => {
    move(frame, 6, 0, 6);
    putMac(frame, 6);
  };

  /** RFC 826: Ethernet and IPv4. */
  const asksForUs = (frame: Frame, arp: number): boolean =>
    frame.u16(arp) === 1 &&
    frame.u16(arp + 2) === 0x0800 &&
    frame.u16(arp + 4) === 0x0604 &&
    frame.u16(arp + 6) === REQUEST &&
    frame.u32(arp + 24) === address;

  const answerArp = (frame: Frame, arp: number): Verdict => {
    frame.setU16(arp + 6, REPLY);
    move(frame, arp + 8, arp + 18, 10);
    putMac(frame, arp + 8);
    frame.setU32(arp + 14, address);
    turnRound(frame);
    return BACK;
  };

  /** RFC 792. The sum of the IP header stays: its addresses only change places. */
  const answerPing = (frame: Frame, ipv4: number, icmp: number): Verdict => {
    const type = frame.u16(icmp);
    frame.setU8(icmp, ECHO_REPLY);
    frame.setU16(icmp + 2, replaceWord(frame.u16(icmp + 2), type, frame.u16(icmp)));
    move(frame, ipv4 + 12, ipv4 + 16, 4);
    frame.setU32(ipv4 + 12, address);
    turnRound(frame);
    return BACK;
  };

  return (setup) => {
    const arps = setup.counter('ARP requests answered');
    const pings = setup.counter('pings answered');
    return (frame) => {
      const { arp, ipv4, icmp } = frame;
      if (asksForUs(frame, arp)) {
        arps.add();
        return answerArp(frame, arp);
      }
      const pinged = frame.u32(ipv4 + 16) === address && frame.u8(icmp) === ECHO && frame.u16(icmp + 2) >= 0;
      if (!pinged || frame.fragment) return FORWARD;
      pings.add();
      return answerPing(frame, ipv4, icmp);
    };
  };
}

/** Copies `count` bytes, an even number, within a frame. */
function move(frame: Frame, from: number, to: number, count: number): void {
  for (let i = 0; i < count; i += 2) frame.setU16(to + i, frame.u16(from + i));
}
