import type { Amount } from '../rings/amount.js';
import { BYTES, COUNTERS, FRAMES, REFUSED, SLOTS, UNSENT } from './counters.js';
import { LaneGroup, mapRings } from './lane-group.js';
import { Lane } from './lane.js';
import type { Port } from '../ports/port.js';
import type { Ring } from '../rings/ring.js';
import { refusedBy, unsentBy } from './unsent.js';

/** One side of a bridge: the port whose syncs move the rings, and the rings that take part. */
export interface Side {
  readonly port: Port;
  readonly rx: readonly Ring[];
  readonly tx: readonly Ring[];
}

/** A port's NIC rings as one side. */
export function nicSide(port: Port): Side {
  return { port, rx: port.rx, tx: port.tx };
}

/** A port's host rings as one side. */
export function hostSide(port: Port): Side {
  return { port, rx: port.hostRx, tx: port.hostTx };
}

export interface BridgeOptions {
  /** Slots moved into each tx ring a turn. Default 1024. */
  burst?: number;
  /** Copy although buffers could be exchanged. Default false. */
  copy?: boolean;
  /** Only a→b. Default false. */
  oneWay?: boolean;
  /** Forwards this many frames, both directions together, and no more; 0 or absent: no limit. */
  frames?: number;
  /** Counters a→b and b→a, {@link COUNTERS} doubles each; made when absent. */
  counters?: readonly [Float64Array, Float64Array];
}

/** Default burst, in slots: upstream's bridge moves up to 1,024 a turn. */
export const DEFAULT_BURST = 1024;

/**
 * Two sides and the loop that joins them. turn() does one round of syncs and forwarding in both directions; whoever
 * calls it decides how to wait. Partial batches leave in the turn in which they came.
 */
export class Bridge {
  readonly #counters: readonly [Float64Array, Float64Array];
  readonly #lanes: readonly [Lane[], Lane[]] = [[], []];
  readonly #copy: boolean;
  readonly #oneWay: boolean;
  /** Why frames are copied; undefined: every lane exchanges buffers. */
  readonly whyCopy: string | undefined;
  readonly #burst: number;
  readonly #limit: number;
  /** The lanes by the tx ring they share. */
  #groups: readonly LaneGroup[] = [];
  readonly #ports: readonly Port[];
  /** Those that can be flushed. */
  #able: readonly Port[];
  /** What has been counted of each direction's refused frames: those a port has refused before are not this bridge's. */
  readonly #refused: readonly [Amount, Amount];

  /** @throws RangeError where frames must be copied and a region is larger than 4 GiB */
  constructor(
    readonly a: Side,
    readonly b: Side,
    options: BridgeOptions = {},
  ) {
    const shared = options.counters ?? [new Float64Array(COUNTERS), new Float64Array(COUNTERS)];
    this.#counters = shared;
    this.#copy = options.copy ?? false;
    this.#oneWay = options.oneWay ?? false;
    this.#burst = options.burst ?? DEFAULT_BURST;
    this.#limit = options.frames ?? 0;
    this.grow();
    this.whyCopy = this.lanes.flat().find((lane) => lane.whyCopy !== undefined)?.whyCopy;
    this.#ports = a.port === b.port ? [a.port] : [a.port, b.port];
    this.#able = this.#ports;
    this.#refused = [refusedBy(b), refusedBy(a)];
  }

  /** The lanes, a→b then b→a. */
  get lanes(): readonly [readonly Lane[], readonly Lane[]] {
    return this.#lanes;
  }

  /**
   * Makes a lane for each rx ring that has none. Those that there are keep their tx rings, so that flows stay in order.
   * Returns whether there are more than before.
   */
  grow(): boolean {
    const { a, b } = this;
    const before = this.lanes.flat().length;
    this.#join(0, a, b);
    if (!this.#oneWay) this.#join(1, b, a);
    const all = this.lanes.flat();
    if (all.length === before) return false;
    this.#groups = [...new Set(all.map(({ tx }) => tx))].map(
      (tx) => new LaneGroup(all.filter((lane) => lane.tx === tx)),
    );
    return true;
  }

