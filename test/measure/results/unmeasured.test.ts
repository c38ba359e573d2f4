// What a mode of waiting cannot give is in no result: not as 0, which would be the best of all.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { runCompare } from '../../../lib/cli/measure/cli-compare.js';
import { runForward } from '../../../lib/cli/measure/cli-forward.js';
import { runTrialPlan, planTrial } from '../../../lib/measure/matrix/matrix-trial.js';
import type { Result } from '../../../lib/measure/results/result.js';
import { readResults } from '../../../lib/measure/results/results.js';

const folder = mkdtempSync(join(tmpdir(), 'unmeasured-'));
after(() => {
  rmSync(folder, { recursive: true });
});

/** Runs a command; what it printed on stdout and on stderr, and its exit code. */
async function run(
  command: (args: string[], io: { out: (text: string) => void; err: (text: string) => void }) => unknown,
  ...args: string[]
): Promise<{ out: string; err: string; code: unknown }> {
  const said = { out: '', err: '' };
  const code = await command(args, { out: (text) => (said.out += text), err: (text) => (said.err += text) });
  return { ...said, code };
}

function write(name: string, metrics: Record<string, number>): string {
  const file = join(folder, name);
  const line = (repeat: number): string =>
    JSON.stringify({ v: 1, kind: 'matrix', cell: { wait: 'poll' }, repeat, metrics, time: '2026-01-31T12:00:00Z' });
  writeFileSync(file, [0, 1, 2, 3, 4].map((repeat) => `${line(repeat)}\n`).join(''));
  return file;
}

describe('the share of time that moved frames', () => {
  const ports = ['-i', 'sim:a@rate=100M', '-i', 'sim:b@rate=100M', '--size', '1518', '--seconds', '100ms'];

  it('is in the results of a thread that spins, and not in those of one that sleeps', async () => {
    const share = async (...more: string[]): Promise<unknown> => {
      const { out } = await run(runForward, ...ports, '--json', ...more);
      return (JSON.parse(out) as Result).metrics.busy_share;
    };
    const busy = await share();
    assert.ok(typeof busy === 'number' && busy > 0 && busy <= 1, String(busy));
    assert.equal(await share('--wait', 'poll'), undefined);
  });

  it('is a dash in the table', async () => {
    const { out } = await run(runForward, ...ports, '--wait', 'poll');
    assert.match(out, /^ *1518 .* – +[\d.]+ [µm]s$/m);
  });

  it('is not in a matrix; a frame costs all that a sleeping thread did, or nothing is said of it', async () => {
    const names = ['sim:a@rate=100M,size=1518', 'sim:b@rate=100M,size=1518'] as const;
    const plan = planTrial(names, new Map([['wait', 'poll']]), 0.3);
    const { metrics } = await runTrialPlan(plan, new AbortController().signal);
    assert.ok(metrics.mpps > 0);
    assert.ok(!('busy_share' in metrics));
    // The system may count CPU time in steps longer than what the thread did.
    assert.ok(!('frame_ns' in metrics) || metrics.frame_ns > 0);
  });
});

describe('a 0 that an earlier version wrote where nothing was known', () => {
  it('is left out on reading, and all else stays', () => {
    const file = write('old.jsonl', { mpps: 1, loss: 0, lost_frames: 0, frame_ns: 0, frame_cycles: 0, busy_share: 0 });
    assert.deepEqual(readResults(file).lines[0].result.metrics, { mpps: 1, loss: 0, lost_frames: 0 });
  });

  it('is no improvement of 100 %', async () => {
    const [before, after] = [
      write('is.jsonl', { mpps: 1, frame_ns: 33_000 }),
      write('was.jsonl', { mpps: 1, frame_ns: 0 }),
    ];
    const { out } = await run(runCompare, '--metric', 'frame_ns', before, after);
    assert.doesNotMatch(out, /better/);
    assert.match(out, /frame_ns is not on both sides/);
  });
});
