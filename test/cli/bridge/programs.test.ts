/** `bridge --program`: ready programs and files, counted, failing, and what is written wrong. */
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { after, before, describe, it } from 'node:test';

const TOOL = fileURLToPath(new URL('../../../tools/bridge.js', import.meta.url));
const CAPTURES = fileURLToPath(new URL('../../../../test/captures/', import.meta.url));

/** Without tcpdump there is nothing independent to compare with: fine on a developer's machine, a failure in CI. */
const withoutTcpdump =
  spawnSync('tcpdump', ['--version']).status === 0 || process.env['CI'] === 'true' ? false : 'tcpdump is not installed';

interface Summary {
  directions: { forwarded: number; received: number; notForwarded: Record<string, number> }[];
  ports: { stats: Record<string, number> }[];
  programs: Record<string, number>;
}

function run(...args: string[]): { code: number | null; out: string; err: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [TOOL, ...args], {
    encoding: 'utf8',
    timeout: 60_000,
  });
  return { code: status, out: stdout, err: stderr };
}

function summary(...args: string[]): Summary {
  const { code, out, err } = run(...args, '--json');
  assert.equal(code, 0, err + out);
  return JSON.parse(out.trim().split('\n').at(-1)!) as Summary;
}

/** 1,000 frames of consecutive sequence numbers, on a clock that only syncs move. */
const FROM = 'sim:a@count=1000,clock=virtual,step=1us';

