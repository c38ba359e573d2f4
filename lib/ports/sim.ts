import { RING_TAIL } from '../abi.js';
import type { Memory } from '../memory.js';
import type { Needs, Port, Prepare } from '../port.js';
import type { Ring } from '../ring.js';
import type { SimSpec } from '../spec/sim.js';
import { SequenceCheck } from '../sequence.js';
import { SimClock } from './sim-clock.js';
import { SENT_BYTES } from './sim-rings.js';
import { SimRx } from './sim-rx.js';
import { SimTx, SimWire } from './sim-tx.js';

/** What stats() of a simulated port counts; frames unless it says otherwise. */
export interface SimStats extends Record<string, number> {
  /** Arrived from the wire. */
  offered: number;
  /** Of these, lost because no slot was free. */
  missed: number;
  /** Of these, lost on purpose (`drop=`). */
  dropped: number;
  /** Left to the wire. */
  sent: number;
  /** Bytes of these, without FCS. */
  sentBytes: number;
  /** Checked on leaving: sequence numbers that were passed over and never came. */
  lost: number;
  duplicates: number;
  reordered: number;
  /** Frames whose contents are not what was stamped. */
  corrupt: number;
  /** Frames without a stamp. */
  foreign: number;
  /** Slots, not frames: shown with length zero (`skip=`). */
  zeroSlots: number;
  /** Slots, not frames: handed over with an index or length outside the region. */
  badSlots: number;
  /** Times a ring was put back because head or cur was outside what the user owned. */
  reinits: number;
  /** Longest time between two syncs, ns. */
  longestGapNs: number;
}

let ports = 0;

/** A simulated port. Besides what every port does, its link can be quieted, for trials with exact counts. */
export class SimPort implements Port {
  readonly name: string;
  readonly driver = 'sim';
  readonly region;
  readonly tx: readonly Ring[];
  readonly rx: readonly Ring[];
  readonly hostTx = [];
  readonly hostRx = [];
  readonly notes: string[] = [];
  readonly fds = [];
  readonly napNs = 20_000;
  readonly hasLink = false;

  readonly #spec: SimSpec;
  readonly #memory: Memory;
  readonly #clock: SimClock;
  readonly #receivers: readonly SimRx[];
  readonly #senders: readonly SimTx[];
  readonly #wire: SimWire;
  readonly #check = new SequenceCheck();
  #txTick = 0;
  #turn = 0;
  #closed = false;

  constructor(spec: SimSpec, memory: Memory, needs: Needs) {
    const { tx, rx } = memory.carve(needs.plan);
    this.name = spec.text;
    this.#spec = spec;
    this.#memory = memory;
    this.region = memory.region;
    this.tx = tx;
    this.rx = rx;
    this.#clock = new SimClock(spec);
    this.#wire = new SimWire(spec.rate === Infinity ? 0 : 8e9 / spec.rate);
    // 256 ports of 256 rings before tags repeat; what repeats in one bridge would have to be opened in it.
    const port = ports++ & 0xff;
    this.#receivers = rx.map((ring) => new SimRx(ring, spec, rx.length, (port << 8) | ring.id));
    this.#senders = tx.map((ring) => new SimTx(ring, this.#wire, this.#check, spec.check));
  }

  rxsync(): void {
    if (this.#closed) return;
    const clock = this.#clock;
    clock.tick();
    const t = clock.time;
    const { itr } = this.#spec;
    const tick = itr > 0 ? t - (t % itr) : t;
    for (const receiver of this.#receivers) receiver.sync(t, tick);
  }

  txsync(): void {
    if (this.#closed) return;
    const clock = this.#clock;
    clock.tick();
    const t = clock.time;
    const { txtimer } = this.#spec;
    const senders = this.#senders;
    const n = senders.length;
    // The rings take turns at being first on the wire.
    this.#turn = this.#turn + 1 < n ? this.#turn + 1 : 0;
    const tick = txtimer > 0 ? t - (t % txtimer) : t;
    for (let k = 0; k < n; k++) {
      const sender = senders[(this.#turn + k) % n];
      if (txtimer > 0 && tick > this.#txTick) {
        sender.depart(tick);
        sender.release();
      }
      sender.take(t);
      if (clock.up) sender.depart(this.#wire.nsPerByte === 0 ? Infinity : t);
      if (txtimer === 0) sender.release();
    }
    this.#txTick = tick;
  }

  linkUp(): boolean {
    return this.#clock.up;
  }

  ended(): boolean {
    return this.#receivers.every((receiver) => receiver.ended);
  }

  txPending(): number {
    return this.#senders.reduce((sum, sender) => sum + sender.pending, 0);
  }

  /** Nothing arrives from now on. Frames already in the rings go on. */
  pause(): void {
    for (const receiver of this.#receivers) receiver.pause();
  }
  resume(): void {
    this.#clock.tick();
    this.#clock.longestGap = 0;
    for (const receiver of this.#receivers) receiver.resume(this.#clock.time);
  }
  /** Settles the account with `source`, which is paused and whose frames leave here: what has not come is lost. */
  settle(source: SimPort): void {
    for (const receiver of source.#receivers) this.#check.settle(receiver.tag, receiver.nextSeq);
  }

  stats(): SimStats {
    const rx = (of: (receiver: SimRx) => number): number => this.#receivers.reduce((sum, r) => sum + of(r), 0);
    const tx = (of: (sender: SimTx) => number): number => this.#senders.reduce((sum, s) => sum + of(s), 0);
    const { lost, duplicates, reordered, corrupt, foreign } = this.#check;
    return {
      offered: rx((r) => r.offered),
      missed: rx((r) => r.missed),
      dropped: rx((r) => r.dropped),
      sent: tx((s) => s.sent),
      sentBytes: this.#wire.state[SENT_BYTES],
      lost,
      duplicates,
      reordered,
      corrupt,
      foreign,
      zeroSlots: rx((r) => r.zeroSlots),
      badSlots: rx((r) => r.badSlots) + tx((s) => s.badSlots),
      reinits: rx((r) => r.kring.reinits) + tx((s) => s.kring.reinits),
      longestGapNs: this.#clock.longestGap,
    };
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // The memory may live on, with the other port of a bridge.
    for (const ring of [...this.tx, ...this.rx]) ring.i32[ring.base + RING_TAIL] = ring.head;
    this.#memory.release();
  }
}

export const prepareSim: Prepare<SimSpec> = (spec) => {
  const slots = Array.from({ length: spec.rings }, () => spec.slots);
  const needs: Needs = { plan: { tx: slots, rx: slots }, bufSize: spec.buf };
  return { needs, open: (memory) => new SimPort(spec, memory!, needs) };
};
