import { amountIn, type Amount } from '../../rings/amount.js';
import { LEN_MASK, MOREFRAG, SLOT_LEN_FLAGS } from '../../rings/abi.js';
import { Kring } from '../../rings/kring.js';
import type { Ring } from '../../rings/ring.js';
import type { SequenceCheck } from '../../stats/sequence.js';
import type { DepartureTimes } from './sim-latency.js';
import { judgeFrame, SEQ_WORD, TAG_WORD } from './sim-frame.js';
import { drainFor, type Drain } from './sim-rings.js';
import { WIRE_FREE, type SimWire } from './sim-wire.js';

/** The sending side of one simulated ring: frames leave at line rate, slots come back at once or at the timer. */
export class SimTx {
  /** Frames that left. */
  sent = 0;
  /** Slots of frames that named no data of the region; they took their slots and nothing else. */
  badSlots = 0;
  /** Those frames. */
  readonly refused: Amount = { frames: 0, bytes: 0 };

  readonly kring: Kring;
  #drain: Drain;
  #latency: DepartureTimes | undefined;
  /** First slot whose frame has not left. */
  #cursor = 0;
  #scratch = new Int32Array(0);
  #scratchBytes = new Uint8Array(0);

  constructor(
    ring: Ring,
    readonly wire: SimWire,
    readonly check: SequenceCheck,
    readonly checked: boolean,
  ) {
    this.kring = new Kring(ring);
    this.#drain = drainFor(ring, wire, checked, check.expected);
  }

  /** Takes the times at which frames leave from now on. */
  watch(latency: DepartureTimes): void {
    const { wire, check, checked } = this;
    const { every, taken } = latency;
    this.#latency = latency;
    this.#drain = drainFor(this.kring.ring, wire, checked, check.expected, every, taken);
  }

  /** Slots handed over that have not left. */
  get pending(): number {
    const n = this.kring.hwcur - this.#cursor;
    return n < 0 ? n + this.kring.ring.numSlots : n;
  }

  /** Frames that leave until the wire's UNTIL. */
  depart(): void {
    const { wire } = this;
    for (let pending = this.pending; pending > 0; pending = this.pending) {
      const n = pending < wire.left ? pending : wire.left;
      const left = this.#drain(this.#cursor, n);
      this.#latency?.settle();
      this.#sent(left, left);
      if (left === n || !this.#departOne(pending - left)) return;
    }
  }

  #sent(frames: number, slots: number): void {
    this.sent += frames;
    if (this.wire.left !== Infinity) this.wire.left -= frames;
    this.#cursor = (this.#cursor + slots) % this.kring.ring.numSlots;
  }

  /** Takes what the user handed over. Returns whether anything was. */
  take(): boolean {
    const head = this.kring.begin();
    const taken = head !== this.kring.hwcur;
    this.kring.hwcur = head;
    return taken;
  }

  /** Gives slots back whose frames have left. */
  release(): void {
    const { ring } = this.kring;
    this.kring.publish(this.#cursor === 0 ? ring.numSlots - 1 : this.#cursor - 1);
  }

  /** The frame at the cursor, of any kind. False: its time has not come, or its end is not there. */
  #departOne(pending: number): boolean {
    const { ring } = this.kring;
    let slots = 0;
    let bytes = 0;
    let valid = true;
    for (let i = this.#cursor, more = true; more; i = ring.after(i)) {
      if (slots === pending) {
        // A full ring without an end holds a frame that can never end.
        if (slots === ring.numSlots - 1) this.#discard(slots);
        return false;
      }
      const lenFlags = ring.i32[ring.slotWord(i) + SLOT_LEN_FLAGS];
      more = (lenFlags & MOREFRAG) !== 0;
      bytes += lenFlags & LEN_MASK;
      valid &&= ring.slotValid(i);
      slots++;
    }
    if (bytes === 0 || !valid) this.#discard(slots);
    else {
      if (!this.wire.carry(bytes)) return false;
      if (this.checked) this.#judge(slots, bytes);
      this.#sent(1, slots);
    }
    return true;
  }

  #discard(slots: number): void {
    this.badSlots += slots;
    this.refused.frames++; // also one without an end
    this.refused.bytes += amountIn(this.kring.ring, this.#cursor, slots).bytes;
    this.#cursor = (this.#cursor + slots) % this.kring.ring.numSlots;
  }

  #judge(slots: number, bytes: number): void {
    const { ring } = this.kring;
    const start = ring.dataStart(this.#cursor);
    // In place where it can be: after a loss every next frame comes here, and views are objects.
    const inPlace = slots === 1 && start % 4 === 0;
    if (!inPlace) this.#gather(slots, bytes);
    const words = inPlace ? ring.i32 : this.#scratch;
    const at = inPlace ? start / 4 : 0;
    const verdict = judgeFrame(words, at, bytes);
    if (verdict !== 'good') {
      this.check[verdict]++;
      return;
    }
    const tag = words[at + TAG_WORD] >>> 16;
    const seq = words[at + SEQ_WORD];
    this.check.arrived(tag, seq);
    this.#latency?.departed(tag, seq, this.wire.state[WIRE_FREE]);
  }

  /** The bytes of a frame of several slots, one after the other. */
  #gather(slots: number, bytes: number): void {
    const { ring } = this.kring;
    if (this.#scratchBytes.length < bytes) {
      this.#scratch = new Int32Array(Math.ceil(bytes / 4));
      this.#scratchBytes = new Uint8Array(this.#scratch.buffer);
    }
    let at = 0;
    for (let k = 0, i = this.#cursor; k < slots; k++, i = ring.after(i)) {
      this.#scratchBytes.set(ring.data(i), at);
      at += ring.len(i);
    }
  }
}
