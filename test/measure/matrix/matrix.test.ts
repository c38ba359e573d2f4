import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { UsageError } from '../../../lib/text/errors.js';
import { commandText, fill, placeholders, runCommand, splitWords } from '../../../lib/measure/matrix/matrix-command.js';
import { parseFeatures } from '../../../lib/measure/matrix/matrix-device.js';
import { parseMatrix, readMatrix } from '../../../lib/measure/matrix/matrix-file.js';
import { shuffled } from '../../../lib/measure/matrix/matrix-order.js';
import { planRuns } from '../../../lib/measure/matrix/matrix-plan.js';
import { readOutput } from '../../../lib/measure/matrix/matrix-read.js';
import { ReadingError } from '../../../lib/measure/matrix/measured.js';
import { journalFile, runMatrix } from '../../../lib/measure/matrix/matrix.js';
import { cellKey } from '../../../lib/measure/results/result.js';
import { readResults } from '../../../lib/measure/results/results.js';
import { DEFAULT_PORTS } from '../../../lib/measure/trial/setup.js';
import { native } from '../../../lib/shim/native.js';
import { Lab, skipWithoutLab, type Namespace } from '../../lab/lab.js';
import { says } from '../../lab/traffic.js';

const folder = mkdtempSync(join(tmpdir(), 'matrix-'));
after(() => {
  rmSync(folder, { recursive: true });
});
const MEASURE = fileURLToPath(new URL('../../../tools/measure.js', import.meta.url));

interface Ended {
  code: number | null;
  signal: NodeJS.Signals | null;
  out: string;
  err: string;
}

/** Runs `measure matrix`; `seen` is called with all of its standard output whenever there is more. */
function matrix(args: string[], seen?: (out: string, kill: (signal: NodeJS.Signals) => void) => void): Promise<Ended> {
  const child = spawn(process.execPath, [MEASURE, 'matrix', ...args], { stdio: ['ignore', 'pipe', 'pipe'] });
  const ended: Ended = { code: null, signal: null, out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    ended.out += text;
    seen?.(ended.out, (signal) => child.kill(signal));
  });
  child.stderr.setEncoding('utf8').on('data', (text: string) => (ended.err += text));
  return new Promise((resolve) => {
    child.once('close', (code, signal) => {
      resolve({ ...ended, code, signal });
    });
  });
}

let folders = 0;

/** A place where settings are files and every command that touches one is in a log. */
class Place {
  readonly path = mkdtempSync(join(folder, `${folders++}-`));
  readonly file = join(this.path, 'matrix.json');
  readonly out = `${this.file}.results.jsonl`;
  readonly log = join(this.path, 'log');
  readonly state = join(this.path, 'state');

  constructor() {
    writeFileSync(this.log, '');
    writeFileSync(this.state, 'as it was\n');
  }

  write(content: object): void {
    writeFileSync(this.file, JSON.stringify(content));
  }

  get lines(): string[] {
    return readFileSync(this.log, 'utf8').split('\n').filter(Boolean);
  }

  /** An axis whose value is the content of the state file. At the n-th apply the program gets the signal of file `armed`. */
  stateAxis(values: string[]): object {
    const script = `echo "apply $0" >> log; echo "$0" > state
      if [ -e armed ] && [ $(grep -c apply log) -eq $(cut -d' ' -f2 armed) ]; then
        kill -$(cut -d' ' -f1 armed) $PPID; rm armed
      fi`;
    const inside = (text: string) => `cd '${this.path}' && ${text}`;
    return {
      values,
      read: ['cat', this.state],
      apply: ['sh', '-c', inside(script), '{value}'],
      undo: ['sh', '-c', inside('echo undo >> log; echo "$0" > state'), '{was}'],
    };
  }

  arm(signal: string, apply: number): void {
    writeFileSync(join(this.path, 'armed'), `${signal} ${apply}`);
  }

  get cells(): string[] {
    return readResults(this.out).lines.map(({ result }) => `${cellKey(result.cell)} ${result.repeat}`);
  }

  /** Nothing is applied, and nothing tells of it. */
  assertClean(): void {
    assert.equal(readFileSync(this.state, 'utf8'), 'as it was\n');
    assert.deepEqual(
      readdirSync(this.path).filter((name) => name.includes('.applied') || name.includes('.lock')),
      [],
    );
  }

  count(word: string): number {
    return this.lines.filter((line) => line.startsWith(word)).length;
  }
}

const SIM = { ports: ['sim:a@clock=virtual', 'sim:b@clock=virtual'], cell: { trial: { warmup: 0 } }, seconds: 0.02 };

