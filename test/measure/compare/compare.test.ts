import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { runCompare } from '../../../lib/cli/measure/cli-compare.js';
import {
  compare,
  compareFiles,
  failures,
  repeatsNeeded,
  type CompareResult,
} from '../../../lib/measure/compare/compare.js';
import { unevenText } from '../../../lib/measure/compare/compare-text.js';
import { choose, differenceEffect, holm, mannWhitney, ratioEffect, smallestP } from '../../../lib/stats/rank.js';
import { appendResults, readResults } from '../../../lib/measure/results/results.js';
import type { Cell, Result, ResultLine } from '../../../lib/measure/results/result.js';
import { normalStream } from '../../support/random.js';

const folder = mkdtempSync(join(tmpdir(), 'compare-'));
after(() => {
  rmSync(folder, { recursive: true });
});

const near = (value: number, expected: number, tolerance: number): void => {
  assert.ok(Math.abs(value - expected) <= tolerance, `${value} is not ${expected} ± ${tolerance}`);
};

/** Two samples without ties whose U (pairs with the second one larger) is exactly `u`. */
function samplesWithU(n: number, m: number, u: number): [number[], number[]] {
  // Each value after stands above as many values before (at 1, 2, … n) as are still owed.
  const before = Array.from({ length: n }, (_, i) => i + 1);
  const after: number[] = [];
  let owed = u;
  for (let i = 0; i < m; i++) {
    const above = Math.min(n, owed);
    after.push(above + 0.5 + i / 1000);
    owed -= above;
  }
  return [before, after];
}

describe('Mann-Whitney test', () => {
  // Two-tailed critical values of U as printed in textbooks (Siegel and Castellan; Zar, table B.11).
  const tables: [alpha: number, n: number, m: number, critical: number][] = [
    [0.05, 4, 4, 0],
    [0.05, 5, 5, 2],
    [0.05, 5, 10, 8],
    [0.05, 6, 6, 5],
    [0.05, 7, 7, 8],
    [0.05, 7, 9, 12],
    [0.05, 8, 8, 13],
    [0.05, 9, 9, 17],
    [0.05, 10, 10, 23],
    [0.05, 10, 20, 55],
    [0.05, 12, 12, 37],
    [0.05, 15, 15, 64],
    [0.05, 20, 20, 127],
    [0.01, 5, 5, 0],
    [0.01, 10, 10, 16],
    [0.01, 20, 20, 105],
  ];
  for (const [alpha, n, m, critical] of tables) {
    it(`at ${alpha} with ${n} and ${m} values: U = ${critical} is significant and ${critical + 1} is not`, () => {
      const at = mannWhitney(...samplesWithU(n, m, critical));
      assert.deepEqual([at.u, at.exact], [critical, true]);
      assert.ok(at.p <= alpha, `p = ${at.p}`);
      assert.ok(mannWhitney(...samplesWithU(n, m, critical + 1)).p > alpha);
    });
  }

  it('gives the fractions that counting by hand gives', () => {
    near(mannWhitney([1, 2, 3], [4, 5, 6]).p, 2 / 20, 1e-15);
    near(mannWhitney([1, 2, 3, 4], [5, 6, 7, 8]).p, 2 / 70, 1e-15);
    near(mannWhitney([1, 2, 3, 4, 5], [6, 7, 8, 9, 10]).p, 2 / 252, 1e-15);
    // U = 1: besides the two extremes one arrangement more on each side.
    near(mannWhitney([1, 2, 4], [3, 5, 6]).p, 4 / 20, 1e-15);
  });

  it('with ties is what listing all arrangements gives', () => {
    const value = fc.integer({ min: 0, max: 4 });
    const sample = fc.array(value, { minLength: 1, maxLength: 5 });
    fc.assert(
      fc.property(sample, sample, (before, after) => {
        const all = [...before, ...after];
        const uOf = (inAfter: (index: number) => boolean): number => {
          let u = 0;
          all.forEach((y, j) => {
            if (!inAfter(j)) return;
            all.forEach((x, i) => {
              if (!inAfter(i)) u += y > x ? 1 : y === x ? 0.5 : 0;
            });
          });
          return u;
        };
        const middle = (before.length * after.length) / 2;
        const observed = Math.abs(uOf((i) => i >= before.length) - middle);
        let [extreme, total] = [0, 0];
        for (let set = 0; set < 2 ** all.length; set++) {
          const inAfter = (i: number): boolean => ((set >> i) & 1) === 1;
          if (all.filter((_, i) => inAfter(i)).length !== after.length) continue;
          total++;
          if (Math.abs(uOf(inAfter) - middle) >= observed) extreme++;
        }
        near(mannWhitney(before, after).p, extreme / total, 1e-12);
      }),
      { numRuns: 60 },
    );
  });

  it('is symmetric, and blind to any change of scale that keeps the order', () => {
    const sample = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 2, maxLength: 40 });
    fc.assert(
      fc.property(sample, sample, (before, after) => {
        const { p, u } = mannWhitney(before, after);
        const swapped = mannWhitney(after, before);
        near(swapped.p, p, 1e-12);
        assert.equal(swapped.u, before.length * after.length - u);
        near(mannWhitney(before.map(Math.log), after.map(Math.log)).p, p, 1e-12);
        assert.ok(p > 0 && p <= 1);
      }),
    );
  });

  it('goes over to the normal approximation without a jump', () => {
    // z = (312.5 - 208 - 0.5) / sqrt(25 * 25 * 51 / 12) = 2.0179; two tails of that are 0.0436.
    const exact = mannWhitney(...samplesWithU(25, 25, 208));
    const approximate = mannWhitney(...samplesWithU(26, 26, 226));
    assert.deepEqual([exact.exact, approximate.exact], [true, false]);
    near(exact.p, 0.0436, 0.001);
    // z = (338 - 226 - 0.5) / sqrt(26 * 26 * 53 / 12) = 2.0406; two tails of that are 0.04129.
    near(approximate.p, 0.04129, 0.0001);
  });

  it('knows the least p that samples of a size can give', () => {
    near(smallestP([3, 3]), 0.1, 1e-15);
    near(smallestP([4, 4]), 2 / 70, 1e-15);
    assert.equal(smallestP([1, 1]), 1);
    assert.equal(choose(20, 10), 184_756);
  });
});

