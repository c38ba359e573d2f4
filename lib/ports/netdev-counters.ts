import { native } from '../shim/native.js';
import { LOOK, LOOK_LENGTH } from '../shim/native-netdev.js';
import type { Netdev, Outside } from './port.js';

/** Times that counters are read at most to find them at rest. */
const TRIES = 10;

/** What the interface's own counters say of frames that the rings do not see: name in stats(), place in a look. */
const LOSSES = [
  ['interface_rx_missed', LOOK.rxMissed],
  ['interface_rx_dropped', LOOK.rxDropped],
  ['interface_rx_errors', LOOK.rxErrors],
  ['interface_tx_dropped', LOOK.txDropped],
  ['interface_tx_errors', LOOK.txErrors],
] as const;

/** What the interface behind a port counts itself, since the port was opened and whoever used it. */
export class NetdevCounters {
  readonly #opened = new Float64Array(LOOK_LENGTH);
  readonly #now = new Float64Array(LOOK_LENGTH);

  /** @throws Error of the shim */
  constructor(readonly netdev: Netdev) {
    this.look();
    this.#opened.set(this.#now);
  }

  /**
   * Looks again. Takes the kernel's network lock.
   * @throws Error of the shim
   */
  look(): void {
    native.netdevLook(this.netdev.ifname, this.netdev.netns, this.#now);
  }

  /** As of the last look. */
  get mtu(): number {
    return this.#now[LOOK.mtu];
  }
  get rxQueues(): number {
    return this.#now[LOOK.rxQueues];
  }
  get txQueues(): number {
    return this.#now[LOOK.txQueues];
  }

  #since(place: number): number {
    return this.#now[place] - this.#opened[place];
  }

  /** Frames that the interface lost for want of buffers, or because they came damaged: none of those it received. */
  get #lost(): number {
    return this.#since(LOOK.rxMissed) + this.#since(LOOK.rxErrors);
  }

  /**
   * Frames at the interface. The counters are read around `inside`, until none moved meanwhile or it has been tried often
   * enough: then the sums differ by what arrived between two readings.
   * @param inside frames that were lost between the interface and the rings, and that wait in the rings
   */
  outside(inside: () => { lost: number; waiting: number }): Outside {
    for (let tries = 1; ; tries++) {
      this.#read();
      const received = this.#since(LOOK.rxPackets);
      const { lost, waiting } = inside();
      this.#read();
      if (tries < TRIES && this.#since(LOOK.rxPackets) !== received) continue;
      return {
        arrived: received === 0 ? null : received + this.#lost,
        lostBefore: lost + this.#lost,
        waiting,
        lostAfter: this.#since(LOOK.txDropped) + this.#since(LOOK.txErrors),
      };
    }
  }

  /** Reads the counters; when the interface is gone they stay as they were last seen. */
  #read(): void {
    try {
      this.look();
    } catch {
      // It took its counters with it.
    }
  }

  /** Frames that the interface lost, as it counts them now; when it is gone, as it last did. */
  losses(): Record<string, number> {
    this.#read();
    return Object.fromEntries(LOSSES.map(([name, place]) => [name, this.#since(place)]));
  }
}
