import type { Ring } from '../rings/ring.js';
import type { Waiting } from './wait.js';

/** A tx ring that frames wait for and that has not moved for this long, ns, is reported: drivers wedge so under load. */
export const STALL_NS = 1e9;

/** A tx ring to be watched. */
export interface TxRing {
  readonly ring: Ring;
  /** Its port's name. */
  readonly port: string;
  /** Whether frames wait for room in it. */
  blocked(): boolean;
}

/** The tx rings that a bridge's lanes lead to. */
export function txRingsOf({ a, b, lanes }: Waiting): TxRing[] {
  const of = (port: string, all: Waiting['lanes'][number]): TxRing[] =>
    [...new Set(all.map(({ tx }) => tx))].map((ring) => {
      const leading = all.filter(({ tx }) => tx === ring);
      return { ring, port, blocked: () => leading.some(({ stopped }) => stopped > 0) };
    });
  return [...of(b.port.name, lanes[0]), ...of(a.port.name, lanes[1])];
}

/** Watches tx rings for one that makes no progress at all. */
export class StallWatch {
  readonly #watched: (TxRing & { tail: number; since: number; reported: boolean })[];

  constructor(rings: readonly TxRing[]) {
    this.#watched = rings.map((ring) => ({ ...ring, tail: -1, since: 0, reported: false }));
  }

  /** Looks at every ring; says a sentence for each that stalled or moves again since the last look. */
  look(t: number, say: (sentence: string) => void): void {
    for (const w of this.#watched) {
      const { tail } = w.ring;
      if (tail !== w.tail || !w.blocked()) {
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
