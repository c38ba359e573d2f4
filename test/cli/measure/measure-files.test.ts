import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const TOOL = fileURLToPath(new URL('../../../tools/measure.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'files-'));
after(() => {
  rmSync(folder, { recursive: true });
});

function measure(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [TOOL, ...args], { encoding: 'utf8', cwd: folder });
  return { status, stdout, stderr };
}

const RESULT =
  '{"v":1,"kind":"forward","cell":{"size":64},"repeat":0,"metrics":{"mpps":14.2},"time":"2026-01-31T12:00:00Z"}\n';
const MATRIX = '{"name":"m","seconds":0.01,"axes":{"burst":[64]},"cell":{"trial":{"clock":"virtual","step":"10us"}}}';
mkdirSync(join(folder, 'folder'));
for (const [name, text] of [
  ['r.jsonl', RESULT],
  ['m.json', MATRIX],
  ['cut.json', '{"name":'],
  ['empty.json', ''],
] as const)
  writeFileSync(join(folder, name), text);

const READS = [
  [['matrix', 'none.json'], /none\.json: no such file; name a matrix file \(docs\/matrix\.md\)/],
  [['matrix', 'folder'], /folder: a folder; name a matrix file/],
  [['matrix', 'r.jsonl/x'], /r\.jsonl\/x: no such file, for a part of its path is no folder; name a matrix file/],
  [['matrix', 'cut.json'], /cut\.json:1:9: not JSON: .*; mend that place/],
  [['matrix', 'empty.json'], /empty\.json:1:1: not JSON: .*; mend that place/],
  [['matrix', '--dry-run', 'none.json'], /none\.json: no such file/],
  [['matrix', '--restore', 'none.json'], /none\.json: no such file; name a matrix file/],
  [['compare', 'none.jsonl', 'r.jsonl'], /none\.jsonl: no such file; name a result file written by measure/],
  [['compare', 'r.jsonl', 'folder'], /folder: a folder; name a result file/],
  [['compare', 'r.jsonl', 'm.json'], /m\.json:1: not a result/],
  [['report', '--markdown', 'none.jsonl'], /none\.jsonl: no such file; name a result file/],
  [['report', '--markdown', 'r.jsonl', '--before', 'folder'], /folder: a folder; name a result file/],
] as const;

const WRITES = [
  [['--out', 'none/r.jsonl'], /none\/r\.jsonl: there is no folder none; make it, or name a file elsewhere/],
  [['throughput', '--out', 'folder'], /folder: a folder; name a file in it/],
  [['loss', '--out', 'r.jsonl/x'], /r\.jsonl\/x: a part of its path is no folder; name a file elsewhere/],
  [['matrix', '--out', 'none/r.jsonl', 'm.json'], /none\/r\.jsonl: there is no folder none; make it/],
  [['matrix', '--restore', '--out', 'none/r.jsonl', 'm.json'], /none\/r\.jsonl: there is no folder none/],
  [['report', '--html', 'none/x.html', 'r.jsonl'], /none\/x\.html: there is no folder none; make it/],
  [['report', '--html', 'folder', 'r.jsonl'], /folder: a folder; name a file in it/],
  [['report', '--svg', 'r.jsonl', 'r.jsonl'], /r\.jsonl: there is a file of that name; name a folder/],
] as const;

describe('files that measure is told to read or write', () => {
  for (const [args, message] of [...READS, ...WRITES]) {
    it(`measure ${args.join(' ')}: code 2, the file, the cause and the remedy, before anything is measured`, () => {
      const before = readdirSync(folder).sort();
      const { status, stdout, stderr } = measure(...args);
      assert.equal(status, 2, stderr);
      assert.doesNotMatch(stdout, /Mpps/);
      assert.match(stderr, message);
      const name = ['matrix', 'compare', 'report', 'throughput', 'loss'].includes(args[0]) ? `measure ${args[0]}` : 'measure'; // prettier-ignore
      assert.match(stderr, new RegExp(`^${name}: [^\n]*\nTry: ${name} --help\n$`));
      assert.deepEqual(readdirSync(folder).sort(), before);
    });
  }

  it('a full disk is a failure, said in one line: code 1', { skip: !existsSync('/dev/full') && 'no /dev/full' }, () => {
    const ports = ['-i', 'sim:a@clock=virtual,step=10us', '-i', 'sim:b@clock=virtual,step=10us'];
    const run = measure('loss', ...ports, '--size', '64', '--seconds', '0.01', '--out', '/dev/full');
    assert.equal(run.status, 1);
    assert.match(run.stderr, /measure loss: \/dev\/full: the disk is full; make room, or name a file elsewhere\n$/);
    const page = measure('report', '--html', '/dev/full', 'r.jsonl');
    assert.equal(page.status, 1);
    assert.match(page.stderr, /^measure report: \/dev\/full: the disk is full; [^\n]*\n$/);
  });
});

describe('progress without a terminal', () => {
  const ports = ['-i', 'sim:a@clock=virtual,step=10us', '-i', 'sim:b@clock=virtual,step=10us'];
  const args = [...ports, '--sizes', '512,1518', '--seconds', '0.01'];
  for (const [command, line] of [
    [[], /^512 bytes \(1 of 2\): [\d.]+ Mpps forwarded, 0 frames lost$/],
    [['throughput'], /^512 bytes \(1 of 2\): NDR [\d.]+ \[[\d.]+, –\] Mpps, PDR /],
    [['latency', '--of', 'line'], /^512 bytes \(1 of 2\): median [\d.]+ µs, p99\.9 [\d.]+ µs, max [\d.]+ µs$/],
    [['burst', '--trials', '1'], /^512 bytes \(1 of 2\): longest burst ≥ \d+ frames, [\d.]+ ms$/],
  ] as const) {
    it(`measure ${command.join(' ')}: a line on stderr for each finished size`, () => {
      const { status, stderr } = measure(...command, ...args);
      assert.equal(status, 0, stderr);
      const lines = stderr.trimEnd().split('\n');
      assert.equal(lines.length, 2);
      assert.match(lines[0], line);
      assert.match(lines[1], /^1518 bytes \(2 of 2\): /);
    });
  }

  it('measure loss: a line for each load', () => {
    const { stderr } = measure('loss', ...args, '--steps', '50%');
    assert.deepEqual(
      stderr.trimEnd().split('\n'),
      [
        ['512', 1, 100],
        ['512', 1, 50],
        ['1518', 2, 100],
        ['1518', 2, 50],
      ].map(([size, place, load]) => `${size} bytes (${place} of 2) at ${load}.0 % of line rate: 0 % lost`),
    );
  });
});
