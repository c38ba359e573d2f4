import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CommandLine } from '../../../lib/cli/options.js';
import { COUNTERS } from '../../../lib/forward/counters.js';
import { forwarder } from '../../support/forwarder.js';
import { findThroughput } from '../../../lib/measure/search/throughput.js';
import type { Bench } from '../../../lib/measure/trial/bench.js';
import { BENCH_OPTIONS, openBench } from '../../../lib/cli/measure/open-bench.js';
import type { Cell } from '../../../lib/measure/results/result.js';
import { openPorts } from '../../../lib/ports/open.js';

let pipes = 0;
const pipe = (): string => `pipe:bench${process.pid}-${++pipes}`;

/** Sleeping between frames: these tests are about counts, not speed. */
const open = (...args: string[]) =>
  openBench(new CommandLine(BENCH_OPTIONS, [...args, '--wait', 'poll', '--rate', '10M']));

/** Forwards one way between two pipe ends in this thread and takes every `nth` frame away, until told to stop. */
function lossyDevice(name: string, nth: number): { taken: () => number; stop: () => void } {
  const ports = openPorts([`${name}}0`, `${name}}1`]);
  const [from, to] = ports;
  const [rx] = from.rx;
  const forward = forwarder(rx, to.tx[0], new Float64Array(COUNTERS), false);
  let [seen, taken, stopped] = [0, 0, false];
  const turn = (): void => {
    if (stopped) {
      for (const port of ports) port.close();
      return;
    }
    from.rxsync();
    while (rx.space > 0 && to.tx[0].space > 0) {
      seen++;
      if (seen % nth === 0) {
        rx.advance(1);
        taken++;
      } else forward(1);
    }
    to.txsync();
    setImmediate(turn);
  };
  turn();
  return {
    taken: () => taken,
    stop: () => {
      stopped = true;
    },
  };
}

