import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { CommandLine } from '../../../lib/cli/options.js';
import { simBench, type Bench } from '../../../lib/measure/trial/bench.js';
import { bisectSteps } from '../../measure/search/bisect.js';
import { findThroughput } from '../../../lib/measure/search/throughput.js';
import {
  coreShares,
  coresText,
  cpuMetrics,
  parseCpTimes,
  parseProcStat,
  readCores,
} from '../../../lib/measure/trial/cpu.js';
import { ndrPdrGoals, runSearch } from '../../../lib/measure/search/search.js';
import { BENCH_OPTIONS, openBench } from '../../../lib/cli/measure/open-bench.js';
import { readSetup, SETUP_OPTIONS } from '../../../lib/cli/measure/setup-options.js';
import { runTrial } from '../../../lib/measure/trial/trial.js';

/** One turn of the bridge makes two syncs of each port, each a step of the virtual clock. */
const STEP_US = 20;
const SECONDS = 0.25;
const WIDTH = 0.005;

interface Device {
  what: string;
  a: string;
  b: string;
  /** Frames/s that it can forward, by construction. */
  capacity: number;
}

/**
 * A ring of S slots holds S - 1 frames. Those that arrived since one moderation tick have to fit until those of the next
 * are shown, consumed and refilled. The ports' rxsyncs fall on odd steps and the tick on an even one: shown one step
 * after the tick, refilled two after that.
 */
function moderated(slots: number, itrSteps: number): Device {
  const itr = itrSteps * STEP_US;
  return {
    what: `${slots} slots every ${itr} µs`,
    a: `slots=${slots},itr=${itr}us`,
    b: 'slots=8192',
    capacity: (slots - 1) / ((itr + 3 * STEP_US) * 1e-6),
  };
}

/** At most `budget` slots are refilled by each rxsync, one every two steps. */
function budgeted(budget: number): Device {
  return {
    what: `${budget} slots a sync`,
    a: `slots=64,budget=${budget}`,
    b: 'slots=1024',
    capacity: budget / (2 * STEP_US * 1e-6),
  };
}

/** The way out is slower than the way in. 64-byte frames take 84 bytes on the wire. */
function slowed(mbps: number, slots: number): Device {
  return {
    what: `${mbps} Mbit/s on the far side`,
    a: `slots=${slots}`,
    b: `slots=${slots},rate=${mbps}M`,
    capacity: (mbps * 1e6) / (8 * 84),
  };
}

/** Sent slots come back at the timer only: a ring's worth of frames each time, for which the rx ring has to wait. */
function reclaimed(slots: number, timerSteps: number): Device {
  const timer = timerSteps * STEP_US;
  return {
    what: `${slots} tx slots back every ${timer} µs`,
    a: `slots=${slots + 40}`,
    b: `slots=${slots},txtimer=${timer}us`,
    capacity: (slots - 1) / (timer * 1e-6),
  };
}

const DEVICES: readonly Device[] = [
  moderated(513, 200),
  moderated(700, 200),
  moderated(1025, 200),
  moderated(1025, 150),
  moderated(1500, 200),
  moderated(2049, 200),
  moderated(2049, 120),
  moderated(3000, 150),
  ...[6, 7, 9, 11, 14, 17, 20].map(budgeted),
  slowed(80, 32),
  slowed(111, 32),
  slowed(150, 32),
  slowed(237, 64),
  slowed(333, 64),
  slowed(450, 64),
  slowed(613, 128),
  reclaimed(65, 25),
  reclaimed(101, 25),
  reclaimed(129, 20),
  reclaimed(201, 30),
];

/** A bench with a link of 1 Gbit/s in front, one way, 1,488,095 frames/s at most. */
function benchOf({ a, b }: Device): Bench {
  const clock = `clock=virtual,step=${STEP_US}us`;
  const rateB = b.includes('rate=') ? '' : 'rate=1G,';
  return simBench(
    readSetup(
      new CommandLine(SETUP_OPTIONS, [
        ...['-i', `sim:a@rate=1G,${a},${clock}`, '-i', `sim:b@${rateB}${b},${clock}`],
        ...['--one-way', '--burst', '8192', '--size', '64'],
      ]),
    ),
  );
}

function within(value: number | undefined, truth: number, share: number, what: string): void {
  assert.ok(value !== undefined, `${what}: none found`);
  assert.ok(Math.abs(value - truth) <= truth * share, `${what}: ${value} is not within ${share * 100} % of ${truth}`);
}