describe('a matrix of three axes on sim', () => {
  const place = new Place();
  const axes = { size: [64, 1518], slots: [256, 512], mode: place.stateAxis(['one', 'two']) };
  place.write({ name: 'three axes', ...SIM, axes });

  it('puts everything back when it is interrupted in the middle, and says how to go on', async () => {
    place.arm('INT', 4);
    const { code, err } = await matrix(['--seed', '7', place.file]);
    assert.equal(code, 130, err);
    assert.match(err, /interrupted: 3 of 8 runs done; every setting is back as it was; run the same command again/);
    assert.deepEqual([place.count('apply'), place.count('undo'), place.cells.length], [4, 4, 3]);
    place.assertClean();
  });

  it('runs the rest when it is started again, and no cell twice', async () => {
    const before = readFileSync(place.out, 'utf8');
    const { code, out, err } = await matrix([place.file]);
    assert.equal(code, 0, err);
    assert.match(err, /8 runs, 3 of them done earlier, .*; seed 7;/);
    assert.match(out, /^\[4\/8\]/);
    assert.ok(readFileSync(place.out, 'utf8').startsWith(before));
    const planned = planRuns(readMatrix(place.file), 7).map((run) => `${run.key} ${run.repeat}`);
    assert.deepEqual(place.cells, planned);
    assert.equal(new Set(planned).size, 8);
    assert.deepEqual([place.count('apply'), place.count('undo')], [9, 9]);
    place.assertClean();
  });

  it('has nothing left to do then', async () => {
    const { code, err } = await matrix([place.file]);
    assert.equal(code, 0, err);
    assert.deepEqual([place.cells.length, place.count('apply')], [8, 9]);
  });

  it('keeps with each result what it was measured on and what was run', () => {
    for (const { result } of readResults(place.out).lines) {
      assert.equal(result.kind, 'matrix');
      assert.equal(result.matrix?.name, 'three axes');
      assert.deepEqual(result.matrix.ran.slice(2), ['seconds=0.02', 'oneWay=false', 'warmupSeconds=0', 'workers=1']);
      assert.match(result.matrix.ran[0], new RegExp(`^sim:a@.*slots=${result.cell.slots}`));
      assert.equal(result.surroundings?.node, process.version);
      assert.equal(result.metrics.lost_frames, 0);
      assert.ok(result.metrics.mpps > 0);
    }
  });

  it('refuses to go on when the matrix has changed, more repeats excepted', async () => {
    place.write({ name: 'three axes', ...SIM, axes: { ...axes, size: [64, 512] } });
    const { code, err } = await matrix([place.file]);
    assert.equal(code, 2);
    assert.match(err, /:1: a result of another matrix, or .* has changed since .*give --out another file/);
    place.write({ name: 'three axes', repeats: 2, ...SIM, axes });
    assert.equal((await matrix([place.file])).code, 0);
    assert.equal(new Set(place.cells).size, 16);
    assert.match(
      (await matrix(['--seed', '8', place.file])).err,
      /--seed 8: .* was begun with seed 7: leave --seed out/,
    );
  });
});

describe('a matrix that is killed', () => {
  const place = new Place();
  place.write({
    name: 'killed',
    axes: { mode: place.stateAxis(['one', 'two', 'three']) },
    cell: { command: 'echo 5 {mode}', read: { count: 'number' } },
  });

  it('leaves what it applied, and --restore puts it back', async () => {
    place.arm('KILL', 2);
    assert.equal((await matrix([place.file])).signal, 'SIGKILL');
    assert.notEqual(readFileSync(place.state, 'utf8'), 'as it was\n');
    assert.equal(existsSync(journalFile(place.out)), true);
    const restored = await matrix(['--restore', place.file]);
    assert.equal(restored.code, 0, restored.err);
    assert.match(restored.out, /an earlier run was killed while the settings of mode=\w+ were applied; they are back/);
    place.assertClean();
    assert.deepEqual([place.cells.length, place.count('apply'), place.count('undo')], [1, 2, 2]);
    assert.match((await matrix(['--restore', place.file])).out, /nothing is applied/);
  });

  it('is put back by the next start, which then goes on', async () => {
    place.arm('KILL', 3);
    assert.equal((await matrix([place.file])).signal, 'SIGKILL');
    const { code, err } = await matrix([place.file]);
    assert.equal(code, 0, err);
    assert.match(err, /an earlier run was killed/);
    place.assertClean();
    assert.deepEqual([new Set(place.cells).size, place.cells.length], [3, 3]);
    assert.equal(place.count('undo'), 5);
  });
});

