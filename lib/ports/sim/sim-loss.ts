import { MIX } from './sim-frame.js';

/** Frames of a run at most: what a small integer holds. */
const LONGEST_RUN = 0x3fffffff;

/**
 * What is lost on purpose on the way to a ring (`drop=`). Frames come in runs, all lost or all spared, whose lengths
 * are drawn as if each frame's fate were: a run costs one draw, however long it is.
 */
export class SimLoss {
  /** Whether the frames of the current run are lost. */
  losing = false;
  /** Frames left in the current run. */
  run = LONGEST_RUN;
  #random: number;

  /** @param share probability that a frame is lost, 0..1 */
  constructor(
    readonly share: number,
    seed: number,
  ) {
    // Spread, because xorshift starts slowly from small numbers.
    this.#random = Math.imul(seed, MIX) || 1;
    this.begin();
  }

  /** The next frame begins a run. */
  begin(): void {
    this.#draw(this.#chance() < this.share);
  }

  /** `n` frames of the current run have passed. */
  pass(n: number): void {
    this.run -= n;
    if (this.run === 0) this.#draw(this.share === 1 || (this.share > 0 && !this.losing));
  }

  /** How many of `n` frames are lost, drawn at once: `share` of them, to a fraction of a frame. */
  of(n: number): number {
    return this.share === 0 ? 0 : Math.floor(n * this.share + this.#chance());
  }

  /** Geometric, and without end where every frame stays in its run. */
  #draw(losing: boolean): void {
    const stays = losing ? this.share : 1 - this.share;
    this.losing = losing;
    this.run =
      stays === 1 ? LONGEST_RUN : (1 + Math.min(LONGEST_RUN - 1, Math.log(this.#chance()) / Math.log(stays))) | 0;
  }

  /** xorshift32, above 0 and below 1: repeatable for a seed. */
  #chance(): number {
    let x = this.#random;
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    this.#random = x;
    return (x >>> 0) / 0x1_0000_0000;
  }
}
