import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Histogram } from '../../lib/stats/histogram.js';
import { randomStream } from '../support/random.js';

const HOUR = 3_600_000_000_000;
const PERCENTS = [0, 0.1, 1, 10, 25, 50, 75, 90, 99, 99.9, 99.99, 100];

/** Nearest rank on sorted data; ranks in whole thousandths of a percent so that no rounding is shared with the code. */
function exactPercentile(sorted: number[], percent: number): number {
  const rank = Number((BigInt(Math.round(percent * 1000)) * BigInt(sorted.length) + 99_999n) / 100_000n);
  return sorted[Math.max(1, rank) - 1];
}

function filled(values: Iterable<number>): Histogram {
  const histogram = new Histogram();
  for (const value of values) histogram.record(value);
  return histogram;
}

// Spread over the magnitudes, as latencies are, not crowded at the top as uniform integers would be.
const nanoseconds = fc.double({ min: 0, max: Math.log2(4 * HOUR), noNaN: true }).map((bits) => Math.floor(2 ** bits));

describe('latency histogram', () => {
  it('states a bound of 2^-7 or better', () => {
    assert.ok(Histogram.relativeError <= 2 ** -7);
  });

  it('gives every percentile within the stated error of the exact one', () => {
    fc.assert(
      fc.property(fc.array(nanoseconds, { minLength: 1, maxLength: 300 }), (values) => {
        const histogram = filled(values);
        const sorted = values.toSorted((a, b) => a - b);
        for (const percent of PERCENTS) {
          const exact = exactPercentile(sorted, percent);
          const error = Math.abs(histogram.percentile(percent) - exact);
          assert.ok(error <= exact * Histogram.relativeError, `p${percent}: off by ${error} of ${exact}`);
        }
        assert.equal(histogram.min, sorted[0]);
        assert.equal(histogram.max, sorted.at(-1));
        assert.equal(histogram.count, values.length);
      }),
    );
  });

  it('is exact below 256 ns', () => {
    const histogram = filled(Array.from({ length: 256 }, (_, i) => i));
    for (let i = 1; i <= 256; i++) assert.equal(histogram.percentile((i * 100) / 256), i - 1);
  });

  it('takes the nearest rank where binary fractions would round it up', () => {
    const histogram = filled(Array.from({ length: 1000 }, (_, i) => (i < 999 ? 5 : 200)));
    assert.equal(histogram.percentile(99.9), 5);
    assert.equal(histogram.percentile(99.91), 200);
  });

  it('keeps a constructed delay in its place: 9990 at 10 µs, 9 at 1 ms, one at 1 hour', () => {
    const histogram = filled([...Array<number>(9990).fill(10_000), ...Array<number>(9).fill(1_000_000), HOUR]);
    const near = (value: number, exact: number): void => {
      assert.ok(Math.abs(value - exact) <= exact * Histogram.relativeError, `${value} for ${exact}`);
    };
    near(histogram.percentile(50), 10_000);
    near(histogram.percentile(99.9), 10_000);
    near(histogram.percentile(99.99), 1_000_000);
    assert.equal(histogram.percentile(100), HOUR);
    assert.equal(histogram.mean, (9990 * 10_000 + 9 * 1_000_000 + HOUR) / 10_000);
  });

  it('merges as if all had been recorded in one', () => {
    fc.assert(
      fc.property(fc.array(nanoseconds), fc.array(nanoseconds), (a, b) => {
        const merged = filled(a);
        merged.merge(filled(b));
        assert.deepEqual(merged.toJSON(), filled([...a, ...b]).toJSON());
      }),
    );
  });

  it('comes back from JSON unchanged, and the JSON holds only filled buckets', () => {
    fc.assert(
      fc.property(fc.array(nanoseconds), (values) => {
        const json = filled(values).toJSON();
        assert.ok(json.buckets.length <= values.length);
        const back = Histogram.fromJSON(JSON.parse(JSON.stringify(json)) as typeof json);
        assert.deepEqual(back.toJSON(), json);
        assert.deepEqual(
          PERCENTS.map((p) => back.percentile(p)),
          PERCENTS.map((p) => filled(values).percentile(p)),
        );
      }),
    );
  });

  it('refuses JSON whose parts do not fit together', () => {
    const json = filled([5, 1000]).toJSON();
    assert.deepEqual(json.buckets, [
      [5, 1],
      [1000, 1],
    ]);
    assert.throws(() => Histogram.fromJSON({ ...json, count: 3 }), /buckets hold 2 values, count says 3/);
    assert.throws(() => Histogram.fromJSON({ ...json, buckets: [[1001, 2]] }), /1001 is no bucket's lower bound/);
    assert.throws(() => Histogram.fromJSON({ ...json, buckets: [[5, -1]] }), /count -1 at 5 ns/);
    assert.throws(() => Histogram.fromJSON({ ...json, subBuckets: 64 }), /64 sub-buckets/);
  });

  it('counts times below zero and keeps the exact maximum of times beyond its range', () => {
    const histogram = filled([-1, NaN, 10, 2 ** 50]);
    assert.equal(histogram.negative, 2);
    assert.equal(histogram.min, 0);
    assert.equal(histogram.max, 2 ** 50);
    assert.equal(histogram.count, 4);
  });

  it('is NaN when empty, and after reset', () => {
    const histogram = filled([3]);
    histogram.reset();
    assert.equal(histogram.count, 0);
    for (const value of [histogram.percentile(50), histogram.min, histogram.max, histogram.mean])
      assert.equal(value, NaN);
    assert.throws(() => histogram.percentile(101), RangeError);
  });

  it('allocates nothing to record', () => {
    const histogram = new Histogram();
    const random = randomStream(1);
    const values = Float64Array.from({ length: 1024 }, () => 2 ** (random() * 42));
    const recordAll = (rounds: number): void => {
      for (let i = 0; i < rounds; i++) for (let j = 0; j < values.length; j++) histogram.record(values[j]);
    };
    recordAll(200);
    // A heap number is at least 12 bytes: one a record would be 24 MB. The smallest of three windows, because other
    // parts of the process (the compiler, the runner) may allocate in one of them.
    const growth = [1, 2, 3].map(() => {
      const before = process.memoryUsage().heapUsed;
      recordAll(2000);
      return process.memoryUsage().heapUsed - before;
    });
    assert.ok(
      Math.min(...growth.map(Math.abs)) < 1_000_000,
      `heap grew by ${growth.join(', ')} bytes over 2 M records`,
    );
  });
});
