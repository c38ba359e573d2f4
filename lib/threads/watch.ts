import { now } from '../shim/native.js';
import type { PortInfo } from '../ports/port-info.js';
import { TURNS, type Control } from './control.js';
import { NetdevWatch } from './netdev-watch.js';

/** Time between two looks, ms. */
const LOOK_MS = 100;
/** Looks in a row without a turn after which that is said. Looks are counted, not time: a process that was stopped makes none. */
const STUCK_LOOKS = 10;

/**
 * Watches a thread from outside: the interfaces of its ports, since asking takes a lock of the kernel's that others hold
 * for long, and whether it turns at all, since a call into the kernel may not come back.
 */
export class ThreadWatch {
  readonly #names: string;
  readonly #netdevs: readonly NetdevWatch[];
  #turns = -1;
  #turned = now();
  #still = 0;
  readonly #timer: NodeJS.Timeout;

  constructor(
    readonly control: Control,
    ports: readonly PortInfo[],
    readonly say: (sentence: string) => void,
  ) {
    this.#names = ports.map(({ name }) => name).join(' and ');
    this.#netdevs = ports.flatMap(({ name, netdev }) => (netdev === undefined ? [] : new NetdevWatch(name, netdev)));
    this.#lookAtNetdevs(this.#turned);
    this.#timer = setInterval(() => {
      this.#look();
    }, LOOK_MS).unref();
  }

  close(): void {
    clearInterval(this.#timer);
  }

  #look(): void {
    const t = now();
    const turns = this.control.run[TURNS];
    if (turns === this.#turns) {
      // Whatever holds the thread up may hold up whoever asks about an interface, too.
      if (++this.#still === STUCK_LOOKS) this.#sayStuck(t);
      return;
    }
    if (this.#still >= STUCK_LOOKS) this.say(`${this.#names}: the thread turns again after ${this.#seconds(t)} s`);
    this.#turns = turns;
    this.#turned = t;
    this.#still = 0;
    this.#lookAtNetdevs(t);
  }

  #seconds(t: number): string {
    return ((t - this.#turned) / 1e9).toFixed(1);
  }

  #sayStuck(t: number): void {
    this.say(
      `${this.#names}: the thread that runs this has not turned for ${this.#seconds(t)} s: a call into the kernel does ` +
        'not come back. An interface that was set down while netmap holds it does that; set it up again, and it goes on',
    );
  }

  #lookAtNetdevs(t: number): void {
    for (const netdev of this.#netdevs) if (netdev.look(t, this.say)) this.control.askLook();
  }
}
