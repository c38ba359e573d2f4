import type { Bridge } from './bridge.js';
import { native, POLLIN, POLLOUT } from '../shim/native.js';
import type { Port } from '../ports/port.js';

/** How the loop waits when a turn moved nothing: spin on, or sleep in poll() until a port has work. */
export const WAIT_MODES = ['busy', 'poll'] as const;
export type WaitMode = (typeof WAIT_MODES)[number];

/** Longest sleep, ms: signals and the end of a source are noticed this late at the latest. */
const LONGEST_MS = 100;

/** Sleeps until one of the bridge's ports has something to do. */
export class PollWait {
  readonly #bridge: Bridge;
  readonly #list: Int32Array;
  /** For each descriptor: its port is side 0 (a) or 1 (b). */
  readonly #side: (0 | 1)[] = [];
  readonly #timeoutMs: number;

  constructor(bridge: Bridge) {
    this.#bridge = bridge;
    const ports = new Set<Port>([bridge.a.port, bridge.b.port]);
    const fds: number[] = [];
    for (const port of ports) {
      for (const fd of port.fds) {
        fds.push(fd);
        this.#side.push(port === bridge.a.port ? 0 : 1);
      }
    }
    this.#list = Int32Array.from(fds.flatMap((fd) => [fd, POLLIN, 0]));
    const naps = [...ports].filter((port) => port.fds.length === 0).map((port) => port.napNs / 1e6);
    this.#timeoutMs = Math.min(LONGEST_MS, ...naps);
  }

  /** Returns when a port polls ready, or after the shortest time that a port without a descriptor allows. */
  wait(): void {
    if (this.#side.length === 0) {
      native.sleepNs(this.#timeoutMs * 1e6);
      return;
    }
    const list = this.#list;
    // A direction that is blocked waits for room on the other side; asking for its input too would spin.
    const blocked = [this.#bridge.blocked(0), this.#bridge.blocked(1)] as const;
    for (let i = 0; i < this.#side.length; i++) {
      const side = this.#side[i];
      list[3 * i + 1] = (blocked[side] ? 0 : POLLIN) | (blocked[1 - side] ? POLLOUT : 0);
    }
    native.poll(list, this.#side.length, this.#timeoutMs);
  }
}
