import { amountIn, type Amount } from '../../rings/amount.js';
import { LEN_MASK, MOREFRAG, SLOT_LEN_FLAGS } from '../../rings/abi.js';
import { Kring } from '../../rings/kring.js';
import type { Ring } from '../../rings/ring.js';
import type { SequenceCheck } from '../../stats/sequence.js';
import type { DepartureTimes } from './sim-latency.js';
import { judgeFrame, SEQ_WORD, TAG_WORD } from './sim-frame.js';
import { drainFor, SENT_BYTES, UNTIL, WIRE_FREE, type Drain } from './sim-rings.js';

/** The wire that all tx rings of a port share. */
export class SimWire {
  /** See WIRE_FREE, UNTIL, SENT_BYTES. */
  readonly state = new Float64Array(4);

  constructor(
    /** 0: no limit. */
    readonly nsPerByte: number,
  ) {}
}

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
    this.#drain = drainFor(ring, wire.state, wire.nsPerByte, checked, check.expected);
  }

  /** Takes the times at which frames leave from now on. */
  watch(latency: DepartureTimes): void {
    const { wire, check, checked } = this;
    const { every, taken } = latency;
    this.#latency = latency;
    this.#drain = drainFor(this.kring.ring, wire.state, wire.nsPerByte, checked, check.expected, every, taken);
  }

  /** Slots handed over that have not left. */
  get pending(): number {
    const n = this.kring.hwcur - this.#cursor;
    return n < 0 ? n + this.kring.ring.numSlots : n;
  }

  /** Frames that leave until the wire's UNTIL. */
  depart(): void {
    const { ring } = this.kring;
    for (let pending = this.pending; pending > 0; pending = this.pending) {
      const left = this.#drain(this.#cursor, pending);
      this.sent += left;
      this.#latency?.settle();
      this.#cursor = (this.#cursor + left) % ring.numSlots;
      if (left === pending || !this.#departOne(pending - left)) break;
    }
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
    const { state, nsPerByte } = this.wire;
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
    if (bytes === 0) valid = false;
    if (valid && nsPerByte !== 0) {
      const left = state[WIRE_FREE] + (Math.max(bytes, 60) + 24) * nsPerByte;
      if (left > state[UNTIL]) return false;
      state[WIRE_FREE] = left;
    }
    if (valid) {
      this.sent++;
      state[SENT_BYTES] += bytes;
      if (this.checked) this.#judge(slots, bytes);
      this.#cursor = (this.#cursor + slots) % ring.numSlots;
    } else this.#discard(slots);
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
