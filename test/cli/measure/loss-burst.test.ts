import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import fc from 'fast-check';
import { shortOffer } from '../../../lib/measure/trial/offer.js';
import type { BenchTrial } from '../../../lib/measure/trial/bench.js';
import { burstSteps, type BurstResult } from '../../../lib/measure/search/burst-search.js';
import { lossLoads } from '../../../lib/cli/measure/cli-loss.js';
import { readResults } from '../../../lib/measure/results/results.js';
import type { Result } from '../../../lib/measure/results/result.js';

const TOOL = fileURLToPath(new URL('../../../tools/measure.js', import.meta.url));
const folder = mkdtempSync(join(tmpdir(), 'measure-'));
after(() => {
  rmSync(folder, { recursive: true });
});

function measure(...args: string[]): { status: number | null; stdout: string; stderr: string } {
  const { status, stdout, stderr } = spawnSync(process.execPath, [TOOL, ...args], { encoding: 'utf8' });
  return { status, stdout, stderr };
}

function results(...args: string[]): Result[] {
  const { status, stdout, stderr } = measure(...args, '--json');
  assert.equal(status, 0, stderr);
  // Without a terminal, progress is a line on stderr for each result.
  assert.equal(stderr.trimEnd().split('\n').length, stdout.trimEnd().split('\n').length, stderr);
  return stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as Result);
}

/** 10 Gbit/s; a ring of 1,024 slots that shows its frames every 120 µs: 1,023 frames a tick and a few syncs. */
const CLOCK = 'clock=virtual,step=1us';
const ports = ['-i', `sim:a@slots=1024,itr=120us,${CLOCK}`, '-i', `sim:b@slots=4096,${CLOCK}`];

function search(lost: (frames: number) => number, most: number, width: number): BurstResult {
  const steps = burstSteps(most, width);
  let step = steps.next();
  while (!step.done) {
    assert.ok(step.value >= 1 && step.value <= most && Number.isInteger(step.value));
    step = steps.next(lost(step.value));
  }
  return step.value;
}

describe('the search for the longest burst', () => {
  it('is exact to the frame, whatever the buffer and the rate at which it drains', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 0, max: 1e6 }),
        fc.integer({ min: 1, max: 1e7 }),
        fc.double({ min: 0.01, max: 1, noNaN: true }),
        (buffer, most, share) => {
          // Of what exceeds the buffer, `share` is lost, at least one frame.
          const lost = (frames: number): number => (frames <= buffer ? 0 : Math.ceil((frames - buffer) * share));
          const { longest, shortestLossy } = search(lost, most, 0);
          assert.equal(longest, Math.min(buffer, most));
          assert.equal(shortestLossy, buffer < most ? buffer + 1 : undefined);
        },
      ),
    );
  });

  it('takes few bursts where loss grows evenly, and ends whatever is lost', () => {
    const { trials, longest } = search((frames) => Math.max(0, Math.ceil((frames - 1023) * 0.45)), 2_000_000, 0.001);
    assert.ok(longest <= 1023 && longest >= 1021);
    assert.ok(trials.length <= 10, `${trials.length} bursts`);
    fc.assert(
      fc.property(fc.infiniteStream(fc.nat(3)), (stream) => {
        const { trials: bursts } = search(() => (stream.next() as IteratorYieldResult<number>).value, 1e6, 0.001);
        assert.ok(bursts.length < 200);
      }),
    );
  });
});

describe('the loads of a loss curve', () => {
  it('go from line rate down in even steps to the last above nothing', () => {
    assert.deepEqual(lossLoads(0.1), [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1]);
    assert.deepEqual(lossLoads(0.3), [1, 0.7, 0.4, 0.1]);
    assert.deepEqual(lossLoads(1), [1]);
  });
});

