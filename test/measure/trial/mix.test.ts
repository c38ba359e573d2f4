// A mix of sizes is a size like another: its line rate by arithmetic, and measured on links that keep to it exactly.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runForward } from '../../../lib/cli/measure/cli-forward.js';
import { runThroughput } from '../../../lib/cli/measure/cli-throughput.js';
import { planTrial, runTrialPlan } from '../../../lib/measure/matrix/matrix-trial.js';
import type { Result } from '../../../lib/measure/results/result.js';
import { parseResult } from '../../../lib/measure/results/results.js';
import { lineRate, parseSizes } from '../../../lib/text/units.js';

/** Bytes on the wire of a round of the mix, 7 × 64, 4 × 594 and 1 × 1518 with 20 bytes more each, over its frames. */
const IMIX_WIRE_BYTES = (7 * 84 + 4 * 614 + 1538) / 12;
const IMIX_MPPS = 10e9 / (8 * IMIX_WIRE_BYTES) / 1e6;
const ports = (options = ''): string[] =>
  ['a', 'b'].flatMap((name) => ['-i', `sim:${name}@clock=virtual,step=2us,slots=4096${options}`]);

async function results(run: typeof runForward, ...args: string[]): Promise<Result[]> {
  const lines: string[] = [];
  await run([...args, '--json'], { out: (text) => lines.push(text), err: () => undefined });
  return lines
    .join('')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);
}

const near = (value: number, wanted: number, part: number): void => {
  assert.ok(Math.abs(value / wanted - 1) < part, `${value}, not ${wanted}`);
};

describe('a mix of sizes', () => {
  it('has a line rate by the mean of its sizes', () => {
    near(lineRate(10e9, 'imix') / 1e6, IMIX_MPPS, 1e-12);
    assert.equal(lineRate(10e9, '64*3+128'), 10e9 / (8 * (80 + 20)));
    assert.deepEqual(parseSizes('64,imix,64*7+594*4+1518,128*2+256'), [64, 'imix', 'imix', '128*2+256']);
  });

  it('stands beside single sizes, and is forwarded at its line rate', async () => {
    const found = await results(runForward, ...ports(), '--one-way', '--size', '64,imix', '--seconds', '20ms');
    assert.deepEqual(
      found.map(({ cell }) => cell.size),
      [64, 'imix'],
    );
    near(found[1].metrics.mpps, IMIX_MPPS, 0.001);
    near(found[1].metrics.wire_gbps, 10, 0.001);
    assert.equal(found[1].metrics.lost_frames, 0);
  });

  it('named by a port is measured, and a size that says otherwise is refused', async () => {
    const [found] = await results(runForward, ...ports(',size=imix'), '--one-way', '--seconds', '20ms');
    assert.equal(found.cell.size, 'imix');
    near(found.metrics.mpps, IMIX_MPPS, 0.001);
    await assert.rejects(
      results(runForward, ...ports(',size=imix'), '--size', '64'),
      /sizes imix and 64: a port's name and the command line say different sizes/,
    );
  });

  it('has a throughput', async () => {
    const [found] = await results(runThroughput, ...ports(), '--one-way', '--size', 'imix', '--seconds', '20ms');
    near(found.metrics.ndr_mpps, IMIX_MPPS, 0.001);
  });

  it('is an axis of a matrix', async () => {
    const names = ['sim:a@clock=virtual,step=2us,slots=4096', 'sim:b@clock=virtual,step=2us,slots=4096'] as const;
    const settings = new Map([
      ['size', 'imix'],
      ['direction', 'a→b'],
    ]);
    const { metrics } = await runTrialPlan(planTrial(names, settings, 0.02), new AbortController().signal);
    near(metrics.mpps, IMIX_MPPS, 0.001);
  });
});

describe('the rate of a short trial', () => {
  it('is the load that was carried: frames on their way when it ends are no loss', async () => {
    // 124 µs of interrupt moderation keep 0.62 % of a trial of 20 ms in the rings at its end.
    const slow = ports(',itr=124us');
    const [found] = await results(
      runForward,
      ...slow,
      '--one-way',
      '--size',
      '64',
      '--load',
      '10%',
      '--seconds',
      '20ms',
    );
    assert.equal(found.metrics.lost_frames, 0);
    near(found.metrics.mpps, 1.488095, 0.0005);
  });
});

describe('a port that wedges', () => {
  it('is a setting of a matrix, and frames that stay in the rings are no fault', async () => {
    const names = ['sim:a@clock=virtual,step=1us', 'sim:b@clock=virtual,step=1us'] as const;
    const settings = new Map<string, string | number>([
      ['wedge', 1000],
      ['direction', 'a→b'],
    ]);
    const { metrics, note } = await runTrialPlan(planTrial(names, settings, 0.002), new AbortController().signal);
    assert.ok(metrics.lost_frames > 0);
    assert.equal(note, undefined, 'nothing is called lost in no counter');
  });
});

describe('a number that is none', () => {
  it('is told by its name', () => {
    for (const word of ['NaN', '-Infinity'])
      assert.throws(
        () => parseResult(`{"v": 1, "kind": "forward", "metrics": {"mpps": ${word}}}`, 'x.jsonl:1'),
        new RegExp(`x.jsonl:1: ${word} is no number in JSON`),
      );
  });
});
