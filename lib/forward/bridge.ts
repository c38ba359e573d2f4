import type { Amount } from '../rings/amount.js';
import { BYTES, COUNTERS, DIVERTED, FRAMES, REFUSED, SENT_BACK, SLOTS, UNSENT } from './counters.js';
import { LaneGroup, mapRings, type Mover } from './lane-group.js';
import { Lane } from './lane.js';
import { ProgramLane, type Judge } from './program-lane.js';
import { Frame } from '../programs/frame.js';
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
  /** Judges every frame before it moves. */
  program?: Pick<Judge, 'onFrame' | 'failed'>;
  /** Where a program may send frames beside the two: what arrives there is not read. */
  third?: Side;
}

/** A side that frames leave by, and where those that it did not send may have been counted, the likeliest first. */
interface Outlet {
  readonly side: Side;
  readonly counted: readonly (readonly [counters: Float64Array, position: number])[];
  /** What has been counted of its refused frames: those that the port refused before are not this bridge's. */
  readonly refused: Amount;
}

/** Default burst, in slots: upstream's bridge moves up to 1,024 a turn. */
export const DEFAULT_BURST = 1024;

/**
 * Two sides and the loop that joins them. turn() does one round of syncs and forwarding in both directions; whoever
 * calls it decides how to wait. Partial batches leave in the turn in which they came.
 */
export class Bridge {
  readonly #counters: readonly [Float64Array, Float64Array];
  readonly #options: BridgeOptions;
  readonly #lanes: readonly [Mover[], Mover[]] = [[], []];
  /** a and b, and the third one where there is one. */
  readonly sides: readonly Side[];
  /** The ports of all sides, each once. */
  readonly ports: readonly Port[];
  /** Why frames are copied; undefined: every lane exchanges buffers. */
  readonly whyCopy: string | undefined;
  readonly #burst: number;
  readonly #limit: number;
  /** The lanes by the tx ring they share. */
  #groups: readonly LaneGroup[] = [];
  /** The ports that can be flushed. */
  #able: readonly Port[];
  readonly #outlets: readonly Outlet[];

  /** @throws RangeError where frames must be copied and a region is larger than 4 GiB */
  constructor(
    readonly a: Side,
    readonly b: Side,
    options: BridgeOptions = {},
  ) {
    const shared = options.counters ?? [new Float64Array(COUNTERS), new Float64Array(COUNTERS)];
    this.#counters = shared;
    this.#options = options;
    this.#burst = options.burst ?? DEFAULT_BURST;
    this.#limit = options.frames ?? 0;
    this.sides = options.third === undefined ? [a, b] : [a, b, options.third];
    this.ports = [...new Set(this.sides.map(({ port }) => port))];
    this.#able = this.ports;
    this.grow();
    this.whyCopy = this.lanes.flat().find((lane) => lane.whyCopy !== undefined)?.whyCopy;
    this.#outlets = this.#outletsOf();
  }

  #outletsOf(): Outlet[] {
    const [ab, ba] = this.#counters;
    const { program, third } = this.#options;
    const judged = program !== undefined;
    const outlet = (side: Side, ...counted: Outlet['counted']): Outlet => ({ side, counted, refused: refusedBy(side) });
    return [
      ...(judged || this.lanes[0].length > 0 ? [outlet(this.b, [ab, FRAMES], [ba, SENT_BACK])] : []),
      ...(judged || this.lanes[1].length > 0 ? [outlet(this.a, [ba, FRAMES], [ab, SENT_BACK])] : []),
      ...(third === undefined ? [] : [outlet(third, [ab, DIVERTED], [ba, DIVERTED])]),
    ];
  }

  /** The lanes, a→b then b→a. */
  get lanes(): readonly [readonly Mover[], readonly Mover[]] {
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
    if (this.#options.oneWay !== true) this.#join(1, b, a);
    const all = this.lanes.flat();
    if (all.length === before) return false;
    this.#groups = [...new Set(all.map(({ tx }) => tx))].map(
      (tx) => new LaneGroup(all.filter((lane) => lane.tx === tx)),
    );
    return true;
  }

  #join(direction: 0 | 1, from: Side, to: Side): void {
    const lanes = this.#lanes[direction];
    const { copy = false, program, third } = this.#options;
    const counting = { copy, counters: this.#counters[direction] };
    const ringOf = (side: Side | undefined, i: number): Ring | undefined => side?.tx[i % side.tx.length];
    for (const { rx, tx } of mapRings(from.rx, to.tx).slice(lanes.length)) {
      if (program === undefined) {
        lanes.push(new Lane(rx, tx, counting));
        continue;
      }
      const frame = new Frame(rx.u8, rx.bufSize);
      Object.assign(frame, { port: from.port.name, ring: rx.id, direction });
      const judge = { ...program, frame, back: ringOf(from, lanes.length), third: ringOf(third, lanes.length) };
      lanes.push(new ProgramLane(rx, tx, judge, counting));
    }
  }

  /**
   * One round: receive on both ports, forward both ways, send on both. Returns the slots moved.
   * @throws PortError when a port can no longer be used
   */
  turn(): number {
    const { ports } = this;
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
      this.ports.every((port) => port.txPending() === 0)
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
    this.settle();
    for (const { side, counted, refused: seen } of this.#outlets) {
      const { frames, bytes } = refusedBy(side);
      takeBack(counted, REFUSED, { frames: frames - seen.frames, bytes: bytes - seen.bytes });
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
    for (const { side, counted } of this.#outlets) {
      const slots = counted.map(([counters, position]) => counters[position === FRAMES ? SLOTS : position]);
      takeBack(counted, UNSENT, unsentBy(side, slots[0] + slots[1]));
    }
  }
}

/** Which of the frames counted were not sent nobody knows where two directions share a ring: the first is it. */
function takeBack(counted: Outlet['counted'], reason: number, { frames, bytes }: Amount): void {
  let left = frames;
  for (const [counters, position] of counted) {
    const taken = Math.min(left, counters[position]);
    counters[position] -= taken;
    counters[reason] += taken;
    if (position === FRAMES) counters[BYTES] -= taken === frames ? bytes : Math.round((bytes * taken) / frames);
    left -= taken;
  }
}
