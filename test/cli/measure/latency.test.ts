import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Bridge, nicSide } from '../../../lib/forward/bridge.js';
import { Histogram } from '../../../lib/stats/histogram.js';
import { clockCost } from '../../../lib/measure/trial/clock-cost.js';
import { runTrial } from '../../../lib/measure/trial/trial.js';
import { openPorts } from '../../../lib/ports/open.js';
import { SimPort } from '../../../lib/ports/sim/sim-port.js';

/** One way from a to b; times in ns. */
interface Case {
  size: number;
  /** Share of 10 Gbit/s. */
  load: number;
  step: number;
  itr: number;
  txtimer: number;
  slotsB: number;
  turns: number;
  every: number;
  /** Size at which a frame takes several slots. */
  buf?: number;
}

/**
 * What each frame's latency must be, by the rules of the port names alone: nothing of the port's code is used.
 * Frame k arrives when its last bit is there; it is shown by the first rxsync at or after it (and its moderation tick),
 * goes into the tx ring of the same turn if that has room, and leaves when the wire has sent all before it.
 */
function model({ size, load, step, itr, txtimer, slotsB, turns }: Case): number[] {
  const wire = ((size + 20) * 8) / 10; // ns at 10 Gbit/s
  const gap = wire / load;
  const latencies: number[] = [];
  const departures: number[] = [];
  let shown = 0;
  let handed = 0;
  let room = slotsB - 1;
  let timerTick = 0;
  for (let turn = 0; turn < turns; turn++) {
    const rx = (2 * turn + 1) * step;
    const tx = rx + step;
    const limit = itr > 0 ? Math.floor(rx / itr) * itr : rx;
    while ((shown + 1) * gap <= limit + 1e-6) shown++;
    const batch = Math.min(shown - handed, room);
    if (txtimer > 0) {
      const tick = Math.floor(tx / txtimer) * txtimer;
      room -= batch;
      if (tick > timerTick) {
        timerTick = tick;
        // What was handed over before this turn and has left by the tick comes back.
        room = slotsB - 1 - batch - departures.filter((time) => time > tick).length;
      }
    }
    for (let k = 0; k < batch; k++) {
      const departure = Math.max(departures.at(-1) ?? 0, tx) + wire;
      departures.push(departure);
      latencies.push(departure - (handed + 1) * gap);
      handed++;
    }
  }
  // Only those count that had left when the last sync looked.
  const end = 2 * turns * step;
  return latencies.filter((_, k) => departures[k] <= end + 1e-6);
}

function exact(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(1, Math.ceil((percent / 100) * sorted.length - 1e-9)) - 1];
}

function measured({ size, load, step, itr, txtimer, slotsB, turns, every, buf = 2048 }: Case): Histogram {
  const common = `rate=10G,size=${size},clock=virtual,step=${step}ns,buf=${buf}`;
  const ports = openPorts([
    `sim:a@${common},load=${load},slots=16384${itr > 0 ? `,itr=${itr}ns` : ''}`,
    `sim:b@${common},load=0,slots=${slotsB}${txtimer > 0 ? `,txtimer=${txtimer}ns` : ''}`,
  ]);
  try {
    const [a, b] = ports;
    assert.ok(a instanceof SimPort && b instanceof SimPort);
    const latency = b.watchLatency(a, every);
    const bridge = new Bridge(nicSide(a), nicSide(b), { burst: 65_536, oneWay: true });
    for (let turn = 0; turn < turns; turn++) bridge.turn();
    assert.equal(a.stats().missed, 0, 'the case loses frames');
    assert.equal(latency.unmatched, 0);
    return latency.histogram;
  } finally {
    for (const port of ports) port.close();
  }
}

// Loads at which no frame arrives at the very moment of a sync or a tick: there, roundings would decide.
const plain: Case = {
  size: 64,
  load: 0.4703163,
  step: 1000,
  itr: 0,
  txtimer: 0,
  slotsB: 16_384,
  turns: 5000,
  every: 1,
};
const CASES: Record<string, Case> = {
  'no moderation': plain,
  'one frame in 64': { ...plain, every: 64, turns: 20_000 },
  'nearly line rate': { ...plain, load: 0.9703163 },
  'little load': { ...plain, load: 0.00300317, turns: 20_000 },
  'moderated every 50 µs': { ...plain, itr: 50_000 },
  'moderated every 124 µs, one frame in 16': { ...plain, itr: 124_000, every: 16, turns: 20_000 },
  'moderated, an odd period': { ...plain, itr: 77_777 },
  'large frames': { ...plain, size: 1518, itr: 30_000, load: 0.8903163, turns: 20_000 },
  'a slow loop': { ...plain, step: 25_000, load: 0.3003163, turns: 2000 },
  'tx slots back every 90 µs': { ...plain, load: 0.3003163, txtimer: 90_000, slotsB: 512, turns: 8000 },
  'tx slots back late, moderated too': { ...plain, load: 0.2003163, itr: 60_000, txtimer: 150_000, slotsB: 512 },
};

