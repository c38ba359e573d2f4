// The same thing measured twice on this machine, noise and all: compare must not call it a regression too often.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { compare } from '../../../lib/measure/compare/compare.js';
import type { ResultLine } from '../../../lib/measure/results/result.js';
import { runTrial } from '../../../lib/measure/trial/trial.js';

const COMPARISONS = 20;
/** The fewest with which a rank test can show anything at alpha = 0.05: 2 of 70 orders are as extreme. */
const REPEATS = 4;

/**
 * compare() says "worse" of two equal sides with probability 0.025 at most (the lower half of alpha = 0.05), so of
 * twenty comparisons more than three are wrong with probability 0.0014: one run of this test in 700.
 */
const MOST_WORSE = 3;

async function measured(file: string, line: number): Promise<ResultLine> {
  const trial = await runTrial({
    names: ['sim:a@rate=max,slots=256', 'sim:b@rate=max,slots=256'],
    warmupSeconds: 0.05,
    seconds: 0.05,
  });
  const frames = trial.directions.reduce((sum, { forwardedInTime }) => sum + forwardedInTime, 0);
  // CPU time a frame, not frames a second: on a busy machine those are mostly what others left over.
  const metrics = { frame_ns: (trial.userNs + trial.systemNs) / frames };
  const time = new Date().toISOString();
  return { file, line, result: { v: 1, kind: 'forward', cell: { size: 64 }, repeat: line, metrics, time } };
}

it('A/A: of twenty real comparisons of a thing with itself, no more than chance allows come out worse', async (t) => {
  const verdicts: string[] = [];
  for (let k = 0; k < COMPARISONS; k++) {
    const before: ResultLine[] = [];
    const after: ResultLine[] = [];
    // In turn, and whose turn comes first changes: the machine's drift is neither side's.
    for (let repeat = 1; repeat <= REPEATS; repeat++) {
      const sides: [string, ResultLine[]][] = [
        ['before', before],
        ['after', after],
      ];
      if ((k + repeat) % 2 === 1) sides.reverse();
      for (const [file, lines] of sides) lines.push(await measured(file, repeat));
    }
    verdicts.push(compare(before, after).comparisons[0].verdict);
  }
  t.diagnostic(verdicts.join(', '));
  assert.equal(verdicts.length, COMPARISONS);
  assert.ok(verdicts.filter((verdict) => verdict === 'worse').length <= MOST_WORSE, verdicts.join(', '));
});
