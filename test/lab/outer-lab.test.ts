// measure --tx --rx on real interfaces: generator —veth— device —veth— sink, where the device is the kernel's bridge, our
// own in a process of its own, and the kernel's bridge behind a rate limit that is known by construction.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { CommandLine } from '../../lib/cli/options.js';
import { BENCH_OPTIONS, openBench } from '../../lib/cli/measure/open-bench.js';
import { readResults } from '../../lib/measure/results/results.js';
import { Lab, skipWithoutLab, type Namespace } from './lab.js';
import { collect, says } from './traffic.js';

const tool = (name: string): string => fileURLToPath(new URL(`../../tools/${name}.js`, import.meta.url));

/** Link speed: the loads below are shares of it. 14,881 frames of 64 bytes a second. */
const RATE = '10M';

describe('measure at a generator and a sink on interfaces', { skip: skipWithoutLab('tc') }, () => {
  let lab: Lab;
  let ends: Namespace;
  let device: Namespace;
  let ports: string[];
  let folder: string;

  before(() => {
    lab = new Lab();
    [ends, device] = [lab.namespace('ends'), lab.namespace('dut')];
    wire();
    ports = ['--tx', `xdp:g0@netns=${ends.name}`, '--rx', `xdp:s0@netns=${ends.name}`];
    folder = mkdtempSync(join(tmpdir(), 'outer-'));
  });
  after(() => {
    lab.close();
    rmSync(folder, { recursive: true });
  });

  function wire(): void {
    lab.veth(ends, { name: 'g0' }, device, { name: 'd0' });
    lab.veth(ends, { name: 's0' }, device, { name: 'd1' });
  }

  function kernelBridge(): void {
    device.ip('link', 'add', 'br0', 'type', 'bridge');
    for (const link of ['d0', 'd1']) device.ip('link', 'set', link, 'master', 'br0');
    device.ip('link', 'set', 'br0', 'up');
  }

  function noKernelBridge(): void {
    device.ip('link', 'del', 'br0');
  }

  const open = (...more: string[]) =>
    openBench(new CommandLine(BENCH_OPTIONS, [...ports, '--wait', 'poll', '--rate', RATE, ...more]));

  async function measure(...args: string[]) {
    const { ended } = collect(
      spawn(process.execPath, [tool('measure'), ...args, ...ports, '--wait', 'poll', '--rate', RATE], {
        stdio: ['ignore', 'pipe', 'pipe'],
      }),
    );
    return ended;
  }

  /** Frames that an interface sent and received, by the kernel's count. */
  function counted(ns: Namespace, link: string): { sent: number; received: number } {
    const [{ stats64 }] = JSON.parse(ns.ip('-j', '-s', 'link', 'show', link)) as [
      { stats64: Record<'rx' | 'tx', { packets: number }> },
    ];
    return { sent: stats64.tx.packets, received: stats64.rx.packets };
  }

  async function exactCounts(more: string[] = []): Promise<number> {
    const { bench } = await open(...more);
    let frames = 0;
    try {
      for (const [size, burst] of [
        [64, 1000],
        [1518, 100],
        [64, 1],
      ]) {
        const before = [counted(ends, 'g0').sent, counted(device, 'd0').received];
        // Fewer than a ring has slots, so that nothing is lost even where a thread is not run for a while.
        const trial = await bench.run({ size, load: 2000, seconds: 1, frames: burst });
        assert.deepEqual([trial.offered, trial.forwarded, trial.lost], [burst, burst, 0]);
        assert.deepEqual([trial.duplicates, trial.reordered, trial.unexplained], [0, 0, 0]);
        assert.equal(trial.latency?.histogram.count, burst);
        assert.ok(trial.latency.histogram.min > 0);
        // The kernel counted the same.
        assert.deepEqual(
          [counted(ends, 'g0').sent - before[0], counted(device, 'd0').received - before[1]],
          [burst, burst],
        );
        frames += burst;
      }
    } finally {
      await bench.close();
    }
    assert.deepEqual([ends.xdpPrograms('g0'), ends.xdpPrograms('s0')], [[], []]);
    return frames;
  }

  it('count every frame through the kernel’s bridge', async () => {
    kernelBridge();
    try {
      await exactCounts();
    } finally {
      noKernelBridge();
    }
  });

  it('count every frame through a bridge of the same process', async () => {
    await exactCounts(['-i', `xdp:d0@netns=${device.name}`, '-i', `xdp:d1@netns=${device.name}`]);
  });

  it('count every frame through our bridge in a process of its own, which counts the same', async () => {
    const names = ['d0', 'd1'].flatMap((link) => ['-i', `xdp:${link}@netns=${device.name}`]);
    const bridge = spawn(process.execPath, [tool('bridge'), ...names, '--wait', 'poll', '--json'], {
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    try {
      const { ended } = collect(bridge);
      await says(bridge, /"type":"open"/);
      // Stopped, it forwards nothing.
      bridge.kill('SIGSTOP');
      const { status, stderr } = await measure('throughput', '--size', '64');
      assert.equal(status, 1);
      assert.match(stderr, /none of the first 5 frames sent at xdp:g0@netns=\S+ came to xdp:s0@netns=\S+; see that/);
      // The five that waited go on their way now, before all others.
      bridge.kill('SIGCONT');
      const frames = 5 + 1 + (await exactCounts());
      bridge.kill('SIGTERM');
      const { stdout } = await ended;
      const summary = JSON.parse(stdout.trim().split('\n').at(-1)!) as { directions: { forwarded: number }[] };
      assert.equal(summary.directions[0].forwarded, frames);
    } finally {
      bridge.kill('SIGKILL');
    }
  });

  it('find the capacity of a token bucket, within what its burst and its queue let pass', async () => {
    const [frame, seconds] = [60, 1];
    const [perSecond, burst, queue] = [3000, 6000, 12_000];
    kernelBridge();
    try {
      const bits = perSecond * frame * 8;
      device.run('tc', ...'qdisc add dev d1 root tbf rate'.split(' '), `${bits}bit`, 'burst', `${burst}b`, 'limit', `${queue}b`); // prettier-ignore
      const file = join(folder, 'tbf.jsonl');
      const found = await measure('throughput', '--size', '64', '--seconds', String(seconds), '--trials', '3', '--width', '5%', '--out', file); // prettier-ignore
      assert.equal(found.status, 0, found.stderr);
      const { lines, notices } = readResults(file);
      assert.deepEqual([lines.length, notices], [1, []]);
      const { kind, cell, metrics } = lines[0].result;
      assert.equal(kind, 'throughput');
      assert.deepEqual(cell, { size: 64, tx: ports[1], rx: ports[3], rate: RATE, wait: 'poll' });
      // What a trial of that length can let pass without loss. Found by one-sided errors only: a machine that holds the
      // generator or the sink up makes the figure lower, never higher.
      const capacity = (perSecond + (burst + queue) / frame / seconds) / 1e6;
      assert.ok(metrics.ndr_lower_mpps <= capacity, `${metrics.ndr_lower_mpps} Mpps are more than ${capacity}`);
      assert.ok(
        metrics.ndr_lower_mpps >= 0.85 * capacity,
        `${metrics.ndr_lower_mpps} Mpps are less than 85 % of ${capacity}`,
      );
      assert.ok(metrics.ndr_upper_mpps - metrics.ndr_lower_mpps <= 0.05 * metrics.ndr_upper_mpps);
    } finally {
      noKernelBridge();
    }
  });

  it('a link that is down is an error: nothing could be measured', async () => {
    device.ip('link', 'set', 'd1', 'down');
    const { status, stderr } = await measure('throughput');
    assert.equal(status, 1);
    assert.match(stderr, /xdp:s0@netns=\S+: the link did not come up within 4 s/);
    device.ip('link', 'set', 'd1', 'up');
  });

  // The two ends of a pair are deleted together: which of them is named is chance.
  for (const [what, remove, reason] of [
    ['the generator’s interface deleted', () => ends.ip('link', 'del', 'g0'), /interface (g0|d0) is gone/],
    ['the sink’s interface deleted', () => ends.ip('link', 'del', 's0'), /interface (s0|d1) is gone/],
    [
      'the bridge’s interface moved away',
      () => device.ip('link', 'set', 'd0', 'netns', ends.name),
      /interface d0 is gone/,
    ],
  ] as const)
    it(`${what} in the middle of a trial ends it with the reason`, async () => {
      const { bench } = await open('-i', `xdp:d0@netns=${device.name}`, '-i', `xdp:d1@netns=${device.name}`);
      try {
        const { sent } = counted(ends, 'g0');
        const trial = assert.rejects(bench.run({ size: 64, load: 100, seconds: 3600 }), reason);
        while (counted(ends, 'g0').sent < sent + 3) await sleep(10);
        remove();
        await trial;
      } finally {
        await bench.close();
        for (const link of ['g0', 's0']) if (ends.ip('link').includes(`${link}@`)) ends.ip('link', 'del', link);
        wire();
      }
    });
});
