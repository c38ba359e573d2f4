import { MOREFRAG, SLOT_PTR } from '../../rings/abi.js';
import { Kring } from '../../rings/kring.js';
import type { Ring } from '../../rings/ring.js';
import type { SimSpec } from '../../names/sim-name.js';
import { FCS_BYTES, mixSequence, WIRE_OVERHEAD_BYTES } from '../../text/units.js';
import { TICK, TIME } from './sim-clock.js';
import type { ArrivalTimes } from './sim-latency.js';
import { MIX, stampFrame } from './sim-frame.js';
import { fillFor, type Fill } from './sim-rings.js';

/** Link times of a ring, ns: when the next frame arrives, and of the moderation tick that was shown last. */
const NEXT = 0;
const SHOWN = 1;

/** Frames of the receiving side of one ring, since opening. */
export interface Arrivals {
  /** Frames that arrived at the port. */
  offered: number;
  /** Of these, frames that found too few free slots. */
  missed: number;
  /** Of these, frames lost on purpose (`drop=`). */
  dropped: number;
}

/**
 * The receiving side of one simulated ring: frames arrive by the clock, take free slots, and become visible at once
 * or at the next moderation tick. A frame that finds no room is lost, as on a NIC; its sequence number is used up.
 */
export class SimRx implements Arrivals {
  offered = 0;
  missed = 0;
  dropped = 0;
  /** Slots given to the user with length zero (`skip=`). */
  zeroSlots = 0;
  /** Arrivals stopped for want of a usable buffer: slots the user handed back with an index outside the region. */
  badSlots = 0;

  readonly kring: Kring;
  readonly #at: Float64Array;
  readonly #tag: number;
  /** Where a frame of several slots is put together. */
  readonly #scratch: Int32Array;
  readonly #scratchBytes: Uint8Array;
  readonly #fill: Fill;
  readonly #spec: SimSpec;
  #most: number;
  #times: ArrivalTimes | undefined;
  /** Lengths of the frames without FCS, in the order in which they repeat. */
  readonly #lengths: Int32Array;
  /** ns from each frame to the next one of this ring, as offered. */
  readonly #gaps: Float64Array;
  readonly #plain: boolean;
  readonly #limit: number;
  /** NEXT and SHOWN; see SimClock.at for why they are no fields. */
  readonly #own = new Float64Array(2);
  #turn = 0;
  /** Next slot a frame goes to; slots [visible, fill) hold frames not yet shown. */
  #fillSlot = 0;
  #visible = 0;
  #up = true;
  /** The moderation tick whose frames are visible. */
  /** Slots the ring may fill. */
  #free: number;
  /** Consumed by the user but not refilled yet (`budget=`). */
  #unfilled = 0;
  #paused = false;
  #sinceSkip = 0;
  #seq = 0;
  #random: number;

  /**
   * @param ring   the ring
   * @param at     the link's time; see SimClock.at
   * @param rings  rings of the port: frames come to them in turn, each gets its share of the rate
   * @param tag    what the stamps of this ring's frames say
   */
  constructor(ring: Ring, spec: SimSpec, at: Float64Array, rings: number, tag: number) {
    this.#at = at;
    this.kring = new Kring(ring);
    this.#spec = spec;
    this.#fill = fillFor(ring, tag, spec.check);
    this.#tag = tag;
    this.#free = ring.numSlots - 1;
    this.#limit = spec.count === 0 ? Infinity : Math.ceil((spec.count - (tag & 0xff)) / rings);
    this.#most = this.#limit;
    const sizes = mixSequence(spec.size);
    this.#lengths = Int32Array.from(sizes, (size) => size - FCS_BYTES);
    const nsPerByte = spec.load > 0 ? (8e9 / spec.rate) * (rings / spec.load) : Infinity;
    this.#gaps = Float64Array.from(sizes, (size) => (size + WIRE_OVERHEAD_BYTES) * nsPerByte);
    // The first frame is there when its last bit is: rings are served in turn.
    this.#own[NEXT] = spec.rate === Infinity ? 0 : (this.#gaps[0] * ((tag & 0xff) + 1)) / rings;
    this.#plain =
      sizes.length === 1 && spec.frags <= 1 && this.#lengths[0] <= ring.bufSize && spec.skip === 0 && spec.drop === 0;
    // Spread, because xorshift starts slowly from small numbers; the port's number is left out, to be repeatable.
    this.#random = Math.imul((spec.seed << 6) + (tag & 0xff) + 1, MIX);
    this.#scratch = new Int32Array(Math.ceil(Math.max(...this.#lengths) / 4));
    this.#scratchBytes = new Uint8Array(this.#scratch.buffer);
  }