describe('measure throughput on simulated ports of known capacity', () => {
  it('has at least 20 capacities, all different', () => {
    assert.ok(new Set(DEVICES.map(({ capacity }) => Math.round(capacity))).size >= 20);
  });

  for (const device of DEVICES) {
    it(`${device.what}: within 1 %, in fewer trial-seconds than bisection`, async () => {
      const bench = benchOf(device);
      const { search, ndr, pdr, atNdr, trials } = await findThroughput(bench, 64, {
        seconds: SECONDS,
        trials: 1,
        width: WIDTH,
      });
      assert.equal(search.complete, true);
      assert.equal(search.generatorLimited, false);
      within(ndr.lower, device.capacity, 0.01, 'NDR lower');
      within(ndr.upper, device.capacity, 0.01, 'NDR upper');
      within(pdr.lower, device.capacity / 0.995, 0.01, 'PDR lower');
      within(pdr.upper, device.capacity / 0.995, 0.01, 'PDR upper');
      within(pdr.conditionalThroughput, device.capacity, 0.01, 'PDR conditional throughput');
      for (const { lower, upper } of [ndr, pdr]) assert.ok(upper! - lower! <= upper! * WIDTH);
      assert.equal(atNdr?.lost, 0);
      for (const trial of trials) {
        assert.equal(trial.unexplained, 0);
        assert.equal(trial.duplicates + trial.reordered + trial.corrupt, 0);
      }

      let bisected = 0;
      const maxLoad = bench.maxLoad(64);
      for (const goal of ndrPdrGoals(SECONDS, WIDTH)) {
        const steps = bisectSteps(goal, maxLoad * 1e-4, maxLoad);
        const result = await runSearch(steps, async (request) => {
          const { offered, lost } = await bench.run({ size: 64, ...request });
          return { offered, lost };
        });
        within(result.lower, device.capacity / (1 - goal.lossRatio), 0.01, `bisection, ${goal.name}`);
        bisected += result.trialSeconds;
      }
      assert.ok(search.trialSeconds < bisected, `${search.trialSeconds} s, bisection ${bisected} s`);
    });
  }

  it('a device that carries line rate: both goals at the highest load, no upper bound', async () => {
    const bench = benchOf({ what: '', a: 'slots=1024', b: 'slots=1024', capacity: Infinity });
    const { ndr, pdr } = await findThroughput(bench, 64, { seconds: SECONDS, trials: 1, width: WIDTH });
    for (const { lower, upper, conditionalThroughput } of [ndr, pdr]) {
      assert.equal(lower, 1e9 / 672);
      assert.equal(upper, undefined);
      assert.equal(conditionalThroughput, lower);
    }
  });

  it('where the majority of three trials decides, each bound has three', async () => {
    const [device] = DEVICES;
    const found = await findThroughput(benchOf(device), 64, { seconds: SECONDS, trials: 3, width: WIDTH });
    within(found.ndr.lower, device.capacity, 0.01, 'NDR lower');
    const full = found.search.trials.filter(({ load, seconds }) => load === found.ndr.lower && seconds === SECONDS);
    assert.ok(full.length >= 2);
  });
});

describe('a trial on the virtual clock', () => {
  const clock = 'clock=virtual,step=10us';

  it('is as long as asked in link time and the same each time', async () => {
    const trial = () =>
      runTrial({
        names: [`sim:a@rate=100M,slots=256,itr=2ms,${clock}`, `sim:b@rate=100M,slots=256,${clock}`],
        seconds: 0.3,
        load: 0.9,
        oneWay: true,
      });
    const [one, two] = [await trial(), await trial()];
    assert.deepEqual(one.directions, two.directions);
    // The loop looks at the time every 64 turns of two steps each.
    assert.ok(one.seconds >= 0.3 && one.seconds <= 0.3 + 64 * 20e-6, String(one.seconds));
    assert.ok(one.directions[0].lost > 0);
    assert.equal(one.directions[0].unexplained, 0);
    // 90 % of 148,809 frames/s: one frame more or less at each end.
    const expected = (0.9 * 1e8 * one.seconds) / 672;
    assert.ok(Math.abs(one.directions[0].offered - expected) <= 2);
  });

  it('is refused for ports whose clocks differ', async () => {
    const trial = (a: string, b: string) => runTrial({ names: [`sim:a@${a}`, `sim:b@${b}`], seconds: 0.1 });
    await assert.rejects(trial('clock=virtual', 'clock=real'), /same clock= and step=/);
    await assert.rejects(trial('clock=virtual,step=1us', 'clock=virtual,step=2us'), /same clock= and step=/);
  });

  it('a link without a speed is refused by name', async () => {
    const line = new CommandLine(BENCH_OPTIONS, ['--rate', 'max']);
    await assert.rejects(openBench(line), /rate=max/);
  });
});

describe('CPU shares', () => {
  const first = 'cpu  9 9 9 9\ncpu0 100 10 50 1000 20 5 15 0 7 0\ncpu1 0 0 0 500 0 0 0\nintr 5\n';
  const second = 'cpu  9 9 9 9\ncpu0 150 20 70 1010 20 10 20 0 7 0\ncpu1 0 0 0 500 0 0 0\nintr 9\n';

  it('come from /proc/stat core by core; nice is user time, iowait and steal are idle', () => {
    const cores = parseProcStat(first);
    assert.deepEqual(cores.get(0), { user: 110, system: 50, irq: 5, softirq: 15, idle: 1020 });
    assert.deepEqual([...cores.keys()], [0, 1]);
  });

  it('are shares of the ticks in between; a core without any is left out', () => {
    // Core 0: 60 user, 20 system, 5 irq, 5 softirq, 10 idle.
    const shares = coreShares(parseProcStat(first), parseProcStat(second));
    assert.deepEqual(shares, [{ core: 0, user: 0.6, system: 0.2, irq: 0.05, softirq: 0.05 }]);
    assert.equal(coresText(shares), 'cpu0 60 % user, 20 % system, 5 % irq, 5 % softirq');
    assert.deepEqual(cpuMetrics([...shares, { ...shares[0], core: 1 }]), {
      cpu_user_share: 1.2,
      cpu_system_share: 0.4,
      cpu_irq_share: 0.1,
      cpu_softirq_share: 0.1,
    });
    assert.deepEqual(cpuMetrics([]), {});
  });

  it('come from kern.cp_times on FreeBSD: user, nice, system, interrupt, idle', () => {
    const cores = parseCpTimes('1 2 3 4 5 10 20 30 40 50\n');
    assert.deepEqual(cores.get(0), { user: 3, system: 3, irq: 4, softirq: 0, idle: 5 });
    assert.deepEqual(cores.get(1), { user: 30, system: 30, irq: 40, softirq: 0, idle: 50 });
    assert.equal(cores.size, 2);
  });

  it('this machine tells them', () => {
    assert.ok(readCores().size > 0);
  });
});