describe('bridge --program', () => {
  let dir: string;
  /** A capture file, to which all frames of 60 bytes go: 24 bytes and 76 a frame. */
  let TO: string;
  const written = (): number => (statSync(join(dir, 'out.pcap')).size - 24) / 76;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'program-'));
    TO = `pcap:@out=${join(dir, 'out.pcap')}`;
  });
  after(() => {
    rmSync(dir, { recursive: true });
  });
  const file = (name: string, text: string): string => {
    writeFileSync(join(dir, name), text);
    return join(dir, name);
  };

  it('a ready program judges every frame; the counts are the program’s, the bridge’s and the port’s', () => {
    const { directions, programs } = summary('-i', FROM, '-i', TO, '--program', 'sample:every=10');
    const [{ received, forwarded, notForwarded }] = directions;
    assert.deepEqual([received, forwarded, notForwarded], [1000, 100, { dropped: 900 }]);
    assert.deepEqual([written(), programs['dropped'], programs['errors']], [100, 900, 0]);
  });

  it('a file’s programs sees each frame, its counters appear, and start, tick and stop are called', () => {
    const mine = file(
      'mine.mjs',
      `export default (setup) => {
        const [seen, odd, started, stopped] = ['seen', 'odd', 'started', 'stopped'].map((name) => setup.counter(name));
        return {
          start: () => started.add(), stop: () => stopped.add(),
          frame: (frame) => { seen.add(); if ((frame.u8(16) & 1) === 0) return 0; odd.add(); return 1; },
        };
      };`,
    );
    const { directions, programs } = summary('-i', FROM, '-i', TO, '--program', mine);
    assert.deepEqual(programs, { seen: 1000, odd: 500, started: 1, stopped: 1, errors: 0 });
    assert.deepEqual(directions[0].notForwarded, { dropped: 500 });
  });

  it('several run one behind the other, and a frame that the first drops is not the second’s', () => {
    const count = file(
      'count.mjs',
      `export default (setup) => { const n = setup.counter('n'); return () => (n.add(), 0); };`,
    );
    const { directions, programs } = summary('-i', FROM, '-i', TO, '--program', 'sample:every=4', '--program', count);
    assert.deepEqual([directions[0].forwarded, programs['n']], [250, 250]);
  });

  it('frames go back, and to a third port', () => {
    const turn = file('turn.mjs', `export default () => (frame) => frame.u8(16) & 3;`);
    const third = join(dir, 'third.pcap');
    const { directions, ports } = summary('-i', FROM, '-i', TO, '--third', `pcap:@out=${third}`, '--program', turn);
    assert.deepEqual(directions[0].notForwarded, { dropped: 250, sentBack: 250, diverted: 250 });
    assert.deepEqual([ports[0].stats['sent'], written(), (statSync(third).size - 24) / 76], [250, 250, 250]);
  });

  it('a filter’s frames are those that tcpdump counts in the same capture', { skip: withoutTcpdump }, () => {
    const capture = `${CAPTURES}afs.pcap`;
    const expression = 'udp and port 7001';
    const { directions } = summary('-i', `pcap:${capture}`, '-i', TO, '--program', `filter:${expression}`);
    const lines = spawnSync('tcpdump', ['-n', '-r', capture, expression], { encoding: 'utf8' }).stdout.split('\n');
    assert.ok(lines.length > 10);
    assert.equal(directions[0].forwarded, lines.length - 1);
  });

  it('a program that throws: the run ends with the frame, the line and a summary; or goes on as asked', () => {
    const bad = file(
      'bad.mjs',
      `export default () => (frame) => {\n  if (frame.u8(16) === 7) throw new Error('seven');\n  return 0;\n};`,
    );
    const stopped = run('-i', FROM, '-i', TO, '--program', bad);
    assert.equal(stopped.code, 1);
    assert.match(
      stopped.err,
      /program .*bad\.mjs: Error: seven at .*bad\.mjs:2:33\n {2}frame of 60 bytes from sim:a.*: [0-9a-f]{120}/,
    );
    assert.match(stopped.out, /forwarding ran/);
    const dropped = summary('-i', FROM, '-i', TO, '--program', bad, '--on-error', 'drop');
    assert.deepEqual([dropped.directions[0].notForwarded, dropped.programs['errors']], [{ dropped: 4 }, 4]);
    const forwarded = summary('-i', FROM, '-i', TO, '--program', bad, '--on-error', 'forward');
    assert.deepEqual([forwarded.directions[0].forwarded, forwarded.programs['errors']], [1000, 4]);
  });

  it('TypeScript runs where Node.js reads it, and what to do is said where not', () => {
    const typed = file(
      'typed.ts',
      `export default () => (frame: { length: number }): 0 | 1 => (frame.length > 0 ? 1 : 0);`,
    );
    const { code, err, out } = run('-i', FROM, '-i', TO, '--program', typed);
    if ((process.features as { typescript?: unknown }).typescript) assert.match(out, /1,000 dropped by the program/);
    else assert.deepEqual([code, /does not read TypeScript here; run Node\.js 22\.18/.test(err)], [2, true], err);
  });

  for (const [what, args, words] of [
    [
      'a file that is not there',
      ['--program', './nowhere.mjs'],
      /program \.\/nowhere\.mjs: there is no such file, or you may not see it/,
    ],
    ['a program that is none', ['--program', 'fliter:udp'], /filter/],
    ['a filter with a mistake', ['--program', 'filter:udp and prot 53'], /\^/],
    ['a word for errors that is none', ['--program', 'sample:every=2', '--on-error', 'cry'], /stop.*drop.*forward/],
    ['a third port that is none', ['--third', 'sim:'], /sim/],
  ] as const)
    it(`${what}: exit 2, and what is wrong`, () => {
      const { code, err } = run('-i', FROM, '-i', TO, ...args);
      assert.deepEqual([code, words.test(err)], [2, true], err);
    });

  it('modules without a default function, with a syntax error, or that throw: exit 2 with the reason', () => {
    for (const [name, text, words] of [
      ['none.mjs', 'export const x = 1;', /no default export that is a function/],
      ['syntax.mjs', 'export default (', /syntax\.mjs[\s\S]*SyntaxError/],
    ] as const) {
      const { code, err } = run('-i', FROM, '-i', TO, '--program', file(name, text));
      assert.deepEqual([code, words.test(err)], [2, true], err);
    }
  });
});
