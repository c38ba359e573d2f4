import { native, now } from '../../shim/native.js';
import type { Netdev } from '../port.js';

/** ns between two looks: asking is a system call. */
const LOOK_NS = 1e6;

/**
 * Whether an interface can send. In copy mode the kernel takes frames for one without carrier, drops them, and says
 * that they are done; so what is to be sent has to ask first. The kernel's own answer follows the carrier within
 * microseconds as a rule, and within a second where it changes more often.
 */
export class Carrier {
  readonly #handle: number;
  #looked = 0;
  #state = 1;

  /** @throws Error of the shim */
  constructor({ ifname, netns }: Netdev) {
    this.#handle = native.netdevOpen(ifname, netns);
  }

  /** As of a millisecond ago at most. */
  get up(): boolean {
    const t = now();
    if (t - this.#looked >= LOOK_NS) {
      this.#looked = t;
      this.#state = native.netdevRunning(this.#handle);
    }
    return this.#state > 0;
  }

  /** The interface was not there at the last look. */
  get gone(): boolean {
    return this.#state < 0;
  }

  close(): void {
    native.netdevClose(this.#handle);
  }
}
