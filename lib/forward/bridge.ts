import type { Amount } from '../rings/amount.js';
import { BYTES, COUNTERS, FRAMES, REFUSED, SLOTS, TX_FULL, UNSENT } from './counters.js';
import { forwarder, whyCopy, type Forward } from './forward.js';
import type { Port } from '../ports/port.js';
import type { Ring } from '../rings/ring.js';
import { mapRings, type RingPair } from './ring-map.js';
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
  /** Slots moved per pair of rings and turn. Default 1024. */
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
  readonly counters: readonly [Float64Array, Float64Array];
  /** The ring pairs, a→b then b→a. */
  readonly pairs: readonly [readonly RingPair[], readonly RingPair[]];
  /** Why frames are copied; undefined: every pair of rings exchanges buffers. */
  readonly whyCopy: string | undefined;
  readonly #burst: number;
  readonly #limit: number;
  readonly #forward: readonly Forward[];
  readonly #ports: readonly Port[];
  /** Those that can be flushed. */
  #able: readonly Port[];
  readonly #rx: readonly Ring[];
  /** What has been counted of each direction's refused frames: those a port has refused before are not this bridge's. */
  readonly #refused: readonly [Amount, Amount];

  constructor(
    readonly a: Side,
    readonly b: Side,
    options: BridgeOptions = {},
  ) {
    this.counters = options.counters ?? [new Float64Array(COUNTERS), new Float64Array(COUNTERS)];
    this.#burst = options.burst ?? DEFAULT_BURST;
    this.#limit = options.frames ?? 0;
    this.pairs = [mapRings(a.rx, b.tx), options.oneWay === true ? [] : mapRings(b.rx, a.tx)];
    const why = ({ rx, tx }: RingPair): string | undefined => (options.copy === true ? 'asked for' : whyCopy(rx, tx));
    this.whyCopy = this.pairs
      .flat()
      .map(why)
      .find((reason) => reason !== undefined);
    this.#forward = this.pairs.flatMap((pairs, direction) =>
      pairs.map((pair) => forwarder(pair.rx, pair.tx, this.counters[direction], why(pair) === undefined)),
    );
    this.#rx = this.pairs.flat().map(({ rx }) => rx);
    this.#ports = a.port === b.port ? [a.port] : [a.port, b.port];
    this.#able = this.#ports;
    this.#refused = [refusedBy(b), refusedBy(a)];
  }

  /**
   * One round: receive on both ports, forward both ways, send on both. Returns the slots moved.
   * @throws PortError when a port can no longer be used
   */
  turn(): number {
    const ports = this.#ports;
    const forward = this.#forward;
    let burst = this.#burst;
    for (let i = 0; i < ports.length; i++) ports[i].rxsync();
    let moved = 0;
    for (let i = 0; i < forward.length; i++) {
      if (this.#limit > 0) {
        // A frame takes at least one slot, so a burst of what is left cannot go beyond the limit.
        burst = Math.min(this.#burst, this.#limit - this.#frames);
        if (burst <= 0) break;
      }
      moved += forward[i](burst);
    }
    for (let i = 0; i < ports.length; i++) ports[i].txsync();
    return moved;
  }

  /** Whether every pair of rings exchanges buffers. */
  get zeroCopy(): boolean {
    return this.whyCopy === undefined;
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

  /** Whether a frame waits in an rx ring because the tx ring it goes to is full. */
  blocked(direction: 0 | 1): boolean {
    return this.pairs[direction].some(({ rx, tx }) => rx.space > 0 && tx.space === 0);
  }

  /** Whether every port that frames come from has ended, and every frame has left. */
  finished(): boolean {
    return (
      (this.pairs[0].length === 0 || this.a.port.ended()) &&
      (this.pairs[1].length === 0 || this.b.port.ended()) &&
      this.#rx.every((ring) => ring.space === 0) &&
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
      if (this.pairs[direction].length === 0) continue;
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
      if (this.pairs[direction].length === 0) continue;
      takeBack(counters, UNSENT, unsentBy(direction === 0 ? this.b : this.a, counters[SLOTS]));
    }
  }

  /** Times a direction found its tx ring full. */
  full(direction: 0 | 1): number {
    return this.counters[direction][TX_FULL];
  }
}

function takeBack(counters: Float64Array, reason: number, { frames, bytes }: Amount): void {
  counters[FRAMES] -= frames;
  counters[BYTES] -= bytes;
  counters[reason] += frames;
}