  /** Stamp of this ring's frames. */
  get tag(): number {
    return this.#tag;
  }
  /** Sequence number the next frame gets. */
  get nextSeq(): number {
    return this.#seq;
  }

  /** Nothing arrives from now on, until resume(). */
  pause(): void {
    this.#paused = true;
  }
  /** @param frames that arrive before the source ends again; default: as `count=` says */
  resume(t: number, frames = Infinity): void {
    this.#paused = false;
    this.#most = Math.min(this.#limit, this.offered + frames);
    this.#own[NEXT] = t + this.#gaps[this.#turn];
  }

  /** Remembers from now on when frames arrive. */
  watch(times: ArrivalTimes): void {
    this.#times = times;
  }

  /** Whether frames have arrived that no moderation tick has shown yet. */
  get hiding(): boolean {
    return this.#visible !== this.#fillSlot;
  }

  get ended(): boolean {
    return this.offered >= this.#most && !this.hiding;
  }

  /**
   * One rxsync at the link's time.
   * @param up whether the link is up; while it is down its time stands still, but rate=max knows no time
   */
  sync(up: boolean): void {
    const { ring } = this.kring;
    this.#up = up;
    // What arrived until now found the slots that were free until now.
    if (this.#spec.itr > 0) {
      if (this.#at[TICK] > this.#own[SHOWN]) {
        this.#own[SHOWN] = this.#at[TICK];
        this.#arrive(TICK);
        this.#visible = this.#fillSlot;
      }
      this.#arrive(TIME);
    }
    const head = this.kring.begin();
    let consumed = head - this.kring.hwcur;
    if (consumed < 0) consumed += ring.numSlots;
    this.kring.hwcur = head;
    if (this.#spec.itr === 0) this.#arrive(TIME);
    this.#unfilled += consumed;
    const refill = this.#spec.budget > 0 ? Math.min(this.#unfilled, this.#spec.budget) : this.#unfilled;
    this.#unfilled -= refill;
    this.#free += refill;
    if (this.#spec.itr === 0) {
      if (this.#spec.rate === Infinity) this.#arrive(TIME);
      this.#visible = this.#fillSlot;
    }
    this.kring.publish(this.#visible);
  }

  /** Frames that arrive until now, or until the latest tick. */
  #arrive(until: typeof TIME | typeof TICK): void {
    if (this.#paused) return;
    const t = this.#at[until];
    if (this.#spec.rate === Infinity) {
      this.#arriveUnlimited();
      return;
    }
    if (this.#plain) {
      const gap = this.#gaps[0];
      // At most what a small integer holds; after a stall of seconds the rest comes with the next sync.
      const due = Math.min(Math.floor((t - this.#own[NEXT]) / gap) + 1, this.#most - this.offered, 0x3fffffff) | 0;
      if (due <= 0) return; // also when the load is 0 and the gap infinite
      this.#times?.note(this.#seq, due, this.#own[NEXT], gap);
      this.#own[NEXT] += due * gap;
      this.#arrivePlain(due);
      return;
    }
    while (this.#own[NEXT] <= t && this.offered < this.#most) {
      this.#times?.note(this.#seq, 1, this.#own[NEXT], 0);
      this.#arriveOne();
      this.#own[NEXT] += this.#gaps[this.#turn]; // the next frame is there when its own last bit is
    }
  }

  /** rate=max: as many as there is room for; nothing is ever missed. */
  #arriveUnlimited(): void {
    if (this.#spec.load === 0 || !this.#up) return;
    if (this.#plain) {
      const due = Math.min(this.#free, this.#most - this.offered);
      if (due > 0) this.#arrivePlain(due);
      return;
    }
    // A frame that finds no room waits, instead of being missed: try while the largest fits. At most a ring of them a
    // sync, because frames lost on purpose take no room.
    for (let k = this.kring.ring.numSlots; k > 0 && this.#free >= this.#largest && this.offered < this.#most; k--)
      this.#arriveOne();
  }

  get #largest(): number {
    let slots = 1;
    for (const len of this.#lengths) slots = Math.max(slots, this.#slotsOf(len));
    return slots + (this.#spec.skip > 0 ? 1 + Math.floor((slots - 1) / (this.#spec.skip - 1)) : 0);
  }

  /** `n` single-slot frames of one length. */
  #arrivePlain(n: number): void {
    const { ring } = this.kring;
    let stored = 0;
    while (stored < n && this.#free > 0) {
      const fits = Math.min(n - stored, this.#free);
      const filled = this.#fill(this.#fillSlot, fits, this.#seq + stored, this.#lengths[0]);
      stored += filled;
      this.#free -= filled;
      this.#fillSlot = (this.#fillSlot + filled) % ring.numSlots;
      if (filled === fits) continue;
      // A slot without a buffer of the region: shown with length zero, so that nobody reads it.
      this.badSlots++;
      ring.setLenFlags(this.#fillSlot, 0);
      this.#fillSlot = ring.after(this.#fillSlot);
      this.#free--;
    }
    // At rate=max a frame that finds no slot waits.
    const seen = this.#spec.rate === Infinity ? stored : n;
    this.offered += seen;
    this.missed += seen - stored;
    this.#seq = (this.#seq + seen) | 0;
  }

  #slotsOf(len: number): number {
    return Math.max(Math.ceil(len / this.kring.ring.bufSize), this.#spec.frags, 1);
  }

  /** One frame of any kind: several slots, skipped slots, loss on purpose. */
  #arriveOne(): void {
    const { ring } = this.kring;
    const len = this.#lengths[this.#turn];
    this.#turn = this.#turn + 1 === this.#lengths.length ? 0 : this.#turn + 1;
    const seq = this.#seq;
    this.#seq = (this.#seq + 1) | 0;
    this.offered++;
    if (this.#spec.drop > 0 && this.#chance() < this.#spec.drop) {
      this.dropped++;
      return;
    }
    const slots = this.#slotsOf(len);
    if (this.#spec.check) stampFrame(this.#scratch, len, this.#tag, seq);
    let slot = this.#fillSlot;
    let used = 0;
    let skipped = 0;
    let bad = 0;
    let sinceSkip = this.#sinceSkip;
    for (let done = 0, k = 0; done < len;) {
      if (used === this.#free) {
        this.missed++; // nothing was shown: the slots stay free
        return;
      }
      used++;
      const more = done > 0 ? MOREFRAG : 0; // a slot without data before the frame is none of its slots
      if (this.#spec.skip > 0 && ++sinceSkip === this.#spec.skip) {
        sinceSkip = 0;
        skipped++;
        ring.setLenFlags(slot, 0, more);
      } else if (!ring.bufferValid(slot)) {
        bad++;
        ring.setLenFlags(slot, 0, more);
      } else {
        const end = Math.floor((len * ++k) / slots); // even pieces, and exactly `slots` of them
        ring.i32[ring.slotWord(slot) + SLOT_PTR] = 0;
        ring.setLenFlags(slot, end - done, end < len ? MOREFRAG : 0);
        if (this.#spec.check) ring.u8.set(this.#scratchBytes.subarray(done, end), ring.dataStart(slot));
        done = end;
      }
      slot = ring.after(slot);
    }
    this.#sinceSkip = sinceSkip;
    this.zeroSlots += skipped;
    this.badSlots += bad;
    this.#fillSlot = slot;
    this.#free -= used;
  }

  /** xorshift32: repeatable for a seed. */
  #chance(): number {
    let x = this.#random | 0 || 1;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#random = x;
    return (x >>> 0) / 0x1_0000_0000;
  }
}