describe('a generator and a sink with ports of their own', () => {
  it('count every frame through a bridge of this process; trials do not mix', async () => {
    const name = pipe();
    const { bench } = await open('--tx', `${name}{0`, '--rx', `${name}{1`, '-i', `${name}}0`, '-i', `${name}}1`);
    try {
      assert.equal(bench.maxLoad(64), 1e7 / 672);
      for (const frames of [500, 1, 333]) {
        const trial = await bench.run({ size: 64, load: 2000, seconds: frames / 2000, frames });
        assert.equal(trial.offered, frames);
        assert.equal(trial.forwarded, frames);
        assert.equal(trial.lost, 0);
        assert.equal(trial.duplicates + trial.reordered + trial.unexplained, 0);
        assert.equal(trial.latency?.histogram.count, frames);
        assert.ok(trial.threadNs !== undefined && trial.threadNs >= 0);
      }
      // Never more than asked for; fewer where the machine held the generator up.
      const { offered, lost } = await bench.run({ size: 128, load: 1000, seconds: 0.2 });
      assert.ok(offered >= 1 && offered <= 200 && lost === 0);
      // Frames that are no whole number of nanoseconds apart, and far enough for the generator to sleep in between.
      const slow = await bench.run({ size: 64, load: 1234.5, seconds: 0.1, frames: 50 });
      assert.deepEqual([slow.offered, slow.lost], [50, 0]);
    } finally {
      await bench.close();
    }
  });

  it('tell results apart by what is not at its default: speed of the link, copies, how it waits', async () => {
    const name = pipe();
    const ports = [`${name}{0`, `${name}{1`, `${name}}0`, `${name}}1`];
    const [tx, rx, a, b] = ports;
    const cellOf = async (...args: string[]): Promise<Cell> => {
      const ends = ['--tx', tx, '--rx', rx, '-i', a, '-i', b];
      const { bench } = await openBench(new CommandLine(BENCH_OPTIONS, [...ends, ...args]));
      await bench.close();
      return bench.cell(64);
    };
    const usual = { size: 64, tx, rx, a, b, burst: 1024 };
    assert.deepEqual(await cellOf('--rate', '10000M'), usual);
    const poll = ['--wait', 'poll'];
    assert.deepEqual(await cellOf(...poll, '--rate', '1G'), { ...usual, wait: 'poll', rate: '1G' });
    assert.deepEqual(await cellOf(...poll, '--copy', '--one-way'), {
      ...usual,
      wait: 'poll',
      copy: true,
      oneWay: true,
    });
  });

  it('tell what a device between them loses, the last frame of all included', async () => {
    const name = pipe();
    const device = lossyDevice(name, 10);
    let bench: Bench | undefined;
    try {
      ({ bench } = await open('--tx', `${name}{0`, '--rx', `${name}{1`));
      // One frame went first, to see that the device forwards.
      const trial = await bench.run({ size: 64, load: 2000, seconds: 0.2, frames: 399 });
      assert.equal(trial.offered, 399);
      assert.equal(trial.lost, 40);
      assert.equal(device.taken(), 40);
      assert.equal(trial.threadNs, undefined);
    } finally {
      await bench?.close();
      device.stop();
    }
  });

  it('a trial that fails lets the sink go', async () => {
    const name = pipe();
    const { bench } = await open('--tx', `${name}{0`, '--rx', `${name}}0`);
    await assert.rejects(bench.run({ size: 4_000_000, load: 1, seconds: 0.1 }), /too large for UDP/);
    await bench.close();
  });

  it('a device that forwards nothing is told at once, and everything is let go', async () => {
    const name = pipe();
    const ports = ['--tx', `${name}{0`, '--rx', `${name}{1`];
    for (let again = 0; again < 2; again++)
      await assert.rejects(open(...ports), {
        name: 'PortError',
        message: new RegExp(`none of the first 5 frames sent at ${name}{0 came to ${name}{1`),
      });
    // They wait in the pipe for whoever opens its other end.
    const [far] = openPorts([`${name}}0`]);
    far.rxsync();
    assert.equal(far.rx[0].space, 10);
    far.rx[0].advance(10);
    far.close();
  });

  it('trials too short for a link to carry a frame are refused', async () => {
    const name = pipe();
    const { bench } = await open('--tx', `${name}{0`, '--rx', `${name}}0`);
    try {
      // 1,518 bytes at 10 Mbit/s: 813 frames a second.
      await assert.rejects(findThroughput(bench, 1518, { seconds: 0.001, trials: 1, width: 0.1 }), {
        name: 'UsageError',
        message: /1518 bytes: in 0\.001 s.*larger --seconds/,
      });
    } finally {
      await bench.close();
    }
  });

  it('wrong ports are refused by name', async () => {
    await assert.rejects(open('--tx', 'pipe:x{0'), /--tx and --rx go together/);
    await assert.rejects(open('--tx', 'pipe:x{0', '--rx', 'pipe:x}0', '-i', 'sim:a'), /two or none/);
    await assert.rejects(open('--tx', 'pipe:x{0', '--rx', 'bogus:x'), /unknown driver 'bogus'/);
  });

  it('one port for two ends is refused before it is opened', async () => {
    const device = ['-i', 'pipe:x}0', '-i', 'xdp:c-1:3@netns=n'];
    for (const [tx, rx, message] of [
      ['pipe:x{0', 'pipe:x{0', /--tx pipe:x\{0 and --rx pipe:x\{0 are the same port/],
      ['xdp:a', 'xdp:a-2@slots=512', /--tx xdp:a and --rx xdp:a-2@slots=512 are the same port/],
      ['pipe:x}0', 'xdp:a', /--tx pipe:x\}0 and -i pipe:x\}0 are/],
      ['xdp:a', 'xdp:c-3@netns=n', /--rx xdp:c-3@netns=n and -i xdp:c-1:3@netns=n are/],
    ] as const)
      await assert.rejects(open('--tx', tx, '--rx', rx, ...device), { name: 'UsageError', message });
    // Other queues, or an interface of that name elsewhere, are other ports: these are opened, and do not exist.
    for (const [tx, rx] of [
      ['xdp:nosuch-0', 'xdp:nosuch-1'],
      ['xdp:nosuch', 'xdp:nosuch@netns=nosuch'],
    ])
      await assert.rejects(open('--tx', tx, '--rx', rx), (error: Error) => !/same port/.test(error.message));
  });
});
