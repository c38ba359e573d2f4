import { constants } from 'node:buffer';
import {
  DIR_RX,
  DIR_TX,
  IF_BUFS_HEAD,
  IF_FLAGS,
  IF_HOST_RX_RINGS,
  IF_HOST_TX_RINGS,
  IF_RING_OFS,
  IF_RX_RINGS,
  IF_TX_RINGS,
  IF_VERSION,
  FIRST_BUFFER,
  NETMAP_API,
  RING_BUF_OFS,
  RING_BUF_SIZE,
  RING_ID_DIR,
  RING_NUM_SLOTS,
  RING_OFFSET_MASK,
  RING_SLOTS,
  RING_TAIL,
  SLOT_BUF_IDX,
  SLOT_WORDS,
} from './abi.js';
import { native } from '../shim/native.js';
import { Region } from './region.js';
import { Ring } from './ring.js';

/** Rings a port wants: slots of each. */
export interface RingPlan {
  tx: readonly number[];
  rx: readonly number[];
  /** Buffers beyond one a slot, e.g. for AF_XDP's fill and completion rings. */
  extraBuffers?: number;
  /** Number of the first ring of each direction, where the port has others. Default 0. */
  firstId?: number;
}

/** What a memory must hold: the sum of what its ports plan. */
export interface MemoryPlan {
  plans: readonly RingPlan[];
  /** Bytes of a buffer. */
  bufSize: number;
  /** Bits of slot.ptr that hold a data offset, the same in every ring; 0 or absent: none. */
  offsetMask?: number;
}

/** A port's rings, carved out of a memory. */
export interface Carved {
  tx: Ring[];
  rx: Ring[];
  /** Indices of the extra buffers. */
  extra: Int32Array;
}

const PAGE = 4096;

function roundUp(value: number, unit: number): number {
  return Math.ceil(value / unit) * unit;
}

function ringWords(slots: number): number {
  // Rings start on a cache line, so that two never share one.
  return roundUp(RING_SLOTS + slots * SLOT_WORDS, 16);
}

function interfaceWords(rings: number): number {
  return roundUp(IF_RING_OFS + 2 * rings, 16);
}

/** Bytes before buffer 0, whole pages: AF_XDP registers the buffers alone and wants them aligned. */
export function ringBytes(plans: readonly RingPlan[]): number {
  let words = 0;
  for (const plan of plans) {
    const rings = [...plan.tx, ...plan.rx];
    words += interfaceWords(rings.length) + rings.reduce((sum, slots) => sum + ringWords(slots), 0);
  }
  return roundUp(words * 4, PAGE);
}

function planBuffers(plan: RingPlan): number {
  return [...plan.tx, ...plan.rx].reduce((sum, slots) => sum + slots, plan.extraBuffers ?? 0);
}

/** Buffers the plans take in all, the two reserved ones included. */
export function bufferCount(plans: readonly RingPlan[]): number {
  return plans.reduce((sum, plan) => sum + planBuffers(plan), FIRST_BUFFER);
}

/**
 * Carves rings and buffers from a region in netmap's layout, as netmap's own allocator does in the kernel: first
 * netmap_if and rings of every port, then all buffers. Every buffer index is given to one slot or to one extra list.
 */
export class Carver {
  #word: number;
  #nextBuffer = FIRST_BUFFER;

  /**
   * @param base byte of the region where ring memory starts
   * @param bufBase byte of the region where buffer 0 starts
   * @param bufCount buffers there are
   */
  constructor(
    readonly region: Region,
    base: number,
    readonly bufBase: number,
    readonly bufSize: number,
    readonly bufCount: number,
    readonly offsetMask = 0,
  ) {
    this.#word = base / 4;
  }

