/** A link that can be asked for its state. */
export interface Link {
  /** Of the port. */
  readonly name: string;
  up(): boolean;
}

/** Watches links, so that one that goes down under traffic is reported, and its return too. */
export class LinkWatch {
  readonly #watched: { link: Link; up: boolean; since: number }[];

  /** @param t CLOCK_MONOTONIC, ns */
  constructor(links: readonly Link[], t: number) {
    this.#watched = links.map((link) => ({ link, up: link.up(), since: t }));
  }

  /** Says a sentence for each link that changed since the last look; throws what asking throws. */
  look(t: number, say: (sentence: string) => void): void {
    for (const w of this.#watched) {
      const { name } = w.link;
      const up = w.link.up();
      if (up === w.up) continue;
      say(
        up
          ? `${name}: the link is up again after ${((t - w.since) / 1e9).toFixed(1)} s`
          : `${name}: the link is down; frames for it wait until it is up again`,
      );
      w.up = up;
      w.since = t;
    }
  }
}
