import { RING_CUR, RING_HEAD, RING_TAIL } from './abi.js';
import type { Ring } from './ring.js';

/**
 * The port's side of a ring, as netmap's kernel keeps it: what the port last took from the user and last gave.
 * Port kinds that live in TypeScript run their syncs through it, so that all of them hold netmap's rules.
 */
export class Kring {
  /** First slot not yet taken from the user: slots [hwcur, head) are new at a sync. */
  hwcur: number;
  /** The tail last published. */
  hwtail: number;
  /** Times the user left head or cur outside what it owned, and the ring was put back. */
  reinits = 0;

  /** @param hwcur and hwtail: where to go on, where the ring itself is not believed */
  constructor(
    readonly ring: Ring,
    hwcur = ring.head,
    hwtail = ring.tail,
  ) {
    this.hwcur = hwcur;
    this.hwtail = hwtail;
  }

  /**
   * Starts a sync: the user's head, checked. netmap's rule: hwcur ≤ head ≤ cur ≤ tail (cyclic). A head or cur
   * outside is not believed: the ring goes back to the last good state, as the kernel does, and it is counted.
   */
  begin(): number {
    const { ring } = this;
    const { i32, base, numSlots } = ring;
    const head = i32[base + RING_HEAD];
    const cur = i32[base + RING_CUR];
    let owned = this.hwtail - this.hwcur;
    if (owned < 0) owned += numSlots;
    let taken = head - this.hwcur;
    if (taken < 0) taken += numSlots;
    let ahead = cur - this.hwcur;
    if (ahead < 0) ahead += numSlots;
    // The unsigned comparison refuses negative values and those beyond the ring at once.
    if (head >>> 0 < numSlots && cur >>> 0 < numSlots && taken <= ahead && ahead <= owned) return head;
    this.reinits++;
    this.reset();
    return this.hwcur;
  }

  /** Puts the ring back to what the port last took and gave. */
  reset(): void {
    const { ring, hwcur, hwtail } = this;
    ring.moveTo(hwcur);
    ring.i32[ring.base + RING_TAIL] = hwtail;
  }

  /** Ends a sync: gives the user everything up to `tail`. */
  publish(tail: number): void {
    this.hwtail = tail;
    this.ring.i32[this.ring.base + RING_TAIL] = tail;
  }
}