describe('Hodges-Lehmann estimate', () => {
  it('is the median of all pairs, its interval the pairs that the rank test leaves', () => {
    // 4 x 4: P(U <= 0) = 1/70 is within 2.5 %, P(U <= 1) = 2/70 is not: the interval is from the least pair to the largest.
    assert.deepEqual(
      differenceEffect(
        [
          [
            [1, 2, 3, 4],
            [11, 12, 13, 14],
          ],
        ],
        0.05,
      ),
      { estimate: 10, lower: 7, upper: 13 },
    );
    assert.deepEqual(
      ratioEffect(
        [
          [
            [1, 2, 4, 8],
            [2, 4, 8, 16],
          ],
        ],
        0.05,
      ),
      { estimate: 2, lower: 0.25, upper: 16 },
    );
    // 5 x 5 leaves out two at each end, as the tabulated critical value says: U = 2 is significant, so pairs 1 to 3 go, less one.
    const effect = differenceEffect(
      [
        [
          [0, 10, 20, 30, 40],
          [100, 101, 102, 103, 104],
        ],
      ],
      0.05,
    );
    const pairs = [0, 10, 20, 30, 40].flatMap((x) => [100, 101, 102, 103, 104].map((y) => y - x)).sort((a, b) => a - b);
    assert.deepEqual(effect, { estimate: pairs[12], lower: pairs[2], upper: pairs[22] });
  });

  it('has no ends where the samples are too small', () => {
    assert.deepEqual(
      differenceEffect(
        [
          [
            [1, 2, 3],
            [4, 5, 6],
          ],
        ],
        0.05,
      ),
      { estimate: 3, lower: -Infinity, upper: Infinity },
    );
    assert.deepEqual(ratioEffect([[[1], [3]]], 0.05), { estimate: 3, lower: 0, upper: Infinity });
  });

  it('keeps readings of zero: they are neither dropped nor turned into minus infinity', () => {
    assert.deepEqual(
      ratioEffect(
        [
          [
            [10, 10, 10, 10],
            [0, 0, 0, 0],
          ],
        ],
        0.05,
      ),
      { estimate: 0, lower: 0, upper: 0 },
    );
    assert.deepEqual(
      ratioEffect(
        [
          [
            [0, 0, 0, 0],
            [0, 0, 0, 0],
          ],
        ],
        0.05,
      ),
      { estimate: 1, lower: 1, upper: 1 },
    );
    assert.deepEqual(
      ratioEffect(
        [
          [
            [0, 0, 0, 5],
            [0, 0, 0, 5],
          ],
        ],
        0.05,
      ),
      { estimate: 1, lower: 0, upper: Infinity },
    );
    assert.equal(
      ratioEffect(
        [
          [
            [0, 0, 0, 0],
            [5, 5, 5, 5],
          ],
        ],
        0.05,
      ).estimate,
      Infinity,
    );
  });

  it('encloses the true ratio at least as often as it claims', () => {
    const normal = normalStream(2024);
    for (const [n, m] of [
      [5, 5],
      [8, 8],
      [10, 6],
      [30, 30],
    ]) {
      let covered = 0;
      const rounds = 600;
      for (let i = 0; i < rounds; i++) {
        const draw = (size: number, scale: number): number[] =>
          Array.from({ length: size }, () => scale * Math.exp(0.1 * normal()));
        const { lower, upper } = ratioEffect([[draw(n, 10), draw(m, 9)]], 0.05);
        if (lower <= 0.9 && 0.9 <= upper) covered++;
      }
      // Three standard errors of 600 draws at 95 % are 2.7 points.
      assert.ok(covered / rounds >= 0.95 - 0.027, `${n} and ${m}: ${covered} of ${rounds}`);
    }
  });
});