  #join(direction: 0 | 1, from: Side, to: Side): void {
    const lanes = this.#lanes[direction];
    const options = { copy: this.#copy, counters: this.#counters[direction] };
    for (const { rx, tx } of mapRings(from.rx, to.tx).slice(lanes.length)) lanes.push(new Lane(rx, tx, options));
  }

  /**
   * One round: receive on both ports, forward both ways, send on both. Returns the slots moved.
   * @throws PortError when a port can no longer be used
   */
  turn(): number {
    const ports = this.#ports;
    for (let i = 0; i < ports.length; i++) ports[i].rxsync();
    const moved = this.move();
    for (let i = 0; i < ports.length; i++) ports[i].txsync();
    return moved;
  }

  /** Forwards both ways what the rings show, without a sync. Returns the slots moved. */
  move(): number {
    const groups = this.#groups;
    let burst = this.#burst;
    let moved = 0;
    for (let i = 0; i < groups.length; i++) {
      if (this.#limit > 0) {
        // A frame takes at least one slot, so a burst of what is left cannot go beyond the limit.
        burst = Math.min(this.#burst, this.#limit - this.#frames);
        if (burst <= 0) break;
      }
      moved += groups[i].move(burst);
    }
    return moved;
  }

  /** Counters a→b and b→a, with all that has moved until now. */
  get counters(): readonly [Float64Array, Float64Array] {
    this.settle();
    return this.#counters;
  }

  /** Adds what the lanes have moved to the counters, which another thread may read. */
  settle(): void {
    for (const lanes of this.lanes) for (const lane of lanes) lane.settle();
  }

  /** Frames put into tx rings, whatever became of them there. */
  get #frames(): number {
    const [ab, ba] = this.counters;
    return ab[FRAMES] + ab[REFUSED] + ba[FRAMES] + ba[REFUSED];
  }

  /** Whether the frames asked for have been forwarded. */
  get limitReached(): boolean {
    return this.#limit > 0 && this.#frames >= this.#limit;
  }

  /** Whether every port that frames come from has ended, and every frame has left. */
  finished(): boolean {
    return (
      (this.lanes[0].length === 0 || this.a.port.ended()) &&
      (this.lanes[1].length === 0 || this.b.port.ended()) &&
      this.lanes.flat().every(({ rx }) => rx.space === 0) &&
      this.#ports.every((port) => port.txPending() === 0)
    );
  }

  /**
   * Sends what is in the tx rings without receiving more. Returns whether all has left.
   * @throws what a port threw, once the other has sent; the one that failed is passed over from then on
   */
  flush(): boolean {
    const failures: unknown[] = [];
    this.#able = this.#able.filter((port) => {
      try {
        port.txsync();
        return true;
      } catch (error) {
        failures.push(error);
        return false;
      }
    });
    if (failures.length > 0) throw failures[0];
    return this.#able.every((port) => port.txPending() === 0);
  }

  /** Moves the frames that the ports have refused since the last call from the forwarded to those not forwarded. */
  countRefused(): void {
    for (const direction of [0, 1] as const) {
      if (this.lanes[direction].length === 0) continue;
      const seen = this.#refused[direction];
      const { frames, bytes } = refusedBy(direction === 0 ? this.b : this.a);
      takeBack(this.counters[direction], REFUSED, { frames: frames - seen.frames, bytes: bytes - seen.bytes });
      seen.frames = frames;
      seen.bytes = bytes;
    }
  }

  /**
   * Moves the frames that never left from the forwarded to those not forwarded; call once, after the last flush() and
   * before the ports close. Until then a frame counts as forwarded when it is put into a tx ring.
   */
  countUnsent(): void {
    this.countRefused();
    for (const direction of [0, 1] as const) {
      const counters = this.counters[direction];
      if (this.lanes[direction].length === 0) continue;
      takeBack(counters, UNSENT, unsentBy(direction === 0 ? this.b : this.a, counters[SLOTS]));
    }
  }
}

function takeBack(counters: Float64Array, reason: number, { frames, bytes }: Amount): void {
  counters[FRAMES] -= frames;
  counters[BYTES] -= bytes;
  counters[reason] += frames;
}