describe('measure throughput, latency, loss and burst as tools', () => {
  it('throughput: one result a size, the same in the result file, bounds around the figure', () => {
    const out = join(folder, 'throughput.jsonl');
    const lines = results('throughput', ...ports, '--one-way', '--sizes', '64,512', '--seconds', '0.02', '--out', out);
    assert.deepEqual(
      readResults(out).lines.map(({ result }) => result),
      lines,
    );
    assert.deepEqual(
      lines.map(({ kind, cell }) => [kind, cell.size]),
      [
        ['throughput', 64],
        ['throughput', 512],
      ],
    );
    const [small, large] = lines.map(({ metrics }) => metrics);
    // 1,023 frames in 123 µs: see the throughput test.
    const capacity = 1023 / 123;
    assert.ok(Math.abs(small.ndr_mpps - capacity) < 0.01 * capacity, String(small.ndr_mpps));
    assert.ok(small.ndr_lower_mpps < small.ndr_upper_mpps && small.pdr_lower_mpps < small.pdr_upper_mpps);
    assert.ok(small.trial_s > 0 && 'cpu_user_share' in small);
    // 512 bytes at 10 Gbit/s are 2.35 Mpps: carried, so there is no upper bound.
    assert.equal(large.ndr_mpps, 1e10 / (8 * 532) / 1e6);
    assert.ok(!('ndr_upper_mpps' in large));
  });

  it('loss: the curve of a device of known capacity, until two loads in a row lose nothing', () => {
    const lines = results('loss', ...ports, '--one-way', '--size', '64', '--seconds', '0.05');
    // 8.317 of 14.881 Mpps: everything above 55.9 % loses.
    assert.deepEqual(
      lines.map(({ cell }) => cell.load),
      [1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4],
    );
    for (const { cell, metrics } of lines) {
      // A ring that is full at the tick takes in 1,023 a tick; one that just fills, in the 123 µs until it is refilled.
      const offered = (1e4 / 672) * (cell.load as number);
      const [most, least] = [123, 120].map((us) => Math.max(0, 1 - 1023 / us / offered));
      assert.ok(metrics.loss >= least - 0.005 && metrics.loss <= most + 0.005, `${offered}: ${metrics.loss}`);
    }
  });

  it('burst: what the ring holds, to the frame; the throughput corrects for how long it lasts', () => {
    const args = [
      '--one-way',
      '--size',
      '64,512',
      '--seconds',
      '0.02',
      '--trials',
      '2',
      '--width',
      '0%',
      '--corrected',
    ];
    const [small, large] = results('burst', ...ports, ...args);
    const { burst_frames, deviation_frames, buffer_us, corrected_buffer_us } = small.metrics;
    // 1,023 frames last 68.7 µs: they arrive within one tick, or a burst that a tick divides can be longer.
    assert.ok(burst_frames >= 1023 && burst_frames <= 2 * 1023, String(burst_frames));
    assert.ok(deviation_frames <= 1023);
    assert.ok(Math.abs(buffer_us - burst_frames * 0.0672) < 1e-6);
    const corrected = buffer_us * (1 - 1023 / 123 / (1e4 / 672));
    assert.ok(Math.abs(corrected_buffer_us - corrected) < 0.03 * corrected);
    // 512 bytes are carried at line rate: the longest burst tried, 20 ms of it, comes through.
    assert.equal(large.metrics.burst_frames, Math.round(0.02 * (1e10 / (8 * 532))));
    assert.match(large.note ?? '', /lost nothing/);
  });

  it('latency: percentiles in order, with the histogram, its error and the cost of the clock said', () => {
    const [line] = results('latency', ...ports, '--size', '64', '--seconds', '0.02', '--of', 'line', '--load', '30%');
    const { min_ns, p50_ns, p99_ns, p999_ns, p9999_ns, max_ns, clock_ns } = line.metrics;
    const order = [min_ns, p50_ns, p99_ns, p999_ns, p9999_ns, max_ns];
    assert.deepEqual(
      order,
      [...order].sort((x, y) => x - y),
    );
    // A frame waits for the tick at most, then a few syncs, then for the 500 that came before it.
    assert.ok(min_ns >= 67 && max_ns < 120_000 + 5000 + 600 * 67.2);
    assert.ok(clock_ns > 0 && line.histogram!.count > 0);
    const { stdout } = measure('latency', ...ports, '--size', '64', '--seconds', '0.01', '--of', 'line');
    assert.match(stdout, /within 0\.39 % of the exact ones\. Reading the clock costs \d+ ns/);
  });

  it('what no generator reaches is told: in the remarks, on stderr, and as note', () => {
    // 400 Gbit/s: 595 Mpps of 64 bytes. A pipe is lossless.
    let pipes = 0;
    const fast = (command: string, ...args: string[]): string[] => {
      const name = `pipe:short${process.pid}-${++pipes}`;
      return [
        command,
        '--tx',
        `${name}{0`,
        '--rx',
        `${name}}0`,
        '--rate',
        '400G',
        '--size',
        '64',
        '--wait',
        'poll',
        ...args,
      ];
    };
    const offered = /the generator offered [\d.]+ [kM]pps of 595\.2 Mpps/;

    const [burst] = results(...fast('burst', '--seconds', '0.0001', '--trials', '1', '--corrected'));
    assert.equal(burst.metrics.burst_frames, Math.round(0.0001 * (4e11 / 672)));
    assert.deepEqual(
      Object.keys(burst.metrics).filter((metric) => metric.endsWith('_us')),
      [],
    );
    assert.match(burst.note ?? '', /lost nothing; the generator offered .* not at line rate/);
    const shown = measure(...fast('burst', '--seconds', '0.0001', '--trials', '1'));
    assert.match(shown.stdout, new RegExp(`^64 bytes: ${offered.source}, so the burst was not at line rate`, 'm'));
    assert.match(shown.stderr, new RegExp(`longest burst ≥ 59524 frames, ${offered.source}\n`));

    const curve = results(...fast('loss', '--seconds', '0.05', '--steps', '60%'));
    assert.match(curve[0].note ?? '', offered);
    assert.match(curve[1].note ?? '', /of 238\.1 Mpps/);
    const loss = measure(...fast('loss', '--seconds', '0.05', '--steps', '100%'));
    assert.match(loss.stdout, new RegExp(`^64 bytes at 100\\.0 % of line rate: ${offered.source}`, 'm'));
    assert.match(loss.stderr, new RegExp(`^64 bytes at 100\\.0 % of line rate: ${offered.source}, 0 % lost`));

    const latency = measure(...fast('latency', '--seconds', '0.05', '--of', 'line', '--load', '100%'));
    assert.match(latency.stdout, /100 % of the line rate, 0\.05 s a size, every frame timed\n/);
    assert.match(latency.stdout, new RegExp(`^64 bytes: ${offered.source}: the latencies are`, 'm'));
    const [timed] = results(...fast('latency', '--seconds', '0.05', '--of', 'line', '--load', '100%'));
    assert.match(timed.note ?? '', offered);

    const [found] = results(...fast('throughput', '--seconds', '0.05', '--width', '50%'));
    assert.equal(found.note, 'the generator, not what was measured, may have been the limit');
  });

  it('nothing is told where links bring every frame that is due', () => {
    const virtual = ['-i', `sim:a@${CLOCK}`, '-i', `sim:b@${CLOCK}`, '--size', '64', '--seconds', '0.02'];
    for (const command of ['loss', 'burst', 'latency', 'throughput']) {
      const lines = results(command, ...virtual);
      for (const { note } of lines) assert.doesNotMatch(note ?? '', /generator/);
    }
  });

  it('a generator falls short by more than 0.1 % of what was due', () => {
    const trial = (due: number, offered: number) => ({ due, offered, seconds: 0.1 }) as BenchTrial;
    assert.equal(shortOffer(1e6, trial(100_000, 99_900)), undefined);
    assert.equal(shortOffer(1e6, trial(100_000, 99_899)), 'the generator offered 999 kpps of 1 Mpps');
    assert.equal(shortOffer(1.488e6, trial(148_800, 7400)), 'the generator offered 74 kpps of 1.488 Mpps');
    assert.match(shortOffer(1, trial(0.1, 0)) ?? '', /offered 0 pps of 1 pps/);
  });

  it('the table of a slow link is in kpps, and has what the results have', () => {
    const slow = [
      '--size',
      '64',
      '--seconds',
      '1',
      '-i',
      'sim:a@rate=1M,clock=virtual',
      '-i',
      'sim:b@rate=1M,clock=virtual',
    ];
    const [{ metrics }] = results('loss', ...slow);
    // 1 Mbit/s ÷ (8 × 84) = 1,488.1 frames a second, both ways.
    assert.equal(metrics.offered_mpps, 0.002976);
    const { stdout } = measure('loss', ...slow);
    assert.match(stdout, /load, % of +offered +forwarded .*\n *bytes +line rate +kpps +kpps /);
    assert.match(stdout, new RegExp(`^ +64 +100\\.0 +2\\.976 +${(metrics.mpps * 1e3).toFixed(3)} +0 `, 'm'));
  });

  it('CSV has one heading and one line a result', () => {
    const { stdout } = measure(
      'loss',
      ...ports,
      '--one-way',
      '--size',
      '64',
      '--seconds',
      '0.01',
      '--steps',
      '50%',
      '--csv',
    );
    const lines = stdout.trimEnd().split('\n');
    assert.match(lines[0], /^size,load,offered_mpps,mpps,loss,/);
    assert.deepEqual(
      lines.slice(1).map((text) => text.split(',').slice(0, 2).join()),
      ['64,1', '64,0.5'],
    );
  });

  it('what was written wrong: code 2, one message, nothing on stdout, no stack', () => {
    for (const [args, message] of [
      [['throughput', '--width', '0%'], /--width: '0%': expected more than 0%/],
      [['throughput', '--seconds', '-1'], /--seconds/],
      [['throughput', '--rate', 'max'], /rate=max/],
      [['throughput', '-i', 'sim:a'], /two ports are needed, 1 given/],
      [['latency', '--of', 'lines'], /write ndr or line/],
      [['latency', '--every', '3'], /power of two/],
      [['latency', '--tx', 'pipe:x{0', '--rx', 'pipe:x}0', '--every', '8'], /all are timed; leave --every out/],
      [['--cpu', '1000'], /no thread can run on CPU 1000: .*this machine has \d+, numbered from 0/],
      [['--tx', 'xdp:a'], /--tx: .*measure throughput, latency, loss and burst have/],
      [['--json', '--rx=xdp:a'], /--rx: .*measure throughput --tx PORT --rx PORT/],
      [['loss', '--steps', '0%'], /0\.1% or more/],
      [['burst', '--bogus'], /unknown option --bogus/],
      [['burst', 'sim:a'], /not expected here/],
      [['bursts'], /no subcommand 'bursts'/],
      [['--json', '--csv'], /only one of them/],
    ] as const) {
      const { status, stdout, stderr } = measure(...args);
      assert.equal(status, 2, args.join(' '));
      // That a machine has no such CPU comes out where a thread is put on it: the heading stands there by then.
      if (args[0] !== '--cpu') assert.equal(stdout, '');
      assert.match(stderr, message);
      assert.doesNotMatch(stderr, /\n {4}at /);
    }
  });

  it('each has a help of its own, and that of measure names them all', () => {
    const { stdout: all } = measure('--help');
    for (const command of ['throughput', 'latency', 'loss', 'burst', 'matrix', 'compare', 'report']) {
      const { status, stdout } = measure(command, '--help');
      assert.equal(status, 0);
      assert.match(stdout, new RegExp(`^Usage: measure ${command} \\[options\\]`));
      assert.match(all, new RegExp(`^ +measure ${command} … +\\S`, 'm'));
    }
  });
});
