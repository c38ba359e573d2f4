import type { Frame } from './frame.js';
import { NONE } from './frame.js';
import { FORWARD, type Program, type Setup } from './program.js';
import { TCP, UDP } from './protocols.js';

/** What one flow has sent, one way. */
export interface Flow {
  /** 4 or 16 bytes. */
  readonly source: Uint8Array;
  readonly target: Uint8Array;
  /** IP protocol. */
  readonly protocol: number;
  /** 0 where there are none: other protocols, and fragments but the first. */
  readonly sourcePort: number;
  readonly targetPort: number;
  readonly frames: number;
  /** Without FCS. */
  readonly bytes: number;
}

/** Words of a flow's key: addresses of four words each, ports, and protocol with IP version. */
const KEY = 10;
/** Slots of the table for each flow it may hold: sparse enough that few are looked at. */
const SPARE = 2;

/** Frames and bytes of up to `most` flows, in memory of fixed size; what comes after these is counted together. */
export class FlowTable {
  readonly most: number;
  /** Flows in the table. */
  size = 0;
  /** IP frames of flows for which there was no place. */
  untracked = 0;
  readonly #mask: number;
  readonly #keys: Int32Array;
  /** Frames and bytes of each slot; 0 frames: the slot is free. */
  readonly #counts: Float64Array;
  readonly #key = new Int32Array(KEY);

  /**
   * @param most flows, 1 to 2^20
   * @throws RangeError for any other number
   */
  constructor(most = 65536) {
    if (!Number.isInteger(most) || most < 1 || most > 2 ** 20)
      throw new RangeError(`a flow table holds 1 to ${2 ** 20} flows, not ${most}`);
    this.most = most;
    const slots = 2 ** Math.ceil(Math.log2(most * SPARE));
    this.#mask = slots - 1;
    this.#keys = new Int32Array(slots * KEY);
    this.#counts = new Float64Array(slots * 2);
  }

  /** Counts a frame; those without a whole IP header are passed over. */
  count(frame: Frame): void {
    if (!this.#readKey(frame)) return;
    const slot = this.#find();
    if (slot < 0) {
      this.untracked++;
      return;
    }
    this.#counts[2 * slot]++;
    this.#counts[2 * slot + 1] += frame.length;
  }

  /** The flows counted so far, in no order. */
  *flows(): Generator<Flow> {
    for (let slot = 0; slot <= this.#mask; slot++) if (this.#counts[2 * slot] > 0) yield this.#flow(slot);
  }

  /** Forgets all flows. */
  clear(): void {
    this.#counts.fill(0);
    this.size = 0;
    this.untracked = 0;
  }

  /** The key of the frame's flow into #key. False where it has none. */
  #readKey(frame: Frame): boolean {
    const { ipv4, ipv6, protocol, transport } = frame;
    const ip = Math.min(ipv4, ipv6);
    if (ip === NONE) return false;
    const key = this.#key;
    const words = ipv4 === ip ? 1 : 4;
    const from = ipv4 === ip ? ip + 12 : ip + 8;
    for (let i = 0; i < 4; i++) {
      key[i] = i < words ? frame.u32(from + 4 * i) : 0;
      key[4 + i] = i < words ? frame.u32(from + 4 * (words + i)) : 0;
    }
    const ports = (protocol === TCP || protocol === UDP) && frame.u16(transport + 2) >= 0;
    key[8] = ports ? frame.u32(transport) : 0;
    key[9] = (protocol << 8) | words;
    return true;
  }

  /** The slot of the flow in #key, a new one where it has none; -1: the table is full. */
  #find(): number {
    let slot = this.#hash() & this.#mask;
    for (; this.#counts[2 * slot] > 0; slot = (slot + 1) & this.#mask) if (this.#holds(slot)) return slot;
    if (this.size === this.most) return -1;
    this.size++;
    this.#keys.set(this.#key, slot * KEY);
    return slot;
  }

  #holds(slot: number): boolean {
    for (let i = 0, at = slot * KEY; i < KEY; i++) if (this.#keys[at + i] !== this.#key[i]) return false;
    return true;
  }

  /** Multiplies each word in and mixes the high bits down (the finalizer of MurmurHash3, public domain). */
  #hash(): number {
    let hash = 0;
    for (let i = 0; i < KEY; i++) {
      hash = Math.imul(hash ^ this.#key[i], 0x85ebca6b);
      hash ^= hash >>> 13;
    }
    hash = Math.imul(hash, 0xc2b2ae35);
    return (hash ^ (hash >>> 16)) >>> 0;
  }

  #flow(slot: number): Flow {
    const key = this.#keys.subarray(slot * KEY, (slot + 1) * KEY);
    const words = key[9] & 0xff;
    const address = (at: number): Uint8Array => {
      const bytes = new Uint8Array(4 * words);
      const view = new DataView(bytes.buffer);
      for (let i = 0; i < words; i++) view.setInt32(4 * i, key[at + i]);
      return bytes;
    };
    return {
      source: address(0),
      target: address(4),
      protocol: key[9] >> 8,
      sourcePort: key[8] >>> 16,
      targetPort: key[8] & 0xffff,
      frames: this.#counts[2 * slot],
      bytes: this.#counts[2 * slot + 1],
    };
  }
}

/** Counts flows in a table of up to `most`, and forwards every frame. */
export function flows(most?: number): (setup: Setup) => Program & { readonly table: FlowTable } {
  return (setup) => {
    const table = new FlowTable(most);
    const tracked = setup.counter('flows');
    const untracked = setup.counter('frames of flows beyond the table');
    let seen = 0;
    let beyond = 0;
    const publish = (): void => {
      tracked.add(table.size - seen);
      untracked.add(table.untracked - beyond);
      seen = table.size;
      beyond = table.untracked;
    };
    return {
      table,
      frame(frame) {
        table.count(frame);
        return FORWARD;
      },
      tick: publish,
      stop: publish,
    };
  };
}
