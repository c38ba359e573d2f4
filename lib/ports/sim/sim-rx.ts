import { MOREFRAG, SLOT_PTR } from '../../rings/abi.js';
import { Kring } from '../../rings/kring.js';
import type { Ring } from '../../rings/ring.js';
import type { SimSpec } from '../../names/sim-name.js';
import { FCS_BYTES, mixSequence, WIRE_OVERHEAD_BYTES } from '../../text/units.js';
import { TICK, TIME } from './sim-clock.js';
import type { ArrivalTimes } from './sim-latency.js';
import { SimLoss } from './sim-loss.js';
import { stampFrame } from './sim-frame.js';
import { fillFor, type Fill } from './sim-rings.js';

/**
 * Link times of a ring, ns: when the next frame arrives, when the first of those being dealt with did, and of the
 * moderation tick that was shown last.
 */
const NEXT = 0;
const FIRST = 1;
const SHOWN = 2;
/** Frames dealt with in one step at most: what a small integer holds. */
const MOST_AT_ONCE = 0x3fffffff;

/**
 * The receiving side of one simulated ring: frames arrive by the clock, take free slots, and become visible at once
 * or at the next moderation tick. A frame that finds no room is lost, as on a NIC; its sequence number is used up.
 *
 * What a sync has to do is bounded by the slots that are free, however many frames are due: once none of them can find
 * room, all the rest are counted in one step.
 */
export class SimRx {
  /** Frames that arrived at the port. */
  offered = 0;
  /** Of these, frames that found too few free slots. */
  missed = 0;
  /** Of these, frames lost on purpose (`drop=`). */
  dropped = 0;
  /** Slots given to the user with length zero (`skip=`). */
  zeroSlots = 0;
  /** The same because they name no buffer: slots the user handed back with an index outside the region. */
  badSlots = 0;

  readonly kring: Kring;
  readonly #at: Float64Array;
  readonly #spec: SimSpec;
  readonly #fill: Fill;
  readonly #loss: SimLoss;
  /** Where a frame of several slots is put together. */
  readonly #scratch: Int32Array;
  readonly #scratchBytes: Uint8Array;
  /** Lengths of the frames without FCS, in the order in which they repeat. */
  readonly #lengths: Int32Array;
  /** ns from each frame to the next one of this ring, as offered; and for all of them. */
  readonly #gaps: Float64Array;
  readonly #round: number;
  /** Slots with data that the smallest frame takes. */
  readonly #least: number;
  readonly #limit: number;
  /** NEXT, FIRST and SHOWN; see SimClock.at for why they are no fields. */
  readonly #own = new Float64Array(3);
  #times: ArrivalTimes | undefined;
  /** Frames offered before the source ends. */
  #most: number;
  /** Place of the next frame in `#lengths`. */
  #turn = 0;
  #seq = 0;
  /** Next slot a frame goes to; slots [visible, fill) hold frames not yet shown. */
  #fillSlot = 0;
  #visible = 0;
  /** Slots the ring may fill. */
  #free: number;
  /** Consumed by the user but not refilled yet (`budget=`). */
  #unfilled = 0;
  /** Slots that get data before one goes empty (`skip=`). */
  #untilSkip: number;
  #up = true;
  #paused = false;

