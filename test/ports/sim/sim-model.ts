/**
 * What two simulated ports must do, frame by frame and shared with them in no line of code: frames arrive at port a, whoever
 * moves them takes all that fit, and port b sends them. Times are ns of each link's virtual clock.
 */

/** Options of a port as numbers; 0: off. `rate` in bits per second, sizes in bytes with FCS. */
export interface Settings {
  rate: number;
  load: number;
  sizes: readonly number[];
  slots: number;
  rings: number;
  itr: number;
  txtimer: number;
  frags: number;
  skip: number;
  budget: number;
  wedge: number;
  flap: [up: number, down: number] | undefined;
  step: number;
  count: number;
  buf: number;
}

interface Frame {
  arrived: number;
  /** Bytes without FCS. */
  len: number;
  /** Slots with data. */
  data: number;
  /** Slots it takes of the ring it arrives in. */
  taken: number;
}

/** A link's clock: it advances with every sync and stands while the link is down. */
class Clock {
  syncs = 0;
  constructor(readonly settings: Settings) {}

  tick(): { time: number; up: boolean } {
    const elapsed = ++this.syncs * this.settings.step;
    if (this.settings.flap === undefined) return { time: elapsed, up: true };
    const [up, down] = this.settings.flap;
    const cycles = Math.floor(elapsed / (up + down));
    const into = elapsed - cycles * (up + down);
    return { time: cycles * up + Math.min(into, up), up: into < up };
  }
}

class RxRing {
  offered = 0;
  missed = 0;
  empties = 0;
  /** Frames in slots, and those of them that the user sees. */
  frames: Frame[] = [];
  visible = 0;
  #free: number;
  #consumed = 0;
  #owed = 0;
  #slotsSeen = 0;
  #shown = 0;
  #next: number;

  constructor(
    readonly of: Settings,
    readonly number: number,
  ) {
    this.#free = of.slots - 1;
    this.#next = (this.#gap(0) * (number + 1)) / of.rings;
  }

  /** Time on the wire of the k-th frame, of which this ring gets every `rings`-th. */
  #gap(k: number): number {
    const { sizes, rate, load, rings } = this.of;
    return ((sizes[k % sizes.length] + 20) * 8 * 1e9 * rings) / rate / load;
  }

  #arrive(until: number): void {
    const { sizes, count, rings, skip, frags, buf } = this.of;
    const limit = count === 0 ? Infinity : Math.ceil((count - this.number) / rings);
    for (; this.#next <= until && this.offered < limit; this.#next += this.#gap(this.offered)) {
      const len = sizes[this.offered % sizes.length] - 4;
      const data = Math.max(frags, Math.ceil(len / buf));
      // Slots are counted through; of each run of `skip` the last is empty, and a frame ends with a slot that is not.
      let taken = 0;
      for (let filled = 0; filled < data; taken++)
        if (skip === 0 || (this.#slotsSeen + taken + 1) % skip !== 0) filled++;
      this.offered++;
      if (taken > this.#free) {
        this.missed++;
        continue;
      }
      this.#slotsSeen += taken;
      this.#free -= taken;
      this.empties += taken - data;
      this.frames.push({ arrived: this.#next, len, data, taken });
    }
  }

  sync(time: number): void {
    const { itr, budget } = this.of;
    const tick = itr === 0 ? time : Math.floor(time / itr) * itr;
    if (itr === 0 || tick > this.#shown) {
      this.#shown = tick;
      this.#arrive(tick);
      this.visible = this.frames.length;
    }
    this.#arrive(time);
    // What came until now found the slots that were free until now.
    this.#owed += this.#consumed;
    this.#consumed = 0;
    const refilled = budget === 0 ? this.#owed : Math.min(this.#owed, budget);
    this.#owed -= refilled;
    this.#free += refilled;
  }

  take(): Frame {
    const frame = this.frames.shift()!;
    this.visible--;
    this.#consumed += frame.taken;
    return frame;
  }
}

class TxRing {
  /** Put there and not taken by a sync yet; taken and not gone. */
  put: Frame[] = [];
  pending: Frame[] = [];
  space: number;
  #gone = 0;

  constructor(readonly slots: number) {
    this.space = slots - 1;
  }

  leaves(): Frame {
    const frame = this.pending.shift()!;
    this.#gone += frame.data;
    return frame;
  }

  release(): void {
    this.space += this.#gone;
    this.#gone = 0;
  }
}

export class Model {
  sent = 0;
  sentBytes = 0;
  /** Of each frame that left, in order. */
  readonly latencies: number[] = [];
  readonly rx: RxRing[];
  readonly #tx: TxRing[];
  readonly #clocks: readonly [Clock, Clock];
  #free = 0;
  #tick = 0;
  #first = 0;

  constructor(
    a: Settings,
    readonly b: Settings,
  ) {
    this.rx = Array.from({ length: a.rings }, (_, i) => new RxRing(a, i));
    this.#tx = Array.from({ length: b.rings }, () => new TxRing(b.slots));
    this.#clocks = [new Clock(a), new Clock(b)];
  }

  get pendingSlots(): number {
    return this.#tx.reduce((sum, ring) => sum + ring.pending.reduce((slots, { data }) => slots + data, 0), 0);
  }

  /** a receives, all that fits is moved, b sends. */
  turn(): void {
    const { time } = this.#clocks[0].tick();
    for (const ring of this.rx) ring.sync(time);
    this.rx.forEach((rx, i) => {
      const tx = this.#tx[i];
      while (rx.visible > 0 && rx.frames[0].data <= tx.space) {
        tx.space -= rx.frames[0].data;
        tx.put.push(rx.take());
      }
    });
    this.#send();
  }

  #send(): void {
    const { time, up } = this.#clocks[1].tick();
    const { txtimer } = this.b;
    const n = this.#tx.length;
    this.#first = (this.#first + 1) % n;
    const inTurn = this.#tx.map((_, k) => this.#tx[(this.#first + k) % n]);
    const tick = txtimer === 0 ? 0 : Math.floor(time / txtimer) * txtimer;
    if (tick > this.#tick) {
      this.#tick = tick;
      for (const ring of this.#tx) {
        this.#depart(ring, tick, up);
        ring.release();
      }
    }
    for (const ring of inTurn) this.#depart(ring, time, up);
    for (const ring of inTurn) {
      // The wire that stood idle begins with the first frame handed over.
      if (ring.put.length > 0 && this.#tx.every(({ pending }) => pending.length === 0))
        this.#free = Math.max(this.#free, time);
      ring.pending.push(...ring.put.splice(0));
      this.#depart(ring, time, up);
      if (txtimer === 0) ring.release();
    }
  }

  #depart(ring: TxRing, until: number, up: boolean): void {
    const { rate, wedge } = this.b;
    while (up && ring.pending.length > 0 && (wedge === 0 || this.sent < wedge)) {
      const { len } = ring.pending[0];
      const left = this.#free + ((Math.max(len + 4, 64) + 20) * 8 * 1e9) / rate;
      if (left > until) return;
      this.#free = left;
      this.sent++;
      this.sentBytes += len;
      this.latencies.push(left - ring.leaves().arrived);
    }
  }
}
