import { getSystemErrorMap } from 'node:util';
import type { Outside } from '../port.js';
import { native, now } from '../../shim/native.js';
import { LOOK, LOOK_LENGTH } from '../../shim/native-netdev.js';

/** ns between two looks at what seldom changes: asking takes the kernel's network lock. */
const LOOK_NS = 1e9;

/** Times that counters are read at most to find them at rest. */
const TRIES = 10;

/** What the interface's own counters say of frames that the sockets do not see: name in stats(), place in a look. */
const LOSSES = [
  ['interface_rx_missed', LOOK.rxMissed],
  ['interface_rx_dropped', LOOK.rxDropped],
  ['interface_rx_errors', LOOK.rxErrors],
  ['interface_tx_dropped', LOOK.txDropped],
  ['interface_tx_errors', LOOK.txErrors],
] as const;

/** The interface behind a port, for as long as the port is open: what has changed since, and what it counts itself. */
export class XdpInterface {
  readonly #opened = new Float64Array(LOOK_LENGTH);
  readonly #now = new Float64Array(LOOK_LENGTH);
  #rxQueues: number;
  #looked = now();

  /** @throws Error of the shim */
  constructor(
    readonly ifname: string,
    readonly netns: string,
  ) {
    native.netdevLook(ifname, netns, this.#opened);
    this.#now.set(this.#opened);
    this.#rxQueues = this.#opened[LOOK.rxQueues];
  }

  /**
   * Looks again, once a second at most.
   * @throws Error of the shim
   */
  look(): void {
    const t = now();
    if (t - this.#looked < LOOK_NS) return;
    this.#looked = t;
    native.netdevLook(this.ifname, this.netns, this.#now);
  }

  get mtu(): number {
    return this.#now[LOOK.mtu];
  }

  /**
   * A sentence when the number of rx queues has changed since the last call.
   * @param served how many the port has opened
   */
  queueNews(served: number): string | undefined {
    const [before, after] = [this.#rxQueues, this.#now[LOOK.rxQueues]];
    if (after === before) return undefined;
    this.#rxQueues = after;
    const change = `${this.ifname} has ${after} rx queue${after === 1 ? '' : 's'} now, ${before} before`;
    if (after > served)
      return `${change}: frames that arrive on the new ones go to the host, not through this port; start again to open them`;
    return `${change}: ${after < served ? 'this port receives nothing on those that are gone' : 'this port has all of them'}`;
  }

  /** What the interface counts since the port was opened. */
  #since(place: number): number {
    return this.#now[place] - this.#opened[place];
  }

  /**
   * Frames at the interface since the port was opened. The counters are read around `inside`, until none moved meanwhile
   * or it has been tried often enough: then the sums differ by what arrived between two readings.
   * @param inside frames that the sockets lost, and that wait in their rings
   */
  outside(inside: () => { lost: number; waiting: number }): Outside {
    for (let tries = 1; ; tries++) {
      this.#read();
      const arrived = this.#since(LOOK.rxPackets) + this.#since(LOOK.rxMissed);
      const { lost, waiting } = inside();
      this.#read();
      if (tries < TRIES && this.#since(LOOK.rxPackets) + this.#since(LOOK.rxMissed) !== arrived) continue;
      return {
        arrived,
        lostBefore: lost + this.#since(LOOK.rxMissed),
        waiting,
        lostAfter: this.#since(LOOK.txDropped) + this.#since(LOOK.txErrors),
      };
    }
  }

  /** Reads the counters; when the interface is gone they stay as they were last seen. */
  #read(): void {
    try {
      native.netdevLook(this.ifname, this.netns, this.#now);
    } catch {
      // It took its counters with it.
    }
  }

  /** Frames that the interface lost since the port was opened, as it counts them now; when it is gone, as it last did. */
  losses(): Record<string, number> {
    this.#read();
    return Object.fromEntries(LOSSES.map(([name, place]) => [name, this.#since(place)]));
  }
}

/** An errno in words: `no buffer space available (ENOBUFS)`. */
export function errnoText(errno: number): string {
  const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, 'unknown error'];
  return `${text} (${code})`;
}