describe('Holm correction', () => {
  it('multiplies by the number of hypotheses left, and never goes down', () => {
    // The worked example of Holm's procedure: 0.01, 0.04, 0.03, 0.005.
    assert.deepEqual(
      holm([0.01, 0.04, 0.03, 0.005]).map((p) => Number(p.toFixed(10))),
      [0.03, 0.06, 0.06, 0.02],
    );
    assert.deepEqual(holm([]), []);
    assert.deepEqual(holm([0.6, 0.7]), [1, 1]);
  });
});

function lines(values: readonly number[], cell: Cell = {}, more: Partial<Result> = {}, metric = 'mpps'): ResultLine[] {
  return values.map((value, repeat) => {
    const time = '2026-01-31T12:00:00Z';
    const result: Result = { v: 1, kind: 'matrix', cell, repeat, metrics: { [metric]: value }, time, ...more };
    return { file: 'x.jsonl', line: repeat + 1, result };
  });
}

const data = (name: string): ResultLine[] => readResults(`test/data/${name}.jsonl`).lines;
const verdicts = (result: CompareResult): string[] => result.comparisons.map((one) => one.verdict);

describe('compare', () => {
  it('shows what single runs of the vmxnet3 report (R3) differ by, and judges none of them: readings are no repeats', () => {
    const result = compare(data('r3-12.0'), data('r3-12.1'));
    const [lroOff, lroOn, send] = result.comparisons;
    assert.deepEqual(verdicts(result), Array(3).fill('too few repeats'));
    assert.equal(lroOff.reason, '1 and 1; 4 each are needed');
    // T1 to T5: the means that the report states, not the ten readings of each.
    assert.deepEqual([lroOff.before.values, lroOff.after.values], [[9.265], [7.543]]);
    near(lroOff.change, 7.543 / 9.265 - 1, 1e-9);
    assert.deepEqual([lroOff.changeLower, lroOff.changeUpper], [-1, Infinity]);
    // T2 to T7, and T4 to T8.
    near(lroOn.change, -0.9955, 0.001);
    near(send.change, -0.034, 0.001);
    assert.deepEqual(result.notices, [
      { about: 'only in BEFORE', cells: [{ kind: 'samples', cell: { direction: 'receive', lro: 'off after on' } }] },
    ]);
  });

  it('finds the regression of virtio-net (R6) from five runs a side', () => {
    const result = compare(data('r6-9.2'), data('r6-10.0'));
    assert.deepEqual(verdicts(result), ['worse']);
    near(result.comparisons[0].change, -0.94, 0.005);
    near(result.comparisons[0].p, 2 / 252, 1e-12);
  });

  it('calls the high-variance setting of R5 too noisy and its single runs too few', () => {
    const expected = [...Array<string>(4).fill('too few repeats'), 'too noisy to tell'];
    assert.deepEqual(verdicts(compare(data('r5-16us'), data('r5-off'))), expected);
    assert.deepEqual(verdicts(compare(data('r5-16us'), data('r5-16us'))), expected);
  });

  it('calls a wide interval too noisy, and a narrow one no difference shown', () => {
    const wild = [1.5, 3.2, 1.6, 3.1, 1.5, 2.9, 3.2, 1.7];
    assert.deepEqual(verdicts(compare(lines(wild), lines(wild.map((x) => x * 1.02)))), ['too noisy to tell']);
    const calm = [10.1, 10, 9.9, 10.05, 9.95];
    assert.deepEqual(verdicts(compare(lines(calm), lines(calm.toReversed()))), ['no difference shown']);
    assert.deepEqual(verdicts(compare(lines([7, 7, 7, 7]), lines([7, 7, 7, 7]))), ['no difference shown']);
  });

  it('knows which way is good', () => {
    const [low, high] = [
      [1, 1.1, 1.2, 1.3, 1.4],
      [2, 2.1, 2.2, 2.3, 2.4],
    ];
    const verdict = (metric: string): string[] =>
      verdicts(compare(lines(low, {}, {}, metric), lines(high, {}, {}, metric)));
    assert.deepEqual(verdict('mpps'), ['better']);
    assert.deepEqual(verdict('p99_ns'), ['worse']);
    assert.deepEqual(verdict('loss'), ['worse']);
    const unknown = compare(lines(low, {}, {}, 'odd'), lines(high, {}, {}, 'odd'));
    assert.match(unknown.notices[0].about, /odd is not judged, for which way is good is not known/);
    const units = { odd: { unit: 'W', better: 'lower' } } as const;
    assert.deepEqual(verdicts(compare(lines(low, {}, { units }, 'odd'), lines(high, {}, { units }, 'odd'))), ['worse']);
  });

  it('compares loss by difference, so that a clean run is a fair start', () => {
    const none = lines([0, 0, 0, 0, 0], {}, {}, 'loss');
    const some = lines([0.01, 0.012, 0.011, 0.013, 0.01], {}, {}, 'loss');
    const [one] = compare(none, some).comparisons;
    assert.equal(one.verdict, 'worse');
    assert.equal(one.effect.estimate, 0.011);
    assert.deepEqual(verdicts(compare(none, none)), ['no difference shown']);
    // One lost frame in a million is less than what matters of a loss ratio.
    assert.deepEqual(verdicts(compare(none, lines([0, 0, 1e-6, 0, 0], {}, {}, 'loss'))), ['no difference shown']);
  });

  it('corrects for the number of cells: what one cell alone would show, twenty do not', () => {
    const before = [10, 10.1, 10.2, 10.3, 10.4];
    const after = before.map((x) => x * 0.8);
    const cells = Array.from({ length: 20 }, (_, i) => i);
    const all = compare(
      cells.flatMap((size) => lines(before, { size })),
      cells.flatMap((size) => lines(size === 0 ? after : before, { size })),
    );
    assert.equal(all.family, 20);
    assert.equal(all.comparisons[0].verdict, 'too few repeats');
    assert.match(all.comparisons[0].reason ?? '', /^5 and 5; among 20 comparisons 6 each are needed$/);
    assert.equal(compare(lines(before), lines(after)).comparisons[0].verdict, 'worse');
  });

  it('takes no alpha from the others for cells that could never be significant', () => {
    const before = [10, 10.1, 10.2, 10.3, 10.4];
    const singles = Array.from({ length: 50 }, (_, size) => lines([10], { size })).flat();
    const result = compare([...lines(before, { size: 64.5 }), ...singles], [...lines(before.map((x) => x / 2), { size: 64.5 }), ...singles]); // prettier-ignore
    assert.equal(result.family, 1);
    assert.equal(result.comparisons[0].verdict, 'worse');
  });

  it('takes one value of each run: its own, or the median of the readings within it', () => {
    const samples = { gbps: [1, 2, 6] };
    const runs = lines([2, 3], {}, { samples });
    const gbps = compare(runs, runs, { metrics: ['gbps'] }).comparisons[0];
    assert.deepEqual([gbps.before.values, gbps.verdict], [[2, 2], 'too few repeats']);
    const [mpps] = compare(lines([7, 8], {}, { samples: { mpps: [1, 2, 3] } }), runs).comparisons;
    assert.deepEqual(
      [mpps.before.values, mpps.after.values],
      [
        [7, 8],
        [2, 3],
      ],
    );
  });

  it('one run each, with 5 % between runs and steady readings within: never a call, where readings called 94 of 100', () => {
    const normal = normalStream(11);
    const run = (): ResultLine[] => {
      const level = 10 * (1 + 0.05 * normal());
      return lines(
        [level],
        {},
        { samples: { mpps: Array.from({ length: 20 }, () => level * (1 + 0.002 * normal())) } },
      );
    };
    for (let i = 0; i < 100; i++) assert.deepEqual(verdicts(compare(run(), run())), ['too few repeats']);
  });

  it('judges no single run, however many there are on the other side', () => {
    const forty = Array.from({ length: 40 }, (_, i) => 10 + i / 100);
    const [one] = compare(lines([5]), lines(forty)).comparisons;
    assert.deepEqual([one.verdict, one.reason], ['too few repeats', '1 and 40; 4 each are needed']);
    assert.deepEqual(verdicts(compare(lines([5, 5.1, 5.2]), lines(forty))), ['too few repeats']);
    assert.deepEqual(verdicts(compare(lines([5, 5.1, 5.2, 5.3]), lines(forty))), ['better']);
  });

  it('calls no loss worse that differs by less than the documents call worth telling, and fails nothing for it', () => {
    const loss = (...values: number[]): ResultLine[] => lines(values, { size: 64 }, {}, 'loss');
    const slight = compare(loss(0, 0, 0, 0, 0), loss(6e-5, 6e-5, 6e-5, 6e-5, 6e-5));
    assert.deepEqual(verdicts(slight), ['no difference shown']);
    assert.equal(slight.comparisons[0].reason, 'what differs is less than 0.001, the least worth telling');
    assert.deepEqual(failures(slight.comparisons, 0.05), []);
    const told = compare(loss(0, 0, 0, 0, 0), loss(0.001, 0.001, 0.001, 0.001, 0.001));
    assert.deepEqual([verdicts(told), failures(told.comparisons, 0.05).length], [['worse'], 1]);
    // Nor all cells together.
    const sizes = (value: number): ResultLine[] =>
      [64, 128, 256].flatMap((size) => lines(Array<number>(5).fill(value), { size }, {}, 'loss'));
    assert.equal(compare(sizes(0), sizes(6e-5)).overall[0].verdict, 'no difference shown');
    assert.equal(compare(sizes(0), sizes(0.002)).overall[0].verdict, 'worse');
  });

  it('says how wide the interval of a loss is in its own unit', () => {
    const loss = (...values: number[]): ResultLine[] => lines(values, {}, {}, 'loss');
    const [wild] = compare(loss(0, 0, 0.041, 0, 0), loss(0.041, 0, 0.041, 0, 0)).comparisons;
    // Either end of the interval of five and five is the third pair of 25: 0 less 0.041, and the other way round.
    assert.deepEqual([wild.verdict, wild.reason], ['too noisy to tell', 'the interval is 0.082 wide']);
    const [few] = compare(loss(0, 0.041), loss(0, 0)).comparisons;
    assert.deepEqual([few.verdict, few.reason], ['too noisy to tell', 'values of one side are 0.041 apart']);
    // What is not worth telling is not too noisy either.
    assert.deepEqual(verdicts(compare(loss(0, 0, 9e-4, 0, 0), loss(0, 9e-4, 9e-4, 0, 0))), ['no difference shown']);
  });

  it('sets several files side by side against the first, corrected for all of them', () => {
    const named = (name: string, scale: number): ResultLine[] =>
      [64, 128].flatMap((size) =>
        lines(
          [10, 10.1, 10.2, 10.3, 10.4, 10.5].map((value) => value * scale),
          { size },
        ).map((one) => ({ ...one, file: name })),
      );
    const result = compareFiles([named('a', 1), named('b', 0.5), named('c', 1)]);
    assert.deepEqual(verdicts(result), ['worse', 'no difference shown', 'worse', 'no difference shown']);
    assert.equal(result.family, 4);
    // Of 924 ways to share six and six out, two are as extreme; the least of four p-values counts four times.
    near(result.comparisons[0].corrected, (4 * 2) / 924, 1e-12);
    assert.deepEqual(
      result.overall.map(({ file, verdict }) => [file, verdict]),
      [
        ['b', 'worse'],
        ['c', 'no difference shown'],
      ],
    );
  });

  it('says before any verdict that the machine was busier on one side', () => {
    const run = (busy: number, gap: number): Partial<Result>['metrics'] => ({
      cpu_user_share: busy, cpu_system_share: 0.01, cpu_irq_share: 0, cpu_softirq_share: 0.01, longest_gap_us: gap,
    }); // prettier-ignore
    const side = (value: number, busy: number, gap: number): ResultLine[] =>
      [1, 1.01, 1.02, 1.03].map((scale, repeat) => {
        const [line] = lines([value * scale], { size: 64 });
        const metrics = { mpps: value * scale, ...run(busy * scale, gap * scale) };
        return { ...line, result: { ...line.result, repeat, metrics } };
      });
    const { uneven } = compare(side(14, 1, 40), side(4.6, 1.9, 9000));
    assert.deepEqual(
      uneven.map(({ what }) => what),
      ['cores busy, whoever used them', 'longest gap'],
    );
    near(uneven[0].after - uneven[0].before, 0.9 * 1.015, 1e-9);
    assert.match(
      unevenText({ uneven }),
      /^Not under the same load: cores busy, whoever used them: 1\.0[34] before, 1\.95 after; longest gap: 40\.6 µs/,
    );
    assert.deepEqual(compare(side(14, 1, 40), side(4.6, 1.1, 110)).uneven, []);
    // With one run each nothing can be tested: what differs by so much is told all the same.
    assert.equal(compare(side(14, 1, 40).slice(3), side(4.6, 1.9, 9000).slice(3)).uneven.length, 2);
    // Load that came and went on both sides is nobody's.
    const mixed = [...side(14, 1, 40), ...side(4.6, 1.9, 9000)];
    assert.deepEqual(compare(mixed, mixed.toReversed()).uneven, []);
  });

  it('calls at most the stated share of 200 A/A comparisons worse', () => {
    const normal = normalStream(99);
    // Skewed, heavy-tailed throughputs, six runs a side: the worst case for tests that assume a normal distribution.
    const draw = (): number[] => Array.from({ length: 6 }, () => 10 * (1 - 0.02 * Math.exp(normal())));
    let [worse, better] = [0, 0];
    for (let i = 0; i < 200; i++) {
      const [verdict] = verdicts(compare(lines(draw()), lines(draw()), { alpha: 0.05 }));
      if (verdict === 'worse') worse++;
      if (verdict === 'better') better++;
    }
    assert.ok(worse <= 200 * 0.05, `${worse} worse`);
    assert.ok(worse + better <= 200 * 0.05 + 9, `${worse} worse, ${better} better`);
  });

  it('calls at most the stated share of 200 families of ten A/A cells worse in any cell', () => {
    const normal = normalStream(100);
    const draw = (): ResultLine[] =>
      Array.from({ length: 10 }, (_, size) =>
        lines(
          Array.from({ length: 8 }, () => 10 + normal()),
          { size },
        ),
      ).flat();
    let families = 0;
    for (let i = 0; i < 200; i++) if (verdicts(compare(draw(), draw())).includes('worse')) families++;
    assert.ok(families <= 200 * 0.05, `${families} of 200`);
  });

  it('needs the repeats that the documents state', () => {
    assert.deepEqual(
      [1, 2, 6, 7, 23, 24, 85].map((cells) => repeatsNeeded(cells)),
      [4, 5, 5, 6, 6, 7, 7],
    );
  });

  it('fails on cells that are worse by the threshold or more', () => {
    const result = compare(data('r6-9.2'), data('r6-10.0'));
    assert.deepEqual(
      [0.05, 0.9, 0.95].map((threshold) => failures(result.comparisons, threshold).length),
      [1, 1, 0],
    );
    assert.equal(failures(compare(data('r6-10.0'), data('r6-9.2')).comparisons, 0).length, 0);
  });
});

