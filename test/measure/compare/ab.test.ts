// Two set-ups measured in turn: how often equal ones are called different, and how often real changes are found.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  abState,
  POWER,
  ROUND_RUNS,
  roundOrder,
  runsLeft,
  type AbOptions,
  type AbSide,
  type AbState,
} from '../../../lib/measure/compare/ab.js';
import type { ResultLine } from '../../../lib/measure/results/result.js';
import { normalStream } from '../../support/random.js';

/** What a cell gives at the run `t` of a comparison. */
type Machine = (side: AbSide, t: number) => number;

/** A comparison as measure ab makes it, of cells that the machines are. */
function compared(seed: number, cells: readonly Machine[], options: AbOptions): AbState {
  const lines: ResultLine[] = [];
  for (let t = 0, round = 0; ; round++) {
    for (const { side, place, repeat } of runsLeft(lines, seed, round)) {
      for (const [size, machine] of cells.entries()) {
        const ab = { digest: 'd', seed, round, place, ran: [] };
        const metrics = { mpps: machine(side, t) };
        const time = '2026-01-31T12:00:00Z';
        const result = { v: 1, kind: 'forward', cell: { size, side }, repeat, metrics, ab, time } as const;
        lines.push({ file: 'x', line: lines.length + 1, result });
      }
      t++;
    }
    const state = abState(lines, options);
    if (state.result !== undefined) return state;
  }
}

const called = ({ result }: AbState): boolean =>
  result!.comparisons.some(({ verdict }) => verdict === 'better' || verdict === 'worse');

/** A machine that drifts by 10 % in the course of an hour of runs, and that other work slows down by a third for a while. */
function restless(seed: number): Machine {
  const normal = normalStream(seed);
  let slow = 0;
  return (_, t) => {
    slow = 0.9 * slow + 0.02 * normal();
    const other = Math.sin(seed + t / 9) > 0.9 ? 0.67 : 1;
    return 10 * other * Math.exp(0.05 * Math.sin(seed + t / 25) + slow + 0.005 * normal());
  };
}

/** More than this of 200 comes with a chance of one in 1,000 where 5 % are expected: 10 ± 3.1, and 3.1 standard deviations. */
const MOST_CALLED = 20;

