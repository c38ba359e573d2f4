import type { Port } from '../ports/port.js';

/** ns between two looks at a link; asking takes a system call. */
const LOOK_NS = 100e6;

/** Watches the links of ports, so that one that goes down under traffic is reported, and its return too. */
export class LinkWatch {
  readonly #watched: { port: Port; up: boolean; since: number }[];
  #looked = 0;

  constructor(ports: Iterable<Port>, t: number) {
    this.#watched = [...ports].filter((port) => port.hasLink).map((port) => ({ port, up: port.linkUp(), since: t }));
  }

  /**
   * Says a sentence for each link that changed since the last look.
   * @throws PortError when an interface is gone
   */
  look(t: number, say: (sentence: string) => void): void {
    if (t - this.#looked < LOOK_NS) return;
    this.#looked = t;
    for (const w of this.#watched) {
      w.port.news?.().forEach(say);
      const up = w.port.linkUp();
      if (up === w.up) continue;
      say(
        up
          ? `${w.port.name}: the link is up again after ${((t - w.since) / 1e9).toFixed(1)} s`
          : `${w.port.name}: the link is down; frames for it wait until it is up again`,
      );
      w.up = up;
      w.since = t;
    }
  }
}
