/** Sub-bucket bits: every power of two is cut into 2^7 equal buckets. */
const SUB_BITS = 7;
const SUB = 1 << SUB_BITS;
/** Values below 2^8 have a bucket of their own and are exact. */
const EXACT = SUB * 2;
/** Values from 2^44 ns (4.9 hours) up share the last bucket. */
const MAX_BITS = 44;
const BUCKETS = EXACT + (MAX_BITS - SUB_BITS - 1) * SUB;
const LIMIT = 2 ** MAX_BITS;

/** Positions in the state array. Plain numbers in a Float64Array never cost a heap number. */
const COUNT = 0;
const MIN = 1;
const MAX = 2;
const SUM = 3;
const NEGATIVE = 4;

/** The sparse JSON form: one `[lower bound in ns, count]` pair for each bucket that is not empty. */
export interface HistogramJson {
  unit: 'ns';
  /** Buckets in a power of two: 128. The bucket from `lower` up is max(1, 2^floor(log2(lower)) / 128) ns wide. */
  subBuckets: number;
  count: number;
  min: number;
  max: number;
  sum: number;
  /** How many of `count` were below zero (a clock that ran backwards) and were taken as 0. */
  negative: number;
  buckets: [lower: number, count: number][];
}

function bucketOf(value: number): number {
  if (value < EXACT) return value;
  // clz32 sees 32 bits, so values above are first brought down by 2^16.
  const exponent = value < 2147483648 ? 31 - Math.clz32(value) : 47 - Math.clz32(Math.floor(value / 65536));
  const shift = exponent - SUB_BITS;
  return shift * SUB + Math.floor(value * 2 ** -shift);
}

function lowerBound(bucket: number): number {
  if (bucket < EXACT) return bucket;
  const shift = Math.floor(bucket / SUB) - 1;
  return (bucket - shift * SUB) * 2 ** shift;
}

/**
 * A log-linear histogram of times in nanoseconds, 0 to 2^44 - 1 (4.9 hours).
 *
 * A percentile read from it differs from the exact one by at most `Histogram.relativeError` = 2^-8 (0.39 %) of the
 * exact value, and not at all below 256 ns; minimum, maximum, count and mean are exact. Longer times keep the exact
 * maximum, but percentiles among them are only known to be at least 2^44 ns.
 */
export class Histogram {
  /** Bound on |percentile − exact| / exact. Half a bucket, because a bucket answers with its middle. */
  static readonly relativeError = 2 ** -(SUB_BITS + 1);

  readonly #counts = new Float64Array(BUCKETS);
  readonly #state = new Float64Array([0, Infinity, -Infinity, 0, 0]);

  /** Adds one time, in ns, as often as `times` says; a fraction of a nanosecond is cut off. Allocates nothing. */
  record(ns: number, times = 1): void {
    const state = this.#state;
    let value = Math.floor(ns);
    if (!(value >= 0)) {
      state[NEGATIVE] = state[NEGATIVE] + times;
      value = 0;
    }
    state[COUNT] = state[COUNT] + times;
    state[SUM] = state[SUM] + value * times;
    if (value < state[MIN]) state[MIN] = value;
    if (value > state[MAX]) state[MAX] = value;
    const bucket = value < LIMIT ? bucketOf(value) : BUCKETS - 1;
    this.#counts[bucket] = this.#counts[bucket] + times;
  }

  get count(): number {
    return this.#state[COUNT];
  }

  /** Smallest time in ns, exact; NaN when nothing was recorded. */
  get min(): number {
    return this.count === 0 ? NaN : this.#state[MIN];
  }

  /** Largest time in ns, exact; NaN when nothing was recorded. */
  get max(): number {
    return this.count === 0 ? NaN : this.#state[MAX];
  }

  /** Mean in ns, exact within rounding; NaN when nothing was recorded. */
  get mean(): number {
    return this.#state[SUM] / this.count;
  }

  /** Times below zero (or not a number): a sign of clocks that disagree. They were taken as 0. */
  get negative(): number {
    return this.#state[NEGATIVE];
  }

  /**
   * The time in ns at or below which `percent` (0 to 100) of all recorded times lie, by nearest rank.
   * NaN when nothing was recorded. Throws RangeError when `percent` is outside 0 to 100.
   */
  percentile(percent: number): number {
    if (!(percent >= 0 && percent <= 100)) throw new RangeError(`percentile ${percent}: must be between 0 and 100`);
    if (this.count === 0) return NaN;
    // 99.9 % of 1000 is 999.0000000000001 in binary: take that hair off before rounding up.
    const rank = Math.max(1, Math.ceil(((percent * this.count) / 100) * (1 - 2 ** -50)));
    if (rank === 1) return this.min;
    if (rank === this.count) return this.max;
    let seen = 0;
    let bucket = -1;
    while (seen < rank) seen += this.#counts[++bucket];
    const middle = bucket < EXACT ? bucket : (lowerBound(bucket) + lowerBound(bucket + 1)) / 2;
    return Math.min(this.max, Math.max(this.min, middle));
  }

  /** Adds everything that `other` recorded. */
  merge(other: Histogram): void {
    const mine = this.#state;
    const theirs = other.#state;
    for (let i = 0; i < BUCKETS; i++) this.#counts[i] = this.#counts[i] + other.#counts[i];
    for (const i of [COUNT, SUM, NEGATIVE]) mine[i] = mine[i] + theirs[i];
    mine[MIN] = Math.min(mine[MIN], theirs[MIN]);
    mine[MAX] = Math.max(mine[MAX], theirs[MAX]);
  }

  /** Forgets everything. */
  reset(): void {
    this.#counts.fill(0);
    this.#state.set([0, Infinity, -Infinity, 0, 0]);
  }

  toJSON(): HistogramJson {
    const buckets: [number, number][] = [];
    this.#counts.forEach((count, bucket) => {
      if (count > 0) buckets.push([lowerBound(bucket), count]);
    });
    const { count, negative } = this;
    const [min, max] = count === 0 ? [0, 0] : [this.min, this.max];
    return { unit: 'ns', subBuckets: SUB, count, min, max, sum: this.#state[SUM], negative, buckets };
  }

  /** The histogram whose `toJSON` gave `json`. Throws RangeError when the parts do not fit together. */
  static fromJSON(json: HistogramJson): Histogram {
    const histogram = new Histogram();
    if (json.subBuckets !== SUB)
      throw new RangeError(`histogram: ${json.subBuckets} sub-buckets; this version reads ${SUB}`);
    let total = 0;
    for (const [lower, count] of json.buckets) {
      const bucket = Number.isSafeInteger(lower) && lower >= 0 && lower < LIMIT ? bucketOf(lower) : -1;
      if (bucket < 0 || lowerBound(bucket) !== lower)
        throw new RangeError(`histogram: ${lower} is no bucket's lower bound`);
      if (!Number.isSafeInteger(count) || count < 1) throw new RangeError(`histogram: count ${count} at ${lower} ns`);
      histogram.#counts[bucket] = histogram.#counts[bucket] + count;
      total += count;
    }
    if (total !== json.count) throw new RangeError(`histogram: buckets hold ${total} values, count says ${json.count}`);
    if (total > 0) histogram.#state.set([total, json.min, json.max, json.sum, json.negative]);
    return histogram;
  }
}