describe('two set-ups in turn', () => {
  it('are drawn in an order that the seed gives, each side as often as the other in a round', () => {
    const orders = Array.from({ length: 2000 }, (_, seed) => roundOrder(seed, 0));
    for (const order of orders) assert.equal(order.filter((side) => side === 'before').length, ROUND_RUNS);
    assert.deepEqual(roundOrder(7, 3), roundOrder(7, 3));
    assert.notDeepEqual(roundOrder(7, 3), roundOrder(7, 4));
    for (let place = 0; place < 2 * ROUND_RUNS; place++) {
      const first = orders.filter((order) => order[place] === 'before').length;
      // 1000 ± 22; four standard deviations.
      assert.ok(Math.abs(first - 1000) < 90, `place ${place}: ${first} of 2000`);
    }
  });

  it('are the runs left of a round that was interrupted, in their order', () => {
    const all = runsLeft([], 5, 1);
    assert.equal(all.length, 2 * ROUND_RUNS);
    assert.deepEqual(all.map(({ side }) => side), roundOrder(5, 1)); // prettier-ignore
    assert.deepEqual([...all].filter(({ side }) => side === 'after').map(({ repeat }) => repeat), [5, 6, 7, 8, 9]); // prettier-ignore
    const done = all.slice(0, 3).map(({ side, round, place, repeat }, i): ResultLine => {
      const ab = { digest: 'd', seed: 5, round, place, ran: [] };
      const more = { metrics: { mpps: 1 }, ab, time: '2026-01-31T12:00:00Z' };
      return { file: 'x', line: i + 1, result: { v: 1, kind: 'forward', cell: { side }, repeat, ...more } };
    });
    assert.deepEqual(runsLeft(done, 5, 1), all.slice(3));
  });

  for (const [name, cells] of [
    ['one cell', 1],
    ['seven cells', 7],
  ] as const) {
    it(`of ${name}, equal: no more of 200 are called different than stated, on a machine that drifts and has other work`, (t) => {
      const comparisons = cells === 1 ? 200 : 100;
      let different = 0;
      for (let seed = 1; seed <= comparisons; seed++) {
        const machines = Array.from({ length: cells }, (_, i) => restless(100 * seed + i));
        if (called(compared(seed, machines, { find: 0.05, most: 20 }))) different++;
      }
      t.diagnostic(`${different} of ${comparisons} called different`);
      assert.ok(different <= (MOST_CALLED * comparisons) / 200, `${different} of ${comparisons}`);
    });
  }

  for (const change of [0.03, 0.05, 0.1]) {
    it(`that differ by ${100 * change} %: found nine times in ten with the runs that it says it needs`, (t) => {
      const [comparisons, needs] = [100, [] as number[]];
      let found = 0;
      for (let seed = 1; seed <= comparisons; seed++) {
        const normal = normalStream(seed);
        const noise = [0.3, 0.6, 1][seed % 3] * change;
        const machine: Machine = (side) => 10 * Math.exp(noise * normal()) * (side === 'after' ? 1 - change : 1);
        const { result, needed, runs } = compared(seed, [machine], { find: change, most: 500 });
        const [{ verdict }] = result!.comparisons;
        if (verdict === 'worse') found++;
        // All that it says, but where a look at half the way shows it.
        assert.ok(runs >= needed || result!.alpha < 0.02, `${runs} runs, ${needed} needed`);
        needs.push(runs);
      }
      const [least, most] = [Math.min(...needs), Math.max(...needs)];
      t.diagnostic(`${found} of ${comparisons} found, with ${least} to ${most} runs of each`);
      // 90 ± 3; three standard deviations.
      assert.ok(found >= (POWER - 0.09) * comparisons, `${found} of ${comparisons}`);
    });
  }

  it('end at the first look where it is clear, and at --most where it is not', () => {
    const normal = normalStream(3);
    const noisy: Machine = (side) => (side === 'after' ? 5 : 10) * Math.exp(0.02 * normal());
    const clear = compared(1, [noisy], { find: 0.03, most: 500 });
    assert.deepEqual([clear.runs, clear.result!.comparisons[0].verdict], [ROUND_RUNS, 'worse']);
    assert.ok(Math.abs(clear.result!.alpha - 0.01) < 1e-9);
    const wild: Machine = () => 10 * Math.exp(0.5 * normal());
    const short = compared(1, [wild], { find: 0.03, most: 10 });
    assert.equal(short.runs, 10);
    assert.ok(short.needed > 500, `${short.needed}`);
    assert.ok(Math.abs(short.result!.alpha - 0.04) < 1e-9);
    // Two cells can both be clear only after two rounds: 2 of 252 orders are more than half of 1 %.
    assert.equal(compared(1, [noisy, noisy], { find: 0.03, most: 500 }).runs, 2 * ROUND_RUNS);
  });

  it('need no more runs where there is no noise, and say after how many a change stands out where there is', () => {
    const normal = normalStream(4);
    const still: Machine = () => 10;
    assert.deepEqual(compared(1, [still], { find: 0.01, most: 500 }).runs, ROUND_RUNS);
    // Noether: 2 (2.054 + 1.282)² × 0.04² ÷ ln(1.05)² ÷ (3/π × 10/11) = 17.2; in rounds of five, by a spread known to some 10 %.
    const noisy: Machine = () => 10 * Math.exp(0.04 * normal());
    const { needed } = compared(2, [noisy], { find: 0.05, most: 500 });
    assert.ok(needed >= 10 && needed <= 30, `${needed}`);
  });
});