describe('a matrix whose commands fail', () => {
  it('undoes what was half applied, runs the other cells, and tries the failed ones again', async () => {
    const place = new Place();
    const good = join(place.path, 'good');
    const apply = [
      'sh',
      '-c',
      `echo "$0" > ${place.state}; [ $0 != bad ] || [ -e ${good} ] || { echo no way >&2; false; }`,
    ];
    place.write({
      name: 'failing',
      axes: {
        a: {
          values: ['fine', 'bad'],
          apply: [...apply, '{value}'],
          undo: ['sh', '-c', `echo as it was > ${place.state}`],
        },
        b: [1, 2],
      },
      cell: {
        command: ['sh', '-c', `[ $0 = 1 ] || [ -e ${good} ] || exit 3; echo $0`, '{b}'],
        read: { count: 'number' },
      },
    });
    const { code, err, out } = await matrix([place.file]);
    assert.equal(code, 1);
    assert.deepEqual(place.cells, ['a=fine b=1 0']);
    assert.match(err, /a=bad b=1 #1: FAILED: sh -c .*: exit 1: no way/);
    assert.match(err, /a=fine b=2 #1: FAILED: sh -c .*: exit 3/);
    // The cause that two cells share is said once.
    assert.match(err, /\n3 of 4 runs failed:\n/);
    assert.match(err, /\n {2}sh -c .*: no way\n {4}a=bad b=(\d)\n {4}a=bad b=(?!\1)\d\n/);
    assert.match(err, /\n {2}sh -c .*: exit 3\n {4}a=fine b=2\n/);
    assert.match(out, /cell +metric +n/);
    place.assertClean();
    writeFileSync(good, '');
    assert.equal((await matrix([place.file])).code, 0);
    assert.equal(new Set(place.cells).size, 4);
    assert.equal(place.cells.length, 4);
  });

  it('stops and says what to do by hand when a setting cannot be put back', async () => {
    const place = new Place();
    const undo = ['sh', '-c', `[ -e ${place.path}/able ] && echo as it was > ${place.state}`];
    place.write({
      name: 'stuck',
      axes: {
        stuck: { on: { apply: ['sh', '-c', `echo on > ${place.state}`], undo } },
        other: {
          values: [1, 2],
          apply: ['sh', '-c', `echo apply >> ${place.log}`],
          undo: ['sh', '-c', `echo undo >> ${place.log}`],
        },
      },
      cell: { command: 'echo 1', read: { count: 'number' } },
    });
    for (const more of [[], ['--restore'], []]) {
      const { code, err } = await matrix([...more, place.file]);
      assert.equal(code, 1);
      assert.match(err, /SETTINGS ARE NOT AS THEY WERE/);
      assert.match(err, /stuck: sh -c .*: exit 1\n {4}by hand:\n {6}sh -c '\[ -e/);
      assert.match(err, /Then delete .*\.applied; or let measure matrix --restore try again/);
    }
    // The one that could be undone was, once; nothing more was run.
    assert.deepEqual([place.lines, place.cells.length], [['apply', 'undo'], 1]);
    writeFileSync(join(place.path, 'able'), '');
    assert.equal((await matrix(['--restore', place.file])).code, 0);
    place.assertClean();
  });

  it('notices a setting that an undo did not really put back', async () => {
    const place = new Place();
    place.write({
      name: 'lazy',
      axes: {
        a: { on: { read: ['cat', place.state], apply: ['sh', '-c', `echo on > ${place.state}`], undo: 'true {was}' } },
      },
      cell: { command: 'echo 1', read: { count: 'number' } },
    });
    const { code, err } = await matrix([place.file]);
    assert.equal(code, 1);
    assert.match(err, /a: was 'as it was' before and is 'on' now/);
  });

  it(
    'does not run what another user has put into its journal',
    { skip: process.getuid?.() !== 0 && 'not root' },
    async () => {
      const place = new Place();
      place.write({ name: 'foreign', axes: { a: [1] }, cell: { command: 'echo {a}', read: { count: 'number' } } });
      const undo = [{ kind: 'command', axis: 'a', undo: [['sh', '-c', `echo ran >> ${place.log}`]] }];
      const journal = journalFile(place.out);
      writeFileSync(journal, JSON.stringify({ v: 1, matrix: 'm', cell: 'c', timeoutMs: 1000, undo }));
      chownSync(journal, 65534, 65534);
      await assert.rejects(runMatrix(readMatrix(place.file), { out: place.out }), /belongs to another user/);
      assert.deepEqual(place.lines, []);
      chownSync(journal, 0, 0);
      await runMatrix(readMatrix(place.file), { out: place.out });
      assert.deepEqual(place.lines, ['ran']);
    },
  );

  it('ends a command that is still running when it is interrupted', async () => {
    const place = new Place();
    place.write({
      name: 'long',
      axes: { mode: place.stateAxis(['one', 'two']) },
      cell: { command: ['sh', '-c', 'kill -TERM $PPID; sleep 1000', '{mode}'], read: { count: 'number' } },
    });
    const { code } = await matrix([place.file]);
    assert.equal(code, 143);
    assert.deepEqual(place.lines.length, 2);
    place.assertClean();
  });

  it('ends a trial that is still running when it is interrupted', async () => {
    const place = new Place();
    place.write({ name: 'long trial', ...SIM, seconds: 1000, axes: { size: [64], mode: place.stateAxis(['one']) } });
    const controller = new AbortController();
    const running = runMatrix(readMatrix(place.file), { out: place.out, signal: controller.signal });
    while (place.count('apply') === 0) await new Promise((resolve) => setTimeout(resolve, 10));
    setTimeout(() => {
      controller.abort();
    }, 200);
    const summary = await running;
    assert.deepEqual([summary.interrupted, summary.done, summary.failed], [true, 0, []]);
    place.assertClean();
  });

  it('lets only one process at a time write to a results file', async () => {
    const place = new Place();
    place.write({ name: 'busy', axes: { a: [1] }, cell: { command: 'echo {a}', read: { count: 'number' } } });
    const lock = native.lock(`${place.out}.lock`);
    await assert.rejects(runMatrix(readMatrix(place.file), { out: place.out }), /another measure matrix writes to it/);
    native.unlock(lock);
  });

  it('undoes whatever it applied in reverse order, whichever commands fail and whenever it is interrupted', async () => {
    const bits = fc.integer({ min: 0, max: 1 });
    const axis = fc.record({ values: fc.integer({ min: 1, max: 2 }), failing: fc.option(bits, { nil: -1 }) });
    const scenario = fc.record({
      axes: fc.array(axis, { minLength: 1, maxLength: 3 }),
      failingCell: fc.option(bits, { nil: -1 }),
      abortAt: fc.option(fc.integer({ min: 1, max: 6 }), { nil: 0 }),
      seed: fc.nat(),
    });
    await fc.assert(
      fc.asyncProperty(scenario, async ({ axes, failingCell, abortAt, seed }) => {
        const place = new Place();
        const log = (what: string, fails: number) =>
          ['sh', '-c', `echo ${what} $0 >> ${place.log}; [ "$0" != ${fails} ]`, '{value}'] as const;
        place.write({
          name: 'any',
          axes: Object.fromEntries(
            axes.map(({ values, failing }, i) => [
              `x${i}`,
              {
                values: Array.from({ length: values }, (_, v) => v),
                apply: log(`apply x${i}`, failing),
                undo: log(`undo x${i}`, -1),
              },
            ]),
          ),
          cell: { command: ['sh', '-c', `[ $0 != ${failingCell} ] && echo 1`, '{x0}'], read: { count: 'number' } },
        });
        const controller = new AbortController();
        let starts = 0;
        const summary = await runMatrix(readMatrix(place.file), {
          out: place.out,
          seed,
          signal: controller.signal,
          onEvent: ({ kind }) => {
            if (kind === 'start' && ++starts === abortAt)
              setTimeout(() => {
                controller.abort();
              }, 5);
          },
        });
        const applied: string[] = [];
        for (const line of place.lines) {
          const [what, ...setting] = line.split(' ');
          if (what === 'apply') applied.push(setting.join(' '));
          else assert.equal(applied.pop(), setting.join(' '));
        }
        assert.deepEqual(applied, []);
        assert.equal(existsSync(journalFile(place.out)), false);
        const fails = (cell: Record<string, unknown>) =>
          cell.x0 === failingCell || axes.some(({ failing }, i) => cell[`x${i}`] === failing);
        const done = existsSync(place.out) ? readResults(place.out).lines.map(({ result }) => result.cell) : [];
        assert.ok(!done.some(fails));
        assert.ok(summary.failed.every(({ run }) => fails(run.cell)));
        if (!summary.interrupted) assert.equal(done.length + summary.failed.length, summary.runs);
      }),
      { numRuns: 12 },
    );
  });
});

describe('the order of a matrix', () => {
  it('is drawn anew for each repeat, each time with every cell once', () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 60 }), fc.nat(0xffffffff), fc.nat(100), (count, seed, repeat) => {
        const order = shuffled(count, seed, repeat);
        assert.deepEqual(order, shuffled(count, seed, repeat));
        assert.deepEqual(
          [...order].sort((a, b) => a - b),
          Array.from({ length: count }, (_, i) => i),
        );
      }),
    );
    assert.notDeepEqual(shuffled(20, 1, 0), shuffled(20, 1, 1));
    assert.notDeepEqual(shuffled(20, 1, 0), shuffled(20, 2, 0));
  });

  it('is any order as often as any other', () => {
    const seen = new Map<string, number>();
    for (let seed = 0; seed < 6000; seed++) {
      const order = shuffled(3, seed, 0).join('');
      seen.set(order, (seen.get(order) ?? 0) + 1);
    }
    assert.equal(seen.size, 6);
    // 1000 expected, standard deviation 29.
    for (const [order, times] of seen) assert.ok(Math.abs(times - 1000) < 130, `${order} ${times} times`);
  });
});