  carve(plan: RingPlan): Carved {
    const { i32 } = this.region;
    const nifp = this.#word;
    i32[nifp + IF_VERSION] = NETMAP_API;
    i32[nifp + IF_FLAGS] = 1;
    i32[nifp + IF_TX_RINGS] = plan.tx.length;
    i32[nifp + IF_RX_RINGS] = plan.rx.length;
    i32[nifp + IF_BUFS_HEAD] = i32[nifp + IF_HOST_TX_RINGS] = i32[nifp + IF_HOST_RX_RINGS] = 0;
    this.#word += interfaceWords(plan.tx.length + plan.rx.length);
    let ofs = nifp + IF_RING_OFS;
    const rings = (slots: readonly number[], dir: number): Ring[] =>
      slots.map((numSlots, i) => {
        this.region.setI64(ofs, (this.#word - nifp) * 4);
        ofs += 2;
        return this.#ring(numSlots, (plan.firstId ?? 0) + i, dir);
      });
    const tx = rings(plan.tx, DIR_TX);
    const rx = rings(plan.rx, DIR_RX);
    const extra = Int32Array.from({ length: plan.extraBuffers ?? 0 }, () => this.#takeBuffer());
    return { tx, rx, extra };
  }

  #ring(numSlots: number, id: number, dir: number): Ring {
    const { i32 } = this.region;
    const base = this.#word;
    this.#word += ringWords(numSlots);
    if (this.#word * 4 > this.bufBase) throw new RangeError(`region ${this.region.id}: no room for another ring`);
    i32.fill(0, base, this.#word);
    this.region.setI64(base + RING_BUF_OFS, this.bufBase - base * 4);
    i32[base + RING_NUM_SLOTS] = numSlots;
    i32[base + RING_BUF_SIZE] = this.bufSize;
    i32[base + RING_ID_DIR] = (dir << 16) | id;
    i32[base + RING_OFFSET_MASK] = this.offsetMask;
    // A fresh tx ring is the user's but for one slot; a fresh rx ring is empty.
    i32[base + RING_TAIL] = dir === DIR_TX ? numSlots - 1 : 0;
    for (let i = 0; i < numSlots; i++) i32[base + RING_SLOTS + i * SLOT_WORDS + SLOT_BUF_IDX] = this.#takeBuffer();
    return new Ring(this.region, base);
  }

  #takeBuffer(): number {
    if (this.#nextBuffer >= this.bufCount) throw new RangeError(`region ${this.region.id}: no buffer left`);
    return this.#nextBuffer++;
  }
}

/** Bytes a memory takes. */
export function memoryBytes({ plans, bufSize }: MemoryPlan): number {
  return ringBytes(plans) + bufferCount(plans) * bufSize;
}

/** Bytes a memory may take: 4 GiB, or less where ArrayBuffers are limited more. Byte offsets are kept in 32 bits. */
export const MEMORY_MAX = Math.min(2 ** 32, constants.MAX_LENGTH);

let memories = 0;

/**
 * Memory of this thread's own, sized for the ports that will share it: ports of one memory exchange buffers.
 * Released when the last of its users closes.
 */
export class Memory {
  readonly region: Region;
  readonly bufSize: number;
  readonly bufBase: number;
  readonly bufCount: number;
  /** Ports it was made for. */
  readonly shares: number;
  /** The shim's handle of the mapping (AF_XDP registers its buffers). */
  readonly handle: number;
  readonly #carver: Carver;
  /** The opener counts as one, until every port has taken its share. */
  #users = 1;
  #closed = false;

  constructor(plan: MemoryPlan) {
    this.shares = plan.plans.length;
    this.bufSize = plan.bufSize;
    this.bufCount = bufferCount(plan.plans);
    this.bufBase = ringBytes(plan.plans);
    const bytes = memoryBytes(plan);
    const mapped = native.mapAnonymous(bytes); // rounded up to whole huge pages
    this.handle = mapped.handle;
    this.region = new Region(`local:${++memories}`, mapped.buffer, bytes);
    this.#carver = new Carver(this.region, 0, this.bufBase, this.bufSize, this.bufCount, plan.offsetMask);
  }

  /** Gives a port its rings; the port calls release() once, when it closes. */
  carve(plan: RingPlan): Carved {
    const carved = this.#carver.carve(plan);
    this.#users++;
    return carved;
  }

  /** Ends one port's use; with the last one the memory is unmapped and every view of it reads as empty. */
  release(): void {
    if (--this.#users > 0 || this.#closed) return;
    this.#closed = true;
    native.closeMemory(this.handle);
  }
}
