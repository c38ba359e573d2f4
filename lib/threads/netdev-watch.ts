import type { Netdev } from '../ports/port.js';
import { native } from '../shim/native.js';
import { LOOK, LOOK_LENGTH } from '../shim/native-netdev.js';
import { LinkWatch } from './link-watch.js';

/** One look of so many is at what seldom changes: the kernel answers it under its network lock, in 100 µs or more. */
const RARE = 10;
/** What a port goes by, of what seldom changes. */
const GOES_BY = [LOOK.mtu, LOOK.rxQueues, LOOK.txQueues];

/** Watches the interface behind a port from outside the thread that has the port. */
export class NetdevWatch {
  #link: LinkWatch | undefined;
  #looks = 0;
  #seen = new Float64Array(LOOK_LENGTH).fill(NaN);

  constructor(
    /** Of the port. */
    readonly name: string,
    readonly netdev: Netdev,
  ) {}

  /**
   * Says a sentence when the link changed. Returns whether the port should look itself: at first, when something else
   * than the link changed, and when the interface seems to be gone.
   */
  look(t: number, say: (sentence: string) => void): boolean {
    const { ifname, netns } = this.netdev;
    try {
      this.#link ??= new LinkWatch([{ name: this.name, up: () => native.netdevLink(ifname, netns) }], t);
      this.#link.look(t, say);
      return this.#looks++ % RARE === 0 && this.#changed();
    } catch {
      return true;
    }
  }

  #changed(): boolean {
    const before = this.#seen;
    this.#seen = new Float64Array(LOOK_LENGTH);
    native.netdevLook(this.netdev.ifname, this.netdev.netns, this.#seen);
    return GOES_BY.some((place) => this.#seen[place] !== before[place]);
  }
}
