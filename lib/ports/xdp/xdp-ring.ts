import type { XdpRingMap } from '../../shim/native-xdp.js';

/** XDP_RING_NEED_WAKEUP of linux/if_xdp.h: the kernel sleeps on this ring until it is called. */
const NEED_WAKEUP = 1;

/**
 * One AF_XDP ring: a power of two of entries between two free-running 32-bit counters. This side's own counter is
 * `mine`; the kernel's is read when needed. Counters wrap, so only differences of them (`| 0`) mean anything.
 */
export class XdpRing {
  readonly i32: Int32Array;
  readonly entries: number;
  readonly mask: number;
  /** Word of entry 0. */
  readonly desc: number;
  /** This side's counter: entries produced (fill, tx) or consumed (rx, completion) so far. */
  mine = 0;
  readonly #flags: number;
  readonly #producer: number;
  readonly #consumer: number;

  constructor(map: XdpRingMap) {
    this.i32 = new Int32Array(map.buffer, 0, Math.floor(map.buffer.byteLength / 4));
    this.entries = map.entries;
    this.mask = map.entries - 1;
    this.desc = map.desc / 4;
    this.#flags = map.flags / 4;
    this.#producer = map.producer / 4;
    this.#consumer = map.consumer / 4;
  }

  /** rx, completion: entries the kernel has produced and we have not consumed. */
  available(): number {
    return (Atomics.load(this.i32, this.#producer) - this.mine) | 0;
  }

  /** fill, tx: entries we have produced and the kernel has not consumed. */
  pending(): number {
    return (this.mine - Atomics.load(this.i32, this.#consumer)) | 0;
  }

  /** fill, tx: publishes `n` entries written from `mine` on. */
  produce(n: number): void {
    this.mine = (this.mine + n) | 0;
    Atomics.store(this.i32, this.#producer, this.mine);
  }

  /** rx, completion: gives `n` entries read from `mine` on back to the kernel. */
  consume(n: number): void {
    this.mine = (this.mine + n) | 0;
    Atomics.store(this.i32, this.#consumer, this.mine);
  }

  needsWakeup(): boolean {
    return (Atomics.load(this.i32, this.#flags) & NEED_WAKEUP) !== 0;
  }
}
