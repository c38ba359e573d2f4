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

/** The tx rings that frames of a bridge may wait for. */
export function txRingsOf({ sides, lanes }: Waiting): TxRing[] {
  const all = lanes.flat();
  const ports = new Map(sides.flatMap(({ port, tx }) => tx.map((ring) => [ring, port.name] as const)));
  return [...ports].map(([ring, port]) => ({
    ring,
    port,
    blocked: () => all.some(({ waitsFor }) => waitsFor === ring),
  }));
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
