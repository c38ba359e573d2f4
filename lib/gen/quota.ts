/**
 * The frames a run may move, one number for all its threads. A thread claims what it could move now, and settles what it
 * did: so none waits for frames that only another one gets, and no frame too many is moved.
 */
export class Quota {
  /** Not yet claimed; moved. 64 bits, which a run of minutes needs. */
  readonly #shared: BigInt64Array | undefined;
  readonly #limit: bigint;

  /**
   * @param limit frames; Infinity: no limit
   * @param shared from quotaFor(), the same for all threads of a run
   */
  constructor(limit: number, shared = quotaFor(limit)) {
    const limited = limit !== Infinity;
    this.#limit = limited ? BigInt(limit) : 0n;
    this.#shared = limited ? new BigInt64Array(shared) : undefined;
  }

  /** How many of `wanted` frames may be moved, all of them where there is no limit. settle() must follow. */
  claim(wanted: number): number {
    const shared = this.#shared;
    if (shared === undefined) return wanted;
    for (;;) {
      const left = Atomics.load(shared, 0);
      if (left <= 0n) return 0;
      const granted = wanted < left ? BigInt(wanted) : left;
      if (Atomics.compareExchange(shared, 0, left, left - granted) === left) return Number(granted);
    }
  }

  /** Of what was granted, `moved` frames were moved; the rest is for others. */
  settle(granted: number, moved: number): void {
    const shared = this.#shared;
    if (shared === undefined || granted === 0) return;
    if (moved < granted) Atomics.add(shared, 0, BigInt(granted - moved));
    if (moved > 0) Atomics.add(shared, 1, BigInt(moved));
  }

  /** Whether all frames have been moved. */
  get spent(): boolean {
    return this.#shared !== undefined && Atomics.load(this.#shared, 1) >= this.#limit;
  }
}

/** What the threads of a run share. */
export function quotaFor(limit: number): SharedArrayBuffer {
  const shared = new SharedArrayBuffer(16);
  if (limit !== Infinity) new BigInt64Array(shared)[0] = BigInt(limit);
  return shared;
}

export const UNLIMITED = new Quota(Infinity);
