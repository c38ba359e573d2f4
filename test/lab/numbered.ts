// Numbered frames for tests on real interfaces: each carries its flow, its number and a pattern made of both.
import type { Port } from '../../lib/ports/port.js';
import type { Ring } from '../../lib/rings/ring.js';

const ETHERTYPE = 12;
const FLOW = 14;
const NUMBER = 16;
const PATTERN = 20;

/** Byte `i` of a frame's pattern. */
function pattern(number: number, flow: number, i: number): number {
  return (number * 7 + flow * 13 + i) & 255;
}

/** Writes frame `number` of a flow, of `len` bytes without FCS, into a tx ring's slot `i`. */
function write(ring: Ring, i: number, flow: number, number: number, len: number): void {
  const start = ring.dataStart(i);
  const { u8 } = ring;
  for (let k = 0; k < ETHERTYPE; k++) u8[start + k] = 2;
  u8[start + ETHERTYPE] = 0x88; // IEEE's ethertype for local experiments
  u8[start + ETHERTYPE + 1] = 0xb5;
  u8[start + FLOW] = 0;
  u8[start + FLOW + 1] = flow;
  for (let k = 0; k < 4; k++) u8[start + NUMBER + k] = number >>> (24 - 8 * k);
  for (let k = PATTERN; k < len; k++) u8[start + k] = pattern(number, flow, k);
  ring.setLenFlags(i, len);
}

/** Sends numbered frames: flow i out of tx ring i. */
export class Source {
  /** Frames put into each ring so far; the next one's number. */
  readonly sent: number[];

  constructor(
    readonly port: Port,
    readonly frames: number,
    /** Bytes of a flow's frame by number, without FCS. */
    readonly length: (number: number) => number,
  ) {
    this.sent = port.tx.map(() => 0);
  }

  /** Sends, of each flow, as many as there is room for, `most` at most. */
  turn(most = Infinity): void {
    for (const [flow, ring] of this.port.tx.entries()) {
      const n = Math.min(ring.space, this.frames - this.sent[flow], most);
      for (let k = 0; k < n; k++) {
        const number = this.sent[flow]++;
        write(ring, ring.after(ring.head, k), flow, number, this.length(number));
      }
      if (n > 0) ring.advance(n);
    }
    this.port.txsync();
  }

  get done(): boolean {
    return this.sent.every((sent) => sent === this.frames) && this.port.txPending() === 0;
  }
}

/** Receives them and looks at every byte. */
export class Sink {
  /** Frames received by flow, and by rx ring. */
  readonly received: number[] = [];
  readonly byRing: number[];
  /** Frames whose number was not above the one before in their flow. */
  disordered = 0;
  /** Frames with a wrong length or byte. */
  corrupt = 0;
  readonly #last: number[] = [];

  constructor(
    readonly port: Port,
    readonly length: (number: number) => number,
  ) {
    this.byRing = port.rx.map(() => 0);
  }

  turn(): void {
    this.port.rxsync();
    for (const [r, ring] of this.port.rx.entries()) {
      const n = ring.space;
      for (let k = 0; k < n; k++) this.#take(ring, ring.after(ring.head, k), r);
      if (n > 0) ring.advance(n);
    }
  }

  #take(ring: Ring, i: number, r: number): void {
    const { u8 } = ring;
    const start = ring.dataStart(i);
    if (u8[start + ETHERTYPE] !== 0x88 || u8[start + ETHERTYPE + 1] !== 0xb5) return; // the kernel's own
    const flow = u8[start + FLOW + 1];
    let number = 0;
    for (let k = 0; k < 4; k++) number = (number << 8) | u8[start + NUMBER + k];
    this.byRing[r]++;
    this.received[flow] = (this.received[flow] ?? 0) + 1;
    if (number <= (this.#last[flow] ?? -1)) this.disordered++;
    this.#last[flow] = number;
    const len = ring.len(i);
    let right = len === this.length(number);
    for (let k = PATTERN; k < len; k++) if (u8[start + k] !== pattern(number, flow, k)) right = false;
    if (!right) this.corrupt++;
  }

  get total(): number {
    return this.received.reduce((sum, n) => sum + n, 0);
  }
}