describe('matrix files', () => {
  const base = { name: 'n', axes: { size: [64] }, cell: { trial: {} } };
  const errorOf = (content: object | string): string => {
    try {
      planRuns(parseMatrix(typeof content === 'string' ? content : JSON.stringify(content), 'm.json'), 1);
    } catch (error) {
      assert.ok(error instanceof UsageError, String(error));
      return error.message;
    }
    assert.fail('no error');
  };
  const command = (axes: object, more: object = {}) => ({
    name: 'n',
    axes,
    cell: { command: 'echo {a}', read: { count: 'number' } },
    ...more,
  });

  it('are refused with the path of what is wrong', () => {
    const wrong: [object | string, RegExp][] = [
      ['{"name": "n",\n  "axes": oops}', /^m\.json:2:\d+: not JSON: /],
      ['[]', /^m\.json: the file: expected an object/],
      [{ ...base, name: '' }, /^m\.json: name: expected a name/],
      [{ ...base, repeat: 2 }, /^m\.json: repeat: not known here; expected name, repeats/],
      [{ ...base, repeats: 0 }, /^m\.json: repeats: expected repeats of each cell, 1 to 10000, got 0/],
      [{ ...base, repeats: 1.5 }, /repeats: .*a whole number, got 1.5/],
      [{ name: 'n', cell: { trial: {} } }, /axes: it is missing/],
      [{ ...base, axes: {} }, /axes: expected at least one axis/],
      [{ ...base, axes: { size: [] } }, /axes\.size: expected values, got \[\]/],
      [{ ...base, axes: { size: [64, 64] } }, /axes\.size: the value 64 is there twice/],
      [
        { ...base, axes: { size: [64, [65]] } },
        /axes\.size\[1\]: expected a string, a number, true or false, got \[65\]/,
      ],
      [{ ...base, axes: { slots: [1] } }, /axes\.slots\[0\]: bad port name: .*1/s],
      [{ ...base, axes: { wait: ['spin'] } }, /axes\.wait\[0\]: spin: expected busy, poll/],
      [{ ...base, axes: { was: [1] } }, /axes\.was: an axis cannot have this name/],
      [{ ...base, axes: { mtu: [1500] } }, /axes\.mtu: nothing uses it: settings of a trial are size, slots/],
      [{ ...base, ports: ['sim:a'] }, /ports: expected two ports, got 1/],
      [
        { ...base, ports: ['sim:a', 'xdp:eth0'] },
        /cell\.trial \(in the cell size=64\): xdp:eth0: a trial runs on simulated ports/,
      ],
      [{ ...base, axes: { size: [9000], slots: [2] } }, /cell\.trial \(in the cell size=9000 slots=2\): bad port name/],
      [{ ...base, cell: {} }, /cell: expected one of trial and command/],
      [{ ...base, cell: { trial: { bust: 1 } } }, /cell\.trial\.bust: not known here; expected size/],
      [{ ...base, cell: { trial: {}, read: 'iperf3' } }, /cell\.read: a trial has no use for it/],
      [command({ b: [1] }), /axes\.b: nothing uses it: put \{b\} into cell\.command, or give commands/],
      [command({ mtu: [1] }), /axes\.mtu: nothing uses it: .* or name "interfaces" to set it on/],
      [command({ mtu: [1] }, { interfaces: ['x'] }), /axes\.mtu\[0\]: expected an MTU in bytes, 68 to 65535, got 1/],
      [command({ tso: ['yes'] }, { interfaces: ['x'] }), /axes\.tso\[0\]: expected on or off, got "yes"/],
      [command({ a: { x: { set: { tso: true } } } }), /axes\.a\.x\.set: there are no interfaces/],
      [
        command({ a: { x: { aply: 'true' } } }),
        /axes\.a\.x\.aply: not known here; expected set, apply, undo, read, words/,
      ],
      [command({ a: { x: { apply: 'true' } } }), /axes\.a\.x\.undo: it is missing/],
      [command({ a: { x: { apply: 'echo "', undo: 'true' } } }), /axes\.a\.x\.apply: a quote " is not closed/],
      [
        command({ a: { x: { apply: 'true', undo: 'echo {was}' } } }),
        /axes \(in the cell a=x\): \{was\} stands for nothing here/,
      ],
      [command({ a: { x: { apply: 'echo {if}', undo: 'true' } } }), /\{if\} stands for nothing: name the interfaces/],
      [
        { ...command({ a: [1] }), cell: { command: 'echo {a} {c}', read: 'results' } },
        /cell\.command .*\{c\} stands for nothing here; known are \{a\}/,
      ],
      [{ ...command({ a: [1] }), cell: { command: 'echo {a}' } }, /cell\.read: expected "iperf3", "results"/],
      [
        { ...command({ a: [1] }), cell: { command: 'echo {a}', read: { x: 'jsn:y' } } },
        /cell\.read\.x: expected "number", "json:"/,
      ],
      [
        { ...command({ a: [1] }), cell: { command: 'iperf3 -c {a}', read: 'iperf3' } },
        /cell\.command: iperf3 needs the option --json/,
      ],
      [
        command({ a: { x: { set: { tso: true } } }, tso: ['on'] }, { interfaces: ['x'] }),
        /axes\.a and axes\.tso both set tso/,
      ],
    ];
    for (const [content, message] of wrong) assert.match(errorOf(content), message);
  });

  it('that are missing are named with the remedy', async () => {
    const { code, err } = await matrix([join(folder, 'none.json')]);
    assert.equal(code, 2);
    assert.match(err, /none\.json: no such file; name a matrix file/);
  });

  it('without ports measure what measure itself does: the same ports', () => {
    const plain = JSON.stringify({ name: 'n', axes: { size: [64] }, cell: { trial: {} } });
    const [{ run }] = planRuns(parseMatrix(plain, 'm.json'), 1);
    const bare = (name: string): string => name.replace(/,?size=64/, '');
    assert.deepEqual('trial' in run && run.trial.options.names.map(bare), DEFAULT_PORTS);
  });

  it('name what is shown first: what their command reads, not what the processors did meanwhile', async () => {
    const place = new Place();
    place.write({ name: 'own', axes: { a: [7] }, cell: { command: 'echo {a}', read: { v: 'number' } } });
    const { code, out } = await matrix([place.file]);
    assert.equal(code, 0);
    assert.match(out, /^\[1\/1\] a=7 #1: v 7\n/);
    assert.match(out, /\na=7 +v +1 +7 +7 +7\n/);
    const [{ result }] = readResults(place.out).lines;
    assert.equal(Object.keys(result.metrics)[0], 'v');
    assert.ok('cpu_user_share' in result.metrics);
  });

  it('of docs/matrix can be run as they are', () => {
    const rings = planRuns(readMatrix('docs/matrix/rings.json'), 1);
    assert.equal(rings.length, 40);
    const tcp = planRuns(readMatrix('docs/matrix/iperf3.json'), 1);
    assert.equal(tcp.length, 120);
    const one = tcp.find(({ key }) => key === 'congestion=reno direction=receive mtu=9000 offloads=no tso')!;
    assert.deepEqual(one.run, { command: ['iperf3', '--json', '-c', '192.0.2.2', '-t', '10', '--reverse'] });
    assert.deepEqual(one.device, { mtu: 9000, features: { checksum: true, tso: false, gso: true, gro: true } });
    assert.deepEqual(one.steps[0].undo, [['sysctl', '-q', '-w', 'net.ipv4.tcp_congestion_control={was}']]);
  });

  it('give a trial what the axes say', () => {
    const axes = { size: [512], itr: ['80us'], direction: ['b→a'], copy: ['copy'], workers: [2], load: ['50%'] };
    const [{ run }] = planRuns(parseMatrix(JSON.stringify({ name: 'n', axes, cell: { trial: { burst: 8 } } }), 'm'), 1);
    assert.ok('trial' in run);
    const { names, ...options } = run.trial.options;
    assert.deepEqual(options, { seconds: 2, oneWay: true, burst: 8, copy: true });
    assert.equal(run.trial.workers, 2);
    for (const [i, name] of ['b', 'a'].entries())
      assert.match(names[i], new RegExp(`^sim:${name}@(?=.*load=25%)(?=.*size=512)(?=.*slots=4096)(?=.*itr=80us)`));
  });

  it('with {if} run a command for each interface', () => {
    const axes = { a: { on: { apply: 'up {if} {netns}', undo: 'down {if}' } } };
    const [{ steps }] = planRuns(parseMatrix(JSON.stringify(command(axes, { interfaces: ['x', 'n/y'] })), 'm'), 1);
    assert.deepEqual(
      steps.map(({ apply, undo }) => [apply, undo]),
      [
        [[['up', 'x', '']], [['down', 'x']]],
        [[['up', 'y', 'n']], [['down', 'y']]],
      ],
    );
  });

  it('can be looked at without running anything', async () => {
    const place = new Place();
    place.write({
      name: 'dry',
      repeats: 2,
      seconds: 30,
      axes: { mode: place.stateAxis(['x']) },
      cell: { command: 'echo', read: 'results' },
    });
    const { code, out } = await matrix(['--dry-run', place.file]);
    assert.equal(code, 0);
    assert.match(
      out,
      /^dry: 1 cells, 2 times each: 2 runs, 2 left; about 1 min 0 s; seed \d+\nmeasure compare judges 1 cell at 5 % from 4 repeats of each on, before and after; here are 2\nmode=x #1\n {2}apply sh -c /,
    );
    assert.deepEqual([place.lines, existsSync(place.out)], [[], false]);
  });
});

describe('commands', () => {
  it('are split into words without a shell', () => {
    assert.deepEqual(splitWords(` a  'b c' d"e f"\\ g '' "\\"" `), ['a', 'b c', 'de f g', '', '"']);
    assert.throws(() => splitWords('  '), UsageError);
    fc.assert(
      fc.property(fc.array(fc.string({ unit: 'binary' }), { minLength: 1 }), (words) => {
        assert.deepEqual(splitWords(commandText(words)), words);
      }),
    );
  });

  it('have their placeholders filled in, and what is filled in stays one word', () => {
    const fillings = { a: 'x y; $(z)', list: ['-R', '-u'], none: [] };
    assert.deepEqual(fill(['{a}', '-{a}-', '{list}', '{none}', '{{a}}'], fillings), [
      'x y; $(z)',
      '-x y; $(z)-',
      '-R',
      '-u',
      '{a}',
    ]);
    assert.throws(() => fill(['-{list}'], fillings), /must be a word of its own/);
    assert.throws(() => fill(['{constructor}'], fillings), /stands for nothing/);
    assert.deepEqual(placeholders(['{a}{b}', '{{c}}', '{a}']), ['a', 'b']);
  });

  it('that run too long or do not exist are named', async () => {
    await assert.rejects(runCommand(['sleep', '1000'], 50), /^CommandError: sleep 1000: still running after 0.05 s/);
    await assert.rejects(runCommand(['no-such-program'], 1000), /no-such-program is not installed, or not in PATH/);
    const stubborn = runCommand(['sh', '-c', 'trap "" TERM; while :; do sleep 0.1; done'], 200);
    await assert.rejects(stubborn, /still running/);
  });

  it('are done when they end, whatever they leave running', async () => {
    const { stdout, status } = await runCommand(['sh', '-c', 'sleep 1000 & echo $!; exit 5'], 60_000);
    assert.equal(status, 5);
    process.kill(Number(stdout), 'SIGKILL');
  });
});

describe("a command's result", () => {
  const tcp = {
    intervals: [
      { sum: { seconds: 1.0001, bits_per_second: 1e9, omitted: true } },
      { sum: { seconds: 1.0003, bits_per_second: 8e9, omitted: false } },
      { sum: { seconds: 0.9998, bits_per_second: 9e9, omitted: false } },
      { sum: { seconds: 0.0021, bits_per_second: 1e7, omitted: false } },
    ],
    end: {
      sum_sent: { bits_per_second: 8.6e9, retransmits: 3 },
      sum_received: { bits_per_second: 8.5e9 },
      cpu_utilization_percent: {
        host_total: 20,
        host_user: 0.5,
        host_system: 19.5,
        remote_total: 40,
        remote_user: 4,
        remote_system: 36,
      },
    },
  };
  const close = (found: Record<string, number>, expected: Record<string, number>) => {
    assert.deepEqual(Object.keys(found).sort(), Object.keys(expected).sort());
    for (const [name, value] of Object.entries(expected)) assert.ok(Math.abs(found[name] - value) < 1e-9, name);
  };

  it('of iperf3 over TCP: rate, retransmits, CPU of both sides, and each whole interval', () => {
    const { metrics, samples, sample_s } = readOutput('iperf3', JSON.stringify(tcp));
    close(metrics, {
      ...{ gbps: 8.5, sent_gbps: 8.6, retransmits: 3 },
      ...{ host_cpu_share: 0.2, host_cpu_user_share: 0.005, host_cpu_system_share: 0.195 },
      ...{ remote_cpu_share: 0.4, remote_cpu_user_share: 0.04, remote_cpu_system_share: 0.36 },
    });
    assert.deepEqual([samples, sample_s], [{ gbps: [8, 9] }, 1]);
  });

  it('of iperf3 over UDP, both ways: what arrived, loss and jitter', () => {
    const udp = { bits_per_second: 2e9, jitter_ms: 0.5, lost_packets: 25, packets: 100 };
    const end = {
      sum: udp,
      sum_received: { bits_per_second: 1.5e9 },
      sum_bidir_reverse: { ...udp, lost_packets: 0 },
      sum_received_bidir_reverse: { bits_per_second: 2e9 },
    };
    const both = readOutput('iperf3', JSON.stringify({ end })).metrics;
    close(both, { gbps: 1.5, loss: 0.25, jitter_ms: 0.5, reverse_gbps: 2, reverse_loss: 0, reverse_jitter_ms: 0.5 });
    close(readOutput('iperf3', JSON.stringify({ end: { sum: udp } })).metrics, {
      gbps: 1.5,
      loss: 0.25,
      jitter_ms: 0.5,
    });
  });

  it('that is an error or no result is refused', () => {
    const refused: [Parameters<typeof readOutput>[0], string, RegExp][] = [
      ['iperf3', '{"end": {}, "error": "the server is busy"}', /iperf3: the server is busy/],
      ['iperf3', 'Connecting to host', /no JSON: give iperf3 the option --json/],
      ['iperf3', '{"end": {}}', /no rate in the report/],
      ['results', '', /0 lines where one result was expected/],
      [new Map([['x', { how: 'number' }]]), 'none', /no number in what was printed: 'none'/],
      [new Map([['x', { how: 'json', path: 'a.b' }]]), '{"a": {}}', /there is no a\.b in the JSON/],
      [new Map([['x', { how: 'json', path: 'a' }]]), '{"a": "1"}', /a in the JSON that was printed is not a number/],
      [new Map([['x', { how: 'json', path: 'a' }]]), 'a', /'a', which is not JSON/],
      [new Map([['x', { how: 'match', pattern: /rtt (\S+)/ }]]), 'rtt slow', /finds no number/],
    ];
    for (const [reading, stdout, message] of refused)
      assert.throws(
        () => readOutput(reading, stdout),
        (error: Error) => error instanceof ReadingError && message.test(error.message),
      );
    assert.throws(() => readOutput('results', '{}'), /what was printed: not a result/);
  });

  it('is a number, a place in JSON or a match', () => {
    const one = (source: object, stdout: string) => readOutput(new Map([['x', source as never]]), stdout).metrics.x;
    assert.equal(one({ how: 'number' }, 'took -1.5e3 ms, 7'), -1500);
    assert.equal(one({ how: 'json', path: 'a.1.b' }, '{"a": [0, {"b": 2.5}]}'), 2.5);
    assert.equal(one({ how: 'match', pattern: /rtt (\S+)/ }, 'x 1\nrtt 0.25 ms'), 0.25);
  });

  it('of measure itself is taken over whole', () => {
    const line = {
      v: 1,
      kind: 'forward',
      cell: { size: 64 },
      repeat: 0,
      metrics: { mpps: 14 },
      link_gbps: 10,
      time: '2026-01-31T12:00:00Z',
    };
    assert.deepEqual(readOutput('results', `${JSON.stringify(line)}\n`), { metrics: { mpps: 14 }, link_gbps: 10 });
  });
});

describe('the features of ethtool -k', () => {
  it('are those that can be changed, as wanted, groups told by their members', () => {
    const text = [
      'Features for left:',
      'rx-checksumming: on',
      'tx-checksumming: off',
      '\ttx-checksum-ipv4: off [fixed]',
      '\ttx-checksum-ip-generic: off',
      'tcp-segmentation-offload: off',
      '\ttx-tcp-segmentation: off [requested on]',
      'generic-receive-offload: off',
      'large-receive-offload: off [fixed]',
    ].join('\n');
    assert.deepEqual(parseFeatures(text), {
      'rx-checksumming': true,
      'tx-checksum-ip-generic': false,
      'tx-tcp-segmentation': true,
      'generic-receive-offload': false,
    });
  });
});

describe('a matrix on veth with iperf3', { skip: skipWithoutLab('ethtool', 'iperf3') }, () => {
  const lab = new Lab();
  after(() => {
    lab.close();
  });
  const [a, b] = [lab.namespace('a'), lab.namespace('b')];
  const ends: [Namespace, string][] = [
    [a, 'left'],
    [b, 'right'],
  ];
  lab.veth(a, { name: 'left', addresses: ['10.46.0.1/24'] }, b, { name: 'right', addresses: ['10.46.0.2/24'] });
  const state = () => ends.map(([ns, link]) => [ns.run('ethtool', '-k', link), ns.ip('-o', 'link', 'show', link)]);
  const place = new Place();
  const all = (on: boolean) => ({ tso: on, gso: on, gro: on, checksum: on });
  place.write({
    name: 'offloads and MTU',
    seconds: 1,
    interfaces: [`${a.name}/left`, `${b.name}/right`],
    axes: {
      mtu: [1500, 9000],
      offloads: {
        on: { set: all(true) },
        'no tso': { set: { ...all(true), tso: false } },
        'no gso': { set: { ...all(true), tso: false, gso: false } },
        off: { set: all(false) },
      },
    },
    cell: { command: `ip netns exec ${a.name} iperf3 --json -c 10.46.0.2 -t {seconds}`, read: 'iperf3' },
  });

  it('leaves offloads and MTU as they were when interrupted and when done, and runs no cell twice', async () => {
    const server = b.spawn('iperf3', ['-s', '--forceflush'], { stdio: ['ignore', 'pipe', 'pipe'] });
    await says(server, /listening on/);
    const before = state();
    let sent = false;
    const interrupted = await matrix([place.file], (out, kill) => {
      if (!sent && out.includes('[3/8]')) kill('SIGINT');
      sent ||= out.includes('[3/8]');
    });
    assert.equal(interrupted.code, 130, interrupted.err);
    assert.deepEqual(state(), before);
    place.assertClean();
    const first = place.cells.length;
    assert.ok(first >= 3 && first < 8);

    const { code, err } = await matrix([place.file]);
    assert.equal(code, 0, err);
    assert.deepEqual(state(), before);
    place.assertClean();
    assert.deepEqual([place.cells.length, new Set(place.cells).size], [8, 8]);

    for (const { result } of readResults(place.out).lines) {
      const { metrics, samples, surroundings, cell } = result;
      assert.ok(metrics.gbps > 0 && metrics.retransmits >= 0 && metrics.remote_cpu_share >= 0);
      assert.equal(samples?.gbps.length, 1);
      // What was set when it was measured, as the system itself tells.
      for (const { mtu, offloads } of Object.values(surroundings?.interfaces ?? {})) {
        assert.equal(mtu, cell.mtu);
        const { tso, gso, gro, rxChecksum, txChecksum } = offloads!;
        const wanted = { on: '11111', 'no tso': '01111', 'no gso': '00111', off: '00000' }[String(cell.offloads)];
        assert.equal([tso, gso, gro, rxChecksum, txChecksum].map(Number).join(''), wanted);
      }
      assert.equal(Object.keys(surroundings?.interfaces ?? {}).length, 2);
    }
  });

  it('that is killed is put back by --restore', async () => {
    const before = state();
    const killed = new Place();
    killed.write({
      name: 'killed',
      interfaces: [`${a.name}/left`, `${b.name}/right`],
      axes: { mtu: [9000], offloads: { off: { set: all(false) } } },
      cell: { command: ['sh', '-c', 'kill -KILL $PPID'], read: { count: 'number' } },
    });
    assert.equal((await matrix([killed.file])).signal, 'SIGKILL');
    assert.notDeepEqual(state(), before);
    const { code, err } = await matrix(['--restore', killed.file]);
    assert.equal(code, 0, err);
    assert.deepEqual(state(), before);
    killed.assertClean();
  });

  it('tells a setting that the driver does not take, and puts back what it did', async () => {
    const before = state();
    const other = new Place();
    other.write({
      name: 'impossible',
      interfaces: [`${a.name}/left`],
      axes: { offloads: { odd: { set: { checksum: false, tso: true } } } },
      cell: { command: 'echo 1', read: { count: 'number' } },
    });
    const { code, err } = await matrix([other.file]);
    assert.equal(code, 1);
    assert.match(err, /left: tso on was asked for and it is off/);
    assert.deepEqual(state(), before);
  });
});
