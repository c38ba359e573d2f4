import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { runAb } from '../../../lib/cli/measure/cli-ab.js';
import { runCompare } from '../../../lib/cli/measure/cli-compare.js';
import { roundOrder } from '../../../lib/measure/compare/ab.js';
import { readResults } from '../../../lib/measure/results/results.js';

const folder = mkdtempSync(join(tmpdir(), 'ab-'));
after(() => {
  rmSync(folder, { recursive: true });
});
const at = (name: string): string => join(folder, name);

/** A command that prints one result of each size. */
function prints(name: string, mpps: number, sizes: readonly number[] = [64], slots = 1024): string {
  const lines = sizes.map((size) =>
    JSON.stringify({
      v: 1,
      kind: 'forward',
      cell: { size, a: `sim:a@slots=${slots}` },
      repeat: 0,
      metrics: { mpps },
      time: '2026-01-31T12:00:00Z',
    }),
  );
  writeFileSync(at(name), lines.map((line) => `${line}\n`).join(''));
  return `cat ${at(name)}`;
}

async function ab(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  let [out, err] = ['', ''];
  const code = await runAb(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

describe('measure ab', () => {
  it('runs both commands in the order of its seed, keeps each run, and judges: what was set up differs, the rest is one cell', async () => {
    const commands = [prints('ten', 10, [64], 1024), prints('nine', 9, [64], 2048)];
    const { code, out, err } = await ab('--seed', '7', '--out', at('r.jsonl'), '--fail-on', '5%', ...commands);
    assert.equal(code, 1);
    const { lines } = readResults(at('r.jsonl'));
    assert.deepEqual(lines.map(({ result }) => result.cell.side), roundOrder(7, 0)); // prettier-ignore
    assert.deepEqual(lines.map(({ result }) => result.metrics.mpps), roundOrder(7, 0).map((side) => (side === 'before' ? 10 : 9))); // prettier-ignore
    assert.deepEqual(lines.map(({ result: { ab } }) => [ab!.seed, ab!.round, ab!.place]), lines.map((_, i) => [7, 0, i])); // prettier-ignore
    assert.match(err, /^rounds of 5 runs of each side in random order, seed 7; results in .*r\.jsonl\n/);
    assert.match(err, /\n5 runs of each: they show it clearly\n/);
    assert.match(out, /^In every row: kind=forward size=64\n/);
    // Of 252 ways to share five and five out, two are as extreme.
    assert.match(out, /\nmpps +10 \(5\) +9 \(5\) +−10\.0 % +−10\.0 % to −10\.0 % +0\.0079 +−10\.0 % +worse\n/);
    assert.match(err, /forward size=64: mpps is worse \(−10\.0 %\), by at least --fail-on\n$/);
    // The same command goes on where it ended: there is nothing left to measure.
    const again = await ab('--out', at('r.jsonl'), ...commands);
    assert.deepEqual([again.code, again.out], [0, out]);
    assert.match(again.err, /seed 7, 10 runs done earlier/);
    assert.equal(readResults(at('r.jsonl')).lines.length, 10);
    // And measure compare reads what it wrote.
    let text = '';
    assert.equal(runCompare([at('r.jsonl')], { out: (some) => (text += some), err: () => undefined }), 0);
    assert.match(text, /\nmpps +10 \(5\) +9 \(5\) +−10\.0 % .* worse\n/);
  });

  it('goes on after a run that failed: what was measured is kept, and the rest of the round is in its order', async () => {
    const [ten, nine] = [prints('ten', 10), at('late')];
    // Fails until the file is there.
    const commands = ['--seed', '3', '--out', at('late.jsonl'), ten, `cat ${nine}`];
    const first = await ab(...commands);
    assert.equal(first.code, 1);
    assert.match(
      first.err,
      /\nmeasure ab: cat \S+late: exit 1: .*No such file.*; the runs so far are in .*late\.jsonl: the same command goes on\n$/,
    );
    const done = existsSync(at('late.jsonl')) ? readResults(at('late.jsonl')).lines.length : 0;
    assert.equal(done, roundOrder(3, 0).indexOf('after'));
    prints('late', 9);
    assert.equal((await ab(...commands)).code, 0);
    const { lines } = readResults(at('late.jsonl'));
    assert.deepEqual(lines.map(({ result }) => result.cell.side), roundOrder(3, 0)); // prettier-ignore
  });

  it('ends its command with it at a signal: 128 and its number, what was measured is kept', async () => {
    const wish = new AbortController();
    let err = '';
    const io = {
      out: (): void => undefined,
      err(text: string): void {
        err += text;
        if (text.includes('run 1 of 10')) wish.abort('SIGINT');
      },
    };
    const ten = prints('ten', 10);
    const commands = [ten, `sh -c "cat ${at('ten')} && exec sleep 60"`];
    // The first run of this seed is before's.
    assert.equal(roundOrder(2, 0)[0], 'before');
    const code = await runAb(['--seed', '2', '--out', at('stop.jsonl'), ...commands], io, wish.signal);
    assert.equal(code, 130);
    assert.match(err, /\ninterrupted; the runs so far are in \S+stop\.jsonl: the same command goes on\n$/);
    assert.equal(readResults(at('stop.jsonl')).lines.length, 1);
  });

  it('measures several cells in one run, and looks first when each of them can be clear: after two rounds', async () => {
    const sizes = [64, 128, 256, 512, 1024, 1280, 1518];
    const commands = [prints('seven', 10, sizes), prints('less', 9.5, sizes)];
    const { out, err } = await ab('--out', at('seven.jsonl'), ...commands);
    assert.match(err, /\n10 runs of each: they show it clearly\n/);
    assert.equal(out.match(/ worse\n/g)?.length, 7);
    assert.match(out, /\nsize=1518 +mpps +10 \(10\) +9\.5 \(10\) +−5\.0 % /);
    assert.match(out, /\nAll 7 cells of mpps together \(stratified rank test\): worse, p < 0\.0001/);
  });

  it('measures with this very program where a command begins with measure', async () => {
    const sim = '-i sim:a@clock=virtual,step=10us -i sim:b@clock=virtual,step=10us --one-way --seconds 1ms --size 64';
    const { code, out } = await ab(
      '--most',
      '5',
      '--out',
      at('own.jsonl'),
      `measure ${sim}`,
      `measure ${sim} --burst 32`,
    );
    assert.equal(code, 0);
    // In every step of 10 µs 32 frames are moved and 14.88 × 10⁶ × 10 µs = 148.8 arrive.
    assert.match(out, /worse\n/);
    const [{ result }] = readResults(at('own.jsonl')).lines.filter(({ result: one }) => one.cell.side === 'after');
    assert.deepEqual(result.ab!.ran.slice(-2), ['--burst', '32']);
    assert.equal(result.cell.burst, 32);
  });

  it('names what was given wrong, and the remedy', async () => {
    const two = [prints('ten', 10), prints('nine', 9)];
    const out = ['--out', at('wrong.jsonl')];
    writeFileSync(at('text'), 'no result\n');
    for (const [args, message] of [
      [[...out, two[0]], /1 command given; name two, each in quotes/],
      [two, /--out FILE is needed/],
      [[...out, '--find', '5', ...two], /option --find: percentage '5' has no unit/],
      [[...out, '--most', '4', ...two], /option --most: .*5/],
      [[...out, 'measure report x', two[0]], /measure report is no single run/],
      [[...out, "cat 'x", two[0]], /a quote ' is not closed/],
    ] as const)
      await assert.rejects(ab(...args), { name: 'UsageError', message });
    const text = await ab(...out, `cat ${at('text')}`, `cat ${at('text')}`);
    assert.deepEqual([text.code, readFileSync(at('wrong.jsonl'), 'utf8')], [1, '']);
    assert.match(text.err, /what was printed: damaged: not JSON/);
    await ab('--seed', '1', '--out', at('taken.jsonl'), ...two);
    await assert.rejects(
      ab('--out', at('taken.jsonl'), two[1], two[0]),
      /has runs of other commands; name another file/,
    );
    await assert.rejects(
      ab('--seed', '2', '--out', at('taken.jsonl'), ...two),
      /--seed 2: the runs in \S+ are of seed 1/,
    );
  });
});
