import type { Bridge } from './bridge.js';
import type { Ring } from '../rings/ring.js';

/** A tx ring that has been full without moving for this long, ns, is reported: drivers wedge so under load. */
export const STALL_NS = 1e9;

interface Watched {
  ring: Ring;
  port: string;
  tail: number;
  since: number;
  reported: boolean;
}

/** Watches the tx rings of a bridge for one that makes no progress at all. */
export class StallWatch {
  readonly #watched: Watched[];

  constructor(bridge: Pick<Bridge, 'a' | 'b'>) {
    this.#watched = [bridge.a, bridge.b].flatMap(({ port, tx }) =>
      tx.map((ring) => ({ ring, port: port.name, tail: -1, since: 0, reported: false })),
    );
  }

  /** Looks at every ring; says a sentence for each that stalled or moves again since the last look. */
  look(t: number, say: (sentence: string) => void): void {
    for (const w of this.#watched) {
      const { tail, space } = w.ring;
      if (space > 0 || tail !== w.tail) {
        if (w.reported) say(`${w.port}: tx ring ${w.ring.id} moves again after ${((t - w.since) / 1e9).toFixed(1)} s`);
        w.tail = tail;
        w.since = t;
        w.reported = false;
      } else if (!w.reported && t - w.since > STALL_NS) {
        w.reported = true;
        say(
          `${w.port}: tx ring ${w.ring.id} is full and has not moved for ${((t - w.since) / 1e9).toFixed(1)} s; ` +
            'frames for it wait. Is the link up, and is anybody reading the other end?',
        );
      }
    }
  }
}
