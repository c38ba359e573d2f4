import { COUNTERS } from '../forward/counters.js';
import { HeadFrame } from '../forward/frame.js';
import { Lane } from '../forward/lane.js';
import type { Port } from '../ports/port.js';
import type { Ring } from '../rings/ring.js';
import { replaceWord } from '../rings/checksum.js';
import { ipHeader, payloadOf, tagWord } from './count.js';
import type { Quota } from './quota.js';
import { slotsWaiting } from './receiver.js';
import { SpanClock } from './span.js';
import { now } from '../shim/native.js';
import type { Reflected } from './gen-report.js';
import { sentOf } from './sender.js';
import { REPLY, REQUEST } from './tag.js';

/**
 * Sends UDP datagrams back where they came from: addresses and ports swapped, the payload as it was. Our own tag is
 * marked as a reply, so that two of these do not send one frame back and forth for ever.
 */
export class Reflector {
  #ignored = 0;
  readonly #span = new SpanClock();
  readonly #counters = new Float64Array(COUNTERS);
  readonly #lanes: readonly Lane[];
  readonly #frame = new HeadFrame();

  constructor(readonly port: Port) {
    const { rx, tx } = port;
    this.#lanes = rx.map((ring, k) => new Lane(ring, tx[k % tx.length], { counters: this.#counters }));
  }

  /** One turn: as many frames as the quota grants. Returns the frames looked at. */
  turn(quota: Quota): number {
    this.port.rxsync();
    let seen = 0;
    const waiting = slotsWaiting(this.port);
    const granted = waiting === 0 ? 0 : quota.claim(waiting);
    let left = granted;
    for (const lane of this.#lanes) {
      const { rx, tx } = lane;
      while (left > 0) {
        const slots = this.#frame.read(rx);
        if (slots === 0) break;
        seen++;
        const payload = requestAt(rx);
        if (payload < 0) {
          rx.advance(slots);
          this.#ignored++;
          continue;
        }
        // The frame is changed only when it can be sent at once: swapped twice, it would be as before.
        if (tx.space < slots) break;
        turnBack(rx, payload);
        if (lane.move(slots) === 0) break;
        left--;
      }
    }
    quota.settle(granted, granted - left);
    if (granted > left) this.#span.moved(granted - left, now());
    this.port.txsync();
    return seen;
  }

  report(): Reflected {
    for (const lane of this.#lanes) lane.settle();
    const { frames, bytes, unsent, refused } = sentOf(this.#counters, this.port);
    return { frames, bytes, unsent, refused, ignored: this.#ignored, span: this.#span.span };
  }
}

/** Where the payload of a datagram to be answered begins, in bytes of the frame at the head; -1: it is none, or a reply. */
function requestAt(rx: Ring): number {
  const i = rx.head;
  if (!rx.slotValid(i)) return -1;
  const word = tagWord(rx, i);
  const start = rx.dataStart(i);
  return word >= 0 && rx.i32[(start >> 2) + word] === REPLY ? -1 : payloadOf(rx.u8, start, rx.len(i));
}

function swapBytes(u8: Uint8Array, a: number, b: number, length: number): void {
  for (let k = 0; k < length; k++) {
    const byte = u8[a + k];
    u8[a + k] = u8[b + k];
    u8[b + k] = byte;
  }
}

/**
 * Swaps both addresses and the ports of the frame at the head, and marks its tag where it has one. The checksums are
 * sums, so the swaps leave them as they are; the two words of the mark are exchanged in UDP's (RFC 1624), unless there
 * is none (RFC 768).
 */
function turnBack(rx: Ring, payload: number): void {
  const i = rx.head;
  const { u8, i32 } = rx;
  const start = rx.dataStart(i);
  const udp = payload - 8;
  const address = u8[start + ipHeader(u8, start)] >> 4 === 6 ? 16 : 4;
  swapBytes(u8, start, start + 6, 6);
  swapBytes(u8, start + udp - 2 * address, start + udp - address, address);
  swapBytes(u8, start + udp, start + udp + 2, 2);
  const word = tagWord(rx, i);
  if (word < 0 || i32[(start >> 2) + word] !== REQUEST) return;
  i32[(start >> 2) + word] = REPLY;
  const at = start + udp + 6;
  const old = u8[at] | (u8[at + 1] << 8);
  if (old === 0) return;
  const sum = replaceWord(replaceWord(old, REQUEST & 0xffff, REPLY & 0xffff), REQUEST >>> 16, REPLY >>> 16) || 0xffff;
  u8[at] = sum & 0xff;
  u8[at + 1] = sum >> 8;
}
