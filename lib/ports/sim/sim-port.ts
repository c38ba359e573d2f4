import { sumOf, type Amount } from '../../rings/amount.js';
import { RING_TAIL } from '../../rings/abi.js';
import { UsageError } from '../../text/errors.js';
import type { Memory } from '../../rings/memory.js';
import type { Needs, Port, Prepare } from '../port.js';
import type { Ring } from '../../rings/ring.js';
import type { SimSpec } from '../../names/sim-name.js';
import { SequenceCheck } from '../../stats/sequence.js';
import { SimClock, TICK, TIME } from './sim-clock.js';
import { ArrivalTimes, DepartureTimes } from './sim-latency.js';
import { SimRx } from './sim-rx.js';
import { SimTx } from './sim-tx.js';
import { SENT_BYTES, SimWire, UNTIL, WIRE_FREE } from './sim-wire.js';

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
  /** Longest time between two syncs, ns; absent on the virtual clock, where each is a step after the other. */
  longestGapNs?: number;
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
  /** Link time of the last tx timer tick, ns; in an array as all times are, see SimClock.at. */
  readonly #txTick = new Float64Array(1);
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
    this.#wire = new SimWire(spec.rate === Infinity ? 0 : 8e9 / spec.rate, spec.wedge || Infinity);
    // 256 ports of 256 rings before tags repeat; what repeats in one bridge would have to be opened in it.
    const port = ports++ & 0xff;
    this.#receivers = rx.map((ring) => new SimRx(ring, spec, this.#clock.at, rx.length, (port << 8) | ring.id));
    this.#senders = tx.map((ring) => new SimTx(ring, this.#wire, this.#check, spec.check));
  }

  rxsync(): void {
    if (this.#closed) return;
    const clock = this.#clock;
    clock.tick();
    const t = clock.at[TIME];
    const { itr } = this.#spec;
    clock.at[TICK] = itr > 0 ? t - (t % itr) : t;
    const receivers = this.#receivers;
    for (let i = 0; i < receivers.length; i++) receivers[i].sync(clock.up);
  }

  txsync(): void {
    if (this.#closed) return;
    const clock = this.#clock;
    clock.tick();
    const { at, up } = clock;
    const { txtimer } = this.#spec;
    const wire = this.#wire.state;
    const senders = this.#senders;
    const n = senders.length;
    // The rings take turns at being first on the wire.
    this.#turn = this.#turn + 1 < n ? this.#turn + 1 : 0;
    if (txtimer > 0 && at[TIME] - (at[TIME] % txtimer) > this.#txTick[0]) this.#txTimer(txtimer);
    wire[UNTIL] = at[TIME];
    let idle = true;
    for (let k = 0; k < n; k++) {
      const sender = senders[(this.#turn + k) % n];
      // What waited leaves first: only then is it known whether the wire stood idle when more was handed over.
      if (up) sender.depart();
      if (sender.pending > 0) idle = false;
    }
    for (let k = 0; k < n; k++) {
      const sender = senders[(this.#turn + k) % n];
      if (sender.take()) {
        if (idle && wire[WIRE_FREE] < at[TIME]) wire[WIRE_FREE] = at[TIME];
        idle = false;
        if (up) sender.depart();
      }
      if (txtimer === 0) sender.release();
    }
  }

  /** The tx timer has fired since the last sync: what had left by then comes back. */
  #txTimer(period: number): void {
    const { at, up } = this.#clock;
    this.#txTick[0] = at[TIME] - (at[TIME] % period);
    this.#wire.state[UNTIL] = this.#txTick[0];
    for (const sender of this.#senders) {
      if (up) sender.depart();
      sender.release();
    }
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

  refused(): Amount {
    return sumOf(this.#senders.map((sender) => sender.refused));
  }

  /** Nothing arrives from now on. Frames already in the rings go on. */
  pause(): void {
    for (const receiver of this.#receivers) receiver.pause();
  }
  /** @param frames that arrive before the link falls silent again; default: without end, or as `count=` says */
  resume(frames = Infinity): void {
    this.#clock.refresh();
    this.#clock.forgetGaps();
    const rings = this.#receivers.length;
    this.#receivers.forEach((receiver, i) => {
      receiver.resume(this.#clock.time, frames === Infinity ? frames : Math.ceil((frames - i) / rings));
    });
  }

  /** Whether frames have arrived that are not in the rx rings yet (`itr=`). */
  hiding(): boolean {
    return this.#receivers.some((receiver) => receiver.hiding);
  }

  /** Link time of the latest sync, ns since the port was opened. */
  get linkTime(): number {
    return this.#clock.time;
  }

  /**
   * Measures from now on how long frames that arrive at `source` take until they have left here.
   * @param every look at each frame whose sequence number is a multiple of this, a power of two
   * @throws UsageError for ports without a clock in common or without stamped frames
   */
  watchLatency(source: SimPort, every: number): DepartureTimes {
    for (const { text, rate, check, flap } of [this.#spec, source.#spec]) {
      if (rate === Infinity)
        throw new UsageError(
          `${text}: with rate=max frames have no time of arrival; give a rate, for example rate=10G`,
        );
      if (!check) throw new UsageError(`${text}: latency is read from the stamps of frames; leave check=off away`);
      if (flap) throw new UsageError(`${text}: a link's clock stands while it is down; leave flap= away`);
    }
    this.#clock.refresh();
    source.#clock.refresh();
    const arrivals = source.#receivers.map((receiver) => {
      const times = new ArrivalTimes(every);
      receiver.watch(times);
      return [receiver.tag, times] as const;
    });
    const ahead = this.#clock.origin - source.#clock.origin;
    const latency = new DepartureTimes(every, new Map(arrivals), this.#spec.slots, ahead);
    for (const sender of this.#senders) sender.watch(latency);
    return latency;
  }
  /** Settles the account with `source`, which is paused and whose frames leave here: what has not come is lost. */
  settle(source: SimPort): void {
    if (!this.#spec.check) return;
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
      ...(this.#spec.clock === 'real' && { longestGapNs: this.#clock.longestGap }),
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
