import type { Port } from '../ports/port.js';
import { native, POLLERR, POLLHUP, POLLIN, POLLNVAL, POLLOUT } from '../shim/native.js';
import { PortError } from '../text/errors.js';
import type { Ring } from '../rings/ring.js';
import type { Mover } from './lane-group.js';

/** How the loop waits when a turn moved nothing: spin on, or sleep in poll() until a port has work. */
export const WAIT_MODES = ['busy', 'poll'] as const;
export type WaitMode = (typeof WAIT_MODES)[number];

/** Longest sleep, ms: signals and the end of a source are noticed this late at the latest. */
const LONGEST_MS = 100;
/** Sleep, ms, where a frame needs several slots of a ring that has one: poll() would call that ring writable. */
const MORE_ROOM_MS = 0.1;
/** What poll() reports without being asked: nothing can be expected of the descriptor any more. */
const BROKEN = new Map([
  [POLLNVAL, 'its descriptor is not open (POLLNVAL)'],
  [POLLERR, 'its rings were reset, or its interface is gone (POLLERR)'],
  [POLLHUP, 'it was hung up (POLLHUP)'],
]);
const ANY_BROKEN = POLLNVAL | POLLERR | POLLHUP;

/** What a bridge waits for: its lanes, a→b then b→a, and the ports and rings at their ends. */
export interface Waiting {
  readonly sides: readonly { readonly port: Port; readonly rx: readonly Ring[]; readonly tx: readonly Ring[] }[];
  readonly lanes: readonly [readonly Mover[], readonly Mover[]];
}

/** A port's descriptors: where their entries begin in the list, and the rings that are waited for there. */
interface Watched {
  readonly port: Port;
  readonly first: number;
  /** The lanes that take frames from it. */
  readonly from: readonly Mover[];
  readonly tx: ReadonlySet<Ring>;
}

/** Sleeps until a lane has something to do: each is asked why it stopped. */
export class PollWait {
  readonly #lanes: readonly Mover[];
  readonly #watched: readonly Watched[];
  /** `struct pollfd` for each descriptor: fd, or -1 where it is passed over; events | revents << 16. */
  readonly #list: Int32Array;
  /** poll() with that list; undefined: no port has a descriptor. */
  readonly #poll: ((timeoutMs: number) => number) | undefined;
  readonly #timeoutMs: number;
  /** Whether every port's syncs are poll()'s doing: a turn then needs none of its own. */
  readonly syncs: boolean;

  constructor({ sides, lanes }: Waiting) {
    let first = 0;
    this.#lanes = lanes.flat();
    const ports = [...new Set(sides.map(({ port }) => port))];
    this.#watched = ports.map((port) => {
      const watched = { port, first };
      first += port.fds.length;
      const own = sides.filter((side) => side.port === port);
      const rx = new Set(own.flatMap((side) => side.rx));
      const from = this.#lanes.filter((lane) => rx.has(lane.rx));
      return { ...watched, from, tx: new Set(own.flatMap((side) => side.tx)) };
    });
    this.#list = new Int32Array(2 * first);
    this.#poll = first > 0 ? native.poller(this.#list) : undefined;
    const naps = ports.filter((port) => port.fds.length === 0).map((port) => port.napNs / 1e6);
    this.#timeoutMs = Math.min(LONGEST_MS, ...naps);
    this.syncs = ports.every((port) => port.willPoll !== undefined);
  }

  /**
   * Returns when a port polls ready, or after the shortest time that a port without a descriptor allows.
   * @throws PortError when a port's descriptor is broken
   */
  wait(): void {
    const list = this.#list;
    const lanes = this.#lanes;
    let timeout = this.#timeoutMs;
    for (const { port, first, from, tx } of this.#watched) {
      let events = 0;
      // A lane whose tx ring is full waits for room first, and then for frames: one sleep where both take their time.
      for (let i = 0; i < from.length; i++) if (from[i].stopped <= 0 && from[i].tx.space > 0) events = POLLIN;
      for (let i = 0; i < lanes.length; i++) {
        const ring = lanes[i].waitsFor ?? lanes[i].tx;
        if (!tx.has(ring)) continue;
        if (ring.space === 0) events |= POLLOUT;
        else if (lanes[i].stopped > 0) timeout = Math.min(timeout, MORE_ROOM_MS);
      }
      // Without POLLIN the slots that were taken from stay with us, and whoever sends has so many fewer.
      if (this.syncs && from.length > 0 && (events & POLLIN) === 0) port.rxsync();
      const passedOver = port.willPoll?.() === false && events === 0;
      for (let i = 0; i < port.fds.length; i++) {
        list[2 * (first + i)] = passedOver ? -1 : port.fds[i];
        list[2 * (first + i) + 1] = events;
      }
    }
    if (this.#poll === undefined) {
      native.sleepNs(timeout * 1e6);
      return;
    }
    if (this.#poll(timeout) > 0) this.#checkBroken();
  }

  #checkBroken(): void {
    for (const { port, first } of this.#watched)
      for (let i = 0; i < port.fds.length; i++) {
        const revents = this.#list[2 * (first + i) + 1] >>> 16;
        if ((revents & ANY_BROKEN) === 0) continue;
        port.rxsync(); // the port itself may know better what has happened
        const words = [...BROKEN].filter(([bit]) => (revents & bit) !== 0).map(([, what]) => what);
        throw new PortError(`${port.name}: ${words.join('; ')}`, port.name);
      }
  }
}