describe('latency against a constructed delay', () => {
  for (const [name, the] of Object.entries(CASES)) {
    it(`${name}: every percentile within the histogram's stated error`, () => {
      const histogram = measured(the);
      const sorted = model(the)
        .filter((_, k) => k % the.every === 0)
        .sort((x, y) => x - y);
      assert.equal(histogram.count, sorted.length);
      assert.ok(sorted.length >= 100);
      assert.equal(histogram.negative, 0);
      // Whole nanoseconds: a fraction is cut off, and sums in binary may fall on either side of a whole one.
      const near = (value: number, truth: number, share: number, what: string): void => {
        const error = Math.abs(value - truth);
        assert.ok(error <= truth * share + 1.001, `${what}: ${value}, not ${truth}`);
      };
      near(histogram.min, sorted[0], 0, 'min');
      near(histogram.max, sorted.at(-1)!, 0, 'max');
      for (let percent = 1; percent < 100; percent++)
        near(histogram.percentile(percent), exact(sorted, percent), Histogram.relativeError, `p${percent}`);
      for (const percent of [50, 99, 99.9, 99.99])
        near(histogram.percentile(percent), exact(sorted, percent), Histogram.relativeError, `p${percent}`);
    });
  }

  it('frames of several slots are timed as those of one', () => {
    // 1518 bytes in buffers of 512 take three slots; the ring has room enough for the model to be the same.
    const the = { ...plain, size: 1518, itr: 40_000, turns: 10_000 };
    const whole = measured(the).toJSON();
    assert.deepEqual(measured({ ...the, buf: 512 }).toJSON(), whole);
    assert.ok(whole.count > 100);
  });
});

describe('a trial with latency', () => {
  const clock = 'clock=virtual,step=1us';

  it('covers both directions, and only the trial', async () => {
    const names = [`sim:a@${clock}`, `sim:b@${clock}`] as const;
    const one = await runTrial({ names, seconds: 0.02, load: 0.4, oneWay: true, latencyEvery: 16 });
    const both = await runTrial({ names, seconds: 0.02, load: 0.4, latencyEvery: 16 });
    const count = one.latency!.histogram.count;
    assert.ok(Math.abs(count - one.directions[0].forwarded / 16) < 1);
    assert.equal(both.latency!.histogram.count, 2 * count);
    assert.equal(both.latency!.every, 16);
    assert.equal(both.latency!.unmatched, 0);
    assert.equal(await runTrial({ names, seconds: 0.001 }).then(({ latency }) => latency), undefined);
  });

  it('on the real clock no frame leaves before it came, though the ports began to count at different moments', async () => {
    const { latency } = await runTrial({
      names: ['sim:a@rate=100M', 'sim:b@rate=100M'],
      seconds: 0.2,
      warmupSeconds: 0.05,
      load: 0.5,
      latencyEvery: 4,
    });
    assert.ok(latency!.histogram.count > 0);
    assert.equal(latency!.histogram.negative, 0);
    // Sending 84 bytes at 100 Mbit/s takes 6.72 µs.
    assert.ok(latency!.histogram.min >= 6720);
  });

  it('is refused where frames have no time of arrival or no stamp', async () => {
    const trial = (options: string) =>
      runTrial({ names: [`sim:a@${clock},${options}`, `sim:b@${clock},${options}`], seconds: 0.01, latencyEvery: 64 });
    await assert.rejects(trial('rate=max'), /rate=max/);
    await assert.rejects(trial('check=off'), /check=off/);
    await assert.rejects(trial('flap=1ms/1ms'), /flap=/);
  });
});

describe('the cost of the clock', () => {
  it('is above nothing', () => {
    assert.ok(clockCost(3, 100) > 0);
  });
});
