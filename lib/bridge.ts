import { COUNTERS, FRAMES, TX_FULL, UNSENT } from './counters.js';
import { forwarder, isZeroCopy, type Forward } from './forward.js';
import type { Port } from './port.js';
import type { Ring } from './ring.js';
import { mapRings, type RingPair } from './rings.js';

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
  /** Whether each direction exchanges buffers. */
  readonly zeroCopy: boolean;
  readonly #burst: number;
  readonly #limit: number;
  readonly #forward: readonly Forward[];
  readonly #ports: readonly Port[];

  constructor(
    readonly a: Side,
    readonly b: Side,
    options: BridgeOptions = {},
  ) {
    this.counters = options.counters ?? [new Float64Array(COUNTERS), new Float64Array(COUNTERS)];
    this.#burst = options.burst ?? DEFAULT_BURST;
    this.#limit = options.frames ?? 0;
    this.pairs = [mapRings(a.rx, b.tx), options.oneWay === true ? [] : mapRings(b.rx, a.tx)];
    const copy = options.copy ?? false;
    this.zeroCopy = !copy && this.pairs.flat().every(({ rx, tx }) => isZeroCopy(rx, tx));
    this.#forward = this.pairs.flatMap((pairs, direction) =>
      pairs.map(({ rx, tx }) => forwarder(rx, tx, this.counters[direction], !copy && isZeroCopy(rx, tx))),
    );
    this.#ports = a.port === b.port ? [a.port] : [a.port, b.port];
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

  get #frames(): number {
    return this.counters[0][FRAMES] + this.counters[1][FRAMES];
  }

  /** Whether the frames asked for have been forwarded. */
  get limitReached(): boolean {
    return this.#limit > 0 && this.#frames >= this.#limit;
  }

  /** Whether a frame waits in an rx ring because the tx ring it goes to is full. */
  blocked(direction: 0 | 1): boolean {
    return this.pairs[direction].some(({ rx, tx }) => rx.space > 0 && tx.space === 0);
  }

  /** Whether every source has ended and every frame has left. */
  finished(): boolean {
    return (
      this.#ports.every((port) => port.ended()) &&
      this.pairs.flat().every(({ rx }) => rx.space === 0) &&
      this.#ports.every((port) => port.txPending() === 0)
    );
  }

  /** Sends what is in the tx rings without receiving more. Returns whether all has left. */
  flush(): boolean {
    for (const port of this.#ports) port.txsync();
    return this.#ports.every((port) => port.txPending() === 0);
  }

  /** Counts what could not be sent, in slots, as not forwarded; call once, before the ports close. */
  countUnsent(): void {
    const unsent = (direction: 0 | 1, port: Port): void => {
      if (this.pairs[direction].length > 0) this.counters[direction][UNSENT] += port.txPending();
    };
    unsent(0, this.b.port);
    unsent(1, this.a.port);
  }

  /** Times a direction found its tx ring full. */
  full(direction: 0 | 1): number {
    return this.counters[direction][TX_FULL];
  }
}