describe('measure compare', () => {
  const run = (...args: string[]): { code: number; out: string; err: string } => {
    let [out, err] = ['', ''];
    const code = runCompare(args, { out: (text) => (out += text), err: (text) => (err += text) });
    return { code, out, err };
  };
  const r3 = ['test/data/r3-12.0.jsonl', 'test/data/r3-12.1.jsonl'];

  it('prints a row a cell and how they were judged', () => {
    const { code, out } = run(...r3);
    assert.equal(code, 0);
    assert.match(out, /^In every row: kind=samples\n\ncell +metric/);
    assert.match(
      out,
      /\ndirection=receive lro=off +gbps \(Gbit\/s\) +9\.265 \(1\) +7\.543 \(1\) +−18\.6 % .* too few repeats: 1 and 1; 4 each are needed\n/,
    );
    assert.match(out, /No cell has values enough for a rank test at 5 %/);
    assert.match(out, /\nonly in BEFORE: kind=samples direction=receive lro=off after on\n/);
  });

  /** A result file of this test alone. */
  function file(name: string, all: readonly ResultLine[]): string {
    const path = join(folder, name);
    rmSync(path, { force: true });
    appendResults(
      path,
      all.map(({ result }) => result),
    );
    return path;
  }
  const four = [10, 10.1, 10.2, 10.3];
  const ports = { a: 'sim:a@slots=1024', b: 'sim:b@slots=1024', burst: 1024 };
  const sizes = (count: number, more: Cell): ResultLine[] =>
    Array.from({ length: count }, (_, i) => lines(four, { size: 64 + i, ...more })).flat();

  it('says the settings that all cells share once, above the table', () => {
    const path = file('shared.jsonl', sizes(2, ports));
    const { out } = run(path, path);
    assert.match(out, /^In every row: kind=matrix a=sim:a@slots=1024 b=sim:b@slots=1024 burst=1024\n/);
    assert.equal(out.match(/slots=1024/g)?.length, 2);
    assert.match(out, /\nsize=64 +mpps.*\nsize=65 +mpps/);
  });

  it('names a cell that stands alone above the table, and corrects nothing for it', () => {
    const path = file('alone.jsonl', sizes(1, ports));
    const { out } = run(path, path);
    assert.match(out, /^In every row: kind=matrix a=\S+ b=\S+ burst=1024 size=64\n\nmetric +before/);
    assert.match(out, /p is of Mann–Whitney's rank test, judged at 5 %\.\n/);
    assert.doesNotMatch(out, /Holm/);
  });

  it('says what is needed for a test instead of a correction where no cell can be tested', () => {
    const path = file('few.jsonl', lines([1, 2, 3]));
    const { out } = run(path, path);
    // With 3 and 3 values the least p is 2/20, with 4 and 4 it is 2/70.
    assert.match(out, /No cell has values enough for a rank test at 5 %: 4 on each side are the least\./);
    assert.doesNotMatch(out, /Holm|p is of/);
  });

  it('counts the cells that only one file has, and names the first few', () => {
    const { out } = run(file('many.jsonl', sizes(12, ports)), file('one.jsonl', sizes(1, ports)));
    assert.match(
      out,
      /\nonly in BEFORE, 11 cells: kind=matrix a=\S+ b=\S+ burst=1024: size=65; size=66; size=67; and 8 more\n$/,
    );
  });

  it('says when there is nothing to compare, in what the files differ, and compares them all the same with --ignore', () => {
    const [small, large] = [
      file('small.jsonl', sizes(2, ports)),
      file('large.jsonl', sizes(2, { ...ports, a: 'sim:a' })),
    ];
    const apart = run(small, large);
    assert.match(
      apart.out,
      /\nnothing to compare: no cell is in both files; they differ in a: --ignore a compares them all the same\n$/,
    );
    const { out } = run('--ignore', 'a', small, large);
    assert.match(out, /^In every row: kind=matrix b=sim:b@slots=1024 burst=1024\n/);
    assert.match(out, /size=65 +mpps +10\.15 \(4\) +10\.15 \(4\)/);
    assert.throws(
      () => run('--ignore', 'size', small, large),
      /--ignore size: .*small\.jsonl:1 and .*:5 would be taken/,
    );
    assert.throws(
      () => run('--ignore', 'slots', small, large),
      /--ignore slots: no cell has this setting; there are size, a/,
    );
  });

  it('takes a setting that one file does not name for its default there', () => {
    const [all, part] = [file('load.jsonl', sizes(2, ports)), file('part.jsonl', sizes(2, { ...ports, load: 0.05 }))];
    for (const pair of [
      [all, part],
      [part, all],
    ]) {
      assert.match(run(...pair).out, /nothing to compare: .*they differ in load: --ignore load compares them/);
      assert.match(run('--ignore', 'load', ...pair).out, /size=65 +mpps +10\.15 \(4\) +10\.15 \(4\)/);
    }
    const both = file('both-loads.jsonl', [...sizes(1, ports), ...sizes(1, { ...ports, load: 0.05 })]);
    assert.match(run(both, both).out, /\ndefault +mpps .*\nload=0\.05 +mpps /);
    // Nothing left out makes one kind the other.
    const latency = file('latency.jsonl', lines(four, { ...ports, of: 'ndr' }, { kind: 'latency' }, 'p99_ns'));
    assert.match(run(all, latency).out, /no cell is in both files; measure both with the same settings, or --ignore/);
  });

  it('exits with 1 when --fail-on finds a cell, 0 when it does not', () => {
    const r6 = ['test/data/r6-9.2.jsonl', 'test/data/r6-10.0.jsonl'];
    assert.equal(run('--fail-on', '5%', ...r6).code, 1);
    assert.match(run('--fail-on', '5%', ...r6).err, / is worse \(−9\d\.\d+ %\), by at least --fail-on\n$/);
    assert.equal(run('--fail-on', '5%', ...r6.toReversed()).code, 0);
    // Single runs show nothing, whatever was read within them.
    assert.match(run('--fail-on', '5%', ...r3).err, /^--fail-on: failed, for 3 cells could not be judged: too few/);
  });

  it('sees in all cells together what four repeats of each cannot show, and fails', () => {
    const seven = (scale: number): ResultLine[] =>
      [1, 2, 3, 4, 5, 6, 7].flatMap((size) =>
        lines(
          [10, 10.1, 10.2, 10.3].map((value) => value * scale * size),
          { size },
        ),
      );
    const files = [file('seven.jsonl', seven(1)), file('down.jsonl', seven(0.11))];
    const { code, out, err } = run('--fail-on', '5%', '--allow-unjudged', ...files);
    assert.equal(code, 1);
    assert.equal(out.match(/too few repeats: 4 and 4; among 7 comparisons 6 each are needed/g)?.length, 7);
    // Of 70^7 ways to share the values out, two are as extreme.
    assert.match(out, /All 7 cells of mpps together \(stratified rank test\): worse, p < 0\.0001; .* −89\.0 %/);
    assert.match(err, /^mpps of all 7 cells together is worse \(−89\.0 %\), by at least --fail-on$/m);
    assert.equal(run('--fail-on', '5%', '--allow-unjudged', files[0], files[0]).code, 0);
  });

  it('exits with 1 when --fail-on has nothing to compare: says why, and what helps', () => {
    const renamed = [file('port.jsonl', sizes(2, ports)), file('renamed.jsonl', sizes(2, { ...ports, a: 'sim:c' }))];
    assert.equal(run(...renamed).code, 0);
    const { code, err } = run('--fail-on', '5%', ...renamed);
    assert.equal(code, 1);
    assert.equal(
      err,
      '--fail-on: failed, for there is nothing to compare: no cell is in both files; ' +
        'they differ in a: --ignore a compares them all the same\n',
    );
    assert.equal(run('--fail-on', '5%', '--json', ...renamed).err, err);
    assert.equal(run('--fail-on', '5%', '--ignore', 'a', ...renamed).code, 0);
    const odd = file('odd.jsonl', lines(four, ports, {}, 'odd'));
    assert.match(
      run('--fail-on', '5%', odd, odd).err,
      /no cell that both files have can be judged; name another metric/,
    );
    assert.equal(run('--fail-on', '5%', odd, odd).code, 1);
    assert.match(run('--help').out, /when\s+there\s+was\s+nothing\s+to\s+compare/);
  });

  it('counts what could not be judged in its last line, which fails --fail-on unless that is allowed', () => {
    const wild = [...lines([1, 5], { size: 1 }), ...lines([7, 7], { size: 2 }), ...lines(four, { size: 3 })];
    const mixed = file('mixed.jsonl', wild);
    const gate = run('--fail-on', '5%', mixed, mixed);
    assert.equal(gate.code, 1);
    assert.match(gate.err, /^--fail-on: failed, for 2 cells could not be judged: .*; measure more repeats/m);
    const { code, out } = run('--fail-on', '5%', '--allow-unjudged', mixed, mixed);
    assert.equal(code, 0);
    assert.match(out, /\n\n2 cells could not be judged: 1 too noisy to tell, 1 too few repeats\n$/);
    assert.equal(
      run('--fail-on', '5%', '--allow-unjudged', '--json', mixed, mixed).err,
      out.trimEnd().split('\n').at(-1)! + '\n',
    );
    const one = file('one-run.jsonl', lines([7], { size: 2 }));
    assert.match(run(one, one).out, /\n1 cell could not be judged: too few repeats\n$/);
    const judged = file('judged.jsonl', lines(four));
    assert.doesNotMatch(run(judged, judged).out, /could not be judged/);
  });

  it('says that the matrices differ where their cells are the same, once for all cells', () => {
    const runs = (slots: number, digest: string, ...more: string[]): ResultLine[] =>
      [64, 128].flatMap((burst) =>
        lines(four, { burst }).map((one, repeat) => {
          const ran = [`sim:a@slots=${slots}`, 'sim:b', `burst=${burst}`, `run=${repeat}`, ...more];
          return { ...one, result: { ...one.result, matrix: { name: 'rings', digest, seed: 1, ran } } };
        }),
      );
    const [large, small] = [file('m4096.jsonl', runs(4096, 'aa')), file('m512.jsonl', runs(512, 'bb').reverse())];
    assert.match(
      run(large, small).out,
      /\nthe matrices differ \(rings\): only before ran sim:a@slots=4096, only after sim:a@slots=512, 2 cells: kind=matrix: burst=64; burst=128\n$/,
    );
    const same = file('more.jsonl', runs(4096, 'cc'));
    assert.match(run(large, same).out, /\nthe matrices differ \(rings\), though what ran is the same, 2 cells/);
    const longer = file('longer.jsonl', runs(4096, 'dd', '-v'));
    assert.match(run(longer, large).out, /only before ran -v, only after nothing, 2 cells/);
    for (const other of [large, file('none-of-them.jsonl', [...lines(four, { burst: 64 })])])
      assert.doesNotMatch(run(large, other).out, /matrices/);
  });

  it('prints JSON that names the lines behind each number', () => {
    const { comparisons } = JSON.parse(run('--json', ...r3).out) as {
      comparisons: { verdict: string; before: { lines: string[] } }[];
    };
    assert.deepEqual(comparisons[0].before.lines, ['test/data/r3-12.0.jsonl:1']);
    assert.equal(comparisons[0].verdict, 'too few repeats');
  });

  it('names what was written wrong, and the remedy', () => {
    assert.equal(run('-h').code, 0);
    for (const [args, message] of [
      [[], /no file given; name two/],
      [[r3[0]], /r3-12\.0\.jsonl: no run of measure ab in it; name two files, BEFORE and AFTER/],
      [['--metric', 'nope', ...r3], /--metric nope: no result has it; there are gbps$/],
      [['--fail-on', '5', ...r3], /option --fail-on: percentage '5' has no unit/],
      [['--alpha', '0%', ...r3], /option --alpha: '0%': expected more than 0%/],
      [['--speed', ...r3], /unknown option --speed/],
      [['none.jsonl', r3[1]], /none\.jsonl: no such file; name a result file/],
    ] as const)
      assert.throws(() => run(...args), { name: 'UsageError', message });
  });
});
