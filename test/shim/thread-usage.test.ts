// What a thread has cost: CPU time from the system, cycles from a counter where one can be read.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { costMetrics, type BenchTrial } from '../../lib/measure/trial/bench.js';
import { native, now } from '../../lib/shim/native.js';
import { ThreadUsage } from '../../lib/shim/thread-usage.js';

/** PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK of linux/perf_event.h: CPU time in ns, which every Linux can count. */
const TASK_CLOCK = { type: 1, config: 1 };

function spin(ns: number): void {
  for (const end = now() + ns; now() < end;);
}

/** Why no counter can be opened here, or false. */
function withoutCounters(): string | false {
  try {
    native.perfClose(native.perfOpen(TASK_CLOCK.type, TASK_CLOCK.config));
    return false;
  } catch (error) {
    return `no counters here: ${(error as Error).message}`;
  }
}

describe('thread usage', () => {
  it('the counter counts this thread, as getrusage does', { skip: withoutCounters() }, () => {
    const usage = new ThreadUsage(TASK_CLOCK);
    spin(50e6);
    usage.read();
    const time = usage.userNs + usage.systemNs;
    assert.ok(time > 0);
    assert.ok(Math.abs(usage.cycles - time) < 0.2 * time + 2e6, `${usage.cycles} and ${time} ns`);
    const before = usage.cycles;
    spin(1e6);
    usage.read();
    assert.ok(usage.cycles > before);
    usage.close();
    usage.close();
    const last = usage.cycles;
    usage.read();
    assert.equal(usage.cycles, last);
  });

  it('another thread’s work is not in it', { skip: withoutCounters() }, async () => {
    const usage = new ThreadUsage(TASK_CLOCK);
    const worker = new Worker('for (const end = Date.now() + 300; Date.now() < end;);', { eval: true });
    await new Promise((resolve) => worker.once('exit', resolve));
    usage.read();
    assert.ok(Math.abs(usage.cycles - usage.userNs - usage.systemNs) < 50e6, `${usage.cycles}, ${usage.userNs}`);
    usage.close();
  });

  it('cycles: a count that grows, or none', () => {
    const usage = new ThreadUsage();
    const before = usage.cycles;
    spin(1e6);
    usage.read();
    assert.ok(Number.isNaN(usage.cycles) || usage.cycles > before, `${usage.cycles}`);
    usage.close();
  });

  it('a counter that does not exist is none', () => {
    const usage = new ThreadUsage({ type: 0, config: 0xffff });
    assert.ok(Number.isNaN(usage.cycles));
    usage.close();
  });

  it('the shim refuses a counter that was closed', { skip: withoutCounters() }, () => {
    const counter = native.perfOpen(TASK_CLOCK.type, TASK_CLOCK.config);
    native.perfClose(counter);
    assert.throws(() => native.perfRead(counter), { code: 'EBADF' });
    assert.throws(() => native.perfOpen(-1, 0), { code: 'EINVAL' });
  });

  it('a frame’s cost: of a thread that spins, what it spent in turns that moved frames', () => {
    const trial = { threadNs: 1000, threadCycles: 3000, busyNs: 500, forwarded: 100 } as BenchTrial;
    assert.deepEqual(costMetrics(trial), { frame_ns: 5, frame_cycles: 15 });
    const { threadCycles, ...rest } = trial;
    assert.equal(threadCycles, 3000);
    assert.deepEqual(costMetrics(rest), { frame_ns: 5 });
    assert.deepEqual(costMetrics({ ...trial, forwarded: 0 }), {});
    assert.deepEqual(costMetrics(undefined), {});
  });
});
