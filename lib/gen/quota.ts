/** Where the word that says "all moved" lies, behind the two counts. */
const SPENT_BYTE = 16;

/**
 * The frames a run may move, one number for all its threads. A thread claims what it could move now, and settles what it
 * did: so none waits for frames that only another one gets, and no frame too many is moved.
 */
export class Quota {
  /** Not yet claimed; moved. 64 bits, which a run of minutes needs. */
  readonly #shared: BigInt64Array | undefined;
  readonly #limit: bigint;
  /** Not 0: all have been moved. A word of its own, because a look at 64 bits allocates and idle turns look. */
  readonly #spent: Int32Array;

  /**
   * @param limit frames; Infinity: no limit
   * @param shared from quotaFor(), the same for all threads of a run
   */
  constructor(limit: number, shared = quotaFor(limit)) {
    const limited = limit !== Infinity;
    this.#limit = limited ? BigInt(limit) : 0n;
    this.#shared = limited ? new BigInt64Array(shared, 0, 2) : undefined;
    this.#spent = new Int32Array(shared, SPENT_BYTE, 1);
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
    if (moved === 0) return;
    const before = Atomics.add(shared, 1, BigInt(moved));
    if (before + BigInt(moved) >= this.#limit) Atomics.store(this.#spent, 0, 1);
  }

  /** Whether all frames have been moved. */
  get spent(): boolean {
    return Atomics.load(this.#spent, 0) !== 0;
  }
}

/** What the threads of a run share. */
export function quotaFor(limit: number): SharedArrayBuffer {
  const shared = new SharedArrayBuffer(SPENT_BYTE + 8);
  if (limit !== Infinity) new BigInt64Array(shared)[0] = BigInt(limit);
  if (limit === 0) new Int32Array(shared, SPENT_BYTE)[0] = 1;
  return shared;
}

export const UNLIMITED = new Quota(Infinity);