  /**
   * @param ring   the ring
   * @param at     the link's time; see SimClock.at
   * @param rings  rings of the port: frames come to them in turn, each gets its share of the rate
   * @param tag    what the stamps of this ring's frames say; its low byte is the ring's number
   */
  constructor(
    ring: Ring,
    spec: SimSpec,
    at: Float64Array,
    rings: number,
    readonly tag: number,
  ) {
    const number = tag & 0xff;
    this.#at = at;
    this.kring = new Kring(ring);
    this.#spec = spec;
    this.#fill = fillFor(ring, tag, spec.check);
    this.#free = ring.numSlots - 1;
    this.#untilSkip = spec.skip > 0 ? spec.skip - 1 : ring.numSlots;
    this.#limit = spec.count === 0 ? Infinity : Math.ceil((spec.count - number) / rings);
    this.#most = this.#limit;
    const sizes = mixSequence(spec.size);
    const nsPerByte = spec.load > 0 ? (8e9 / spec.rate) * (rings / spec.load) : Infinity;
    this.#lengths = Int32Array.from(sizes, (size) => size - FCS_BYTES);
    this.#gaps = Float64Array.from(sizes, (size) => (size + WIRE_OVERHEAD_BYTES) * nsPerByte);
    this.#round = this.#gaps.reduce((sum, gap) => sum + gap);
    this.#least = this.#slotsOf(Math.min(...this.#lengths));
    // The first frame is there when its last bit is: rings are served in turn.
    this.#own[NEXT] = spec.rate === Infinity ? 0 : (this.#gaps[0] * (number + 1)) / rings;
    // The port's number is left out of the seed, to be repeatable.
    this.#loss = new SimLoss(spec.drop, (spec.seed << 6) + number + 1);
    this.#scratch = new Int32Array(Math.ceil(Math.max(...this.#lengths) / 4));
    this.#scratchBytes = new Uint8Array(this.#scratch.buffer);
  }

  /** Sequence number the next frame gets. */
  get nextSeq(): number {
    return this.#seq;
  }

  /** Nothing arrives from now on, until resume(); what was due until now has arrived. */
  pause(): void {
    if (this.#spec.rate !== Infinity) this.#arrive(TIME);
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
    if (this.#spec.rate === Infinity) this.#arriveUnlimited();
    else for (let n = this.#due(until); n > 0; n = this.#due(until)) this.#miss(n - this.#receive(n));
  }

  /**
   * Frames that are due and can be dealt with together: of one length, or more than find room; 0: no more. The next is
   * the one behind them, though `#turn` stays at the first.
   */
  #due(until: typeof TIME | typeof TICK): number {
    const own = this.#own;
    const frames = this.#lengths.length;
    const most = Math.min(this.#most - this.offered, MOST_AT_ONCE);
    if (own[NEXT] > this.#at[until] || most <= 0) return 0;
    const alone = frames > 1 && this.#free >= this.#least;
    const rounds = alone ? 0 : Math.floor(Math.min((this.#at[until] - own[NEXT]) / this.#round, (most - 1) / frames));
    own[FIRST] = own[NEXT];
    // Whole rounds and one frame; the next is there when its own last bit is.
    own[NEXT] += rounds * this.#round + this.#gaps[this.#after(this.#turn)];
    return (rounds * frames + 1) | 0;
  }

  #after(turn: number): number {
    return turn + 1 === this.#lengths.length ? 0 : turn + 1;
  }

  /** rate=max: as many as there is room for; a frame that finds none waits. Frames lost on purpose take no room. */
  #arriveUnlimited(): void {
    if (this.#spec.load === 0 || !this.#up) return;
    let due = Math.min(this.kring.ring.numSlots, this.#most - this.offered);
    while (due > 0) {
      const seen = this.#receive(this.#lengths.length === 1 ? due : 1);
      if (seen === 0) return;
      due -= seen;
    }
  }

  /** `n` frames of one length, until one finds no room. Returns how many were received or lost on purpose. */
  #receive(n: number): number {
    const loss = this.#loss;
    let seen = 0;
    while (seen < n) {
      const run = Math.min(n - seen, loss.run);
      const passed = loss.losing ? run : this.#store(run);
      if (loss.losing) this.dropped += run;
      else
        this.#times?.note(this.#seq, passed, this.#own[FIRST] + seen * this.#gaps[this.#turn], this.#gaps[this.#turn]);
      loss.pass(passed);
      this.#seq = (this.#seq + passed) | 0;
      seen += passed;
      if (passed < run) break;
    }
    this.offered += seen;
    if (seen === n) this.#turn = this.#after(this.#turn);
    return seen;
  }

  /** `n` frames that find no room: the first was spared to get so far, of the others some are lost on purpose. */
  #miss(n: number): void {
    if (n === 0) return;
    const dropped = this.#loss.of(n - 1);
    this.#loss.begin();
    this.dropped += dropped;
    this.missed += n - dropped;
    this.offered += n;
    this.#seq = (this.#seq + n) | 0;
    this.#turn = this.#after(this.#turn);
  }

  /** Puts `n` frames into slots. Returns how many found room. */
  #store(n: number): number {
    const len = this.#lengths[this.#turn];
    const slots = this.#slotsOf(len);
    let stored = 0;
    if (slots === 1) return this.#storeWhole(n, len);
    while (stored < n && this.#storeSpread((this.#seq + stored) | 0, len, slots)) stored++;
    return stored;
  }

  #slotsOf(len: number): number {
    return Math.max(Math.ceil(len / this.kring.ring.bufSize), this.#spec.frags, 1);
  }

  /** Slots that go empty before the next `slots` with data are full. */
  #empties(slots: number): number {
    const { skip } = this.#spec;
    return slots <= this.#untilSkip ? 0 : 1 + Math.floor((slots - this.#untilSkip - 1) / (skip - 1));
  }

  /** Frames of a slot each. */
  #storeWhole(n: number, len: number): number {
    const { ring } = this.kring;
    let stored = 0;
    while (stored < n && this.#free > this.#empties(1)) {
      if (this.#untilSkip === 0) {
        this.zeroSlots++;
        this.#untilSkip = this.#spec.skip - 1;
        this.#passOver();
      }
      const fits = Math.min(n - stored, this.#free, this.#untilSkip);
      const filled = this.#fill(this.#fillSlot, fits, this.#seq + stored, len);
      stored += filled;
      if (this.#spec.skip > 0) this.#untilSkip -= filled;
      this.#free -= filled;
      this.#fillSlot = (this.#fillSlot + filled) % ring.numSlots;
      if (filled === fits) continue;
      this.badSlots++;
      this.#passOver();
    }
    return stored;
  }

  /** Shows the next slot with length zero, so that nobody reads it. */
  #passOver(): void {
    const { ring } = this.kring;
    ring.setLenFlags(this.#fillSlot, 0);
    this.#fillSlot = ring.after(this.#fillSlot);
    this.#free--;
  }

  /** A frame of several slots, all of it or nothing. Returns whether it found room. */
  #storeSpread(seq: number, len: number, slots: number): boolean {
    const { ring } = this.kring;
    const { skip, check } = this.#spec;
    if (slots + this.#empties(slots) > this.#free) return false;
    if (check) stampFrame(this.#scratch, len, this.tag, seq);
    let slot = this.#fillSlot;
    let used = 0;
    let skipped = 0;
    let bad = 0;
    let untilSkip = this.#untilSkip;
    for (let k = 0, done = 0; done < len; slot = ring.after(slot)) {
      if (used === this.#free) return false; // slots without a buffer took the room
      used++;
      const more = done > 0 ? MOREFRAG : 0; // an empty slot before the frame is none of its slots
      if (untilSkip === 0) {
        untilSkip = skip - 1;
        skipped++;
        ring.setLenFlags(slot, 0, more);
      } else if (!ring.bufferValid(slot)) {
        bad++;
        ring.setLenFlags(slot, 0, more);
      } else {
        if (skip > 0) untilSkip--;
        const end = Math.floor((len * ++k) / slots); // even pieces, and exactly `slots` of them
        ring.i32[ring.slotWord(slot) + SLOT_PTR] = 0;
        ring.setLenFlags(slot, end - done, end < len ? MOREFRAG : 0);
        if (check) ring.u8.set(this.#scratchBytes.subarray(done, end), ring.dataStart(slot));
        done = end;
      }
    }
    this.#untilSkip = untilSkip;
    this.zeroSlots += skipped;
    this.badSlots += bad;
    this.#fillSlot = slot;
    this.#free -= used;
    return true;
  }
}
