import { Histogram } from '../../lib/stats/histogram.js';
import type { Result } from '../../lib/measure/results/result.js';
import { lineRate } from '../../lib/text/units.js';
import { normalStream } from './random.js';

const SURROUNDINGS = {
  host: 'lab-7',
  system: 'Linux',
  kernel: '6.1.0-18-amd64',
  arch: 'x64',
  cpu: 'AMD EPYC 7443P 24-Core Processor',
  cores: 24,
  governor: 'performance',
  node: 'v20.20.2',
  software: 'netmap-bridge 0.1.0',
  interfaces: {
    ix0: {
      driver: 'ixgbe',
      gbps: 10,
      mtu: 1500,
      rings: { rx: 2048, tx: 2048 },
      offloads: { tso: false, gro: false, rx: false },
    },
    ix1: { driver: 'ixgbe', gbps: 10, mtu: 1500, rings: { rx: 2048, tx: 2048 }, moderation: { 'rx-usecs': 40 } },
  },
};

/** One result of every kind, several of most, made from a seed: what a report must be able to show. `scale` moves all speeds. */
export function demoResults(seed: number, scale = 1): Result[] {
  const normal = normalStream(seed);
  const results: Result[] = [];
  const add = (result: Omit<Result, 'v' | 'time' | 'surroundings' | 'link_gbps'>): void => {
    const time = new Date(Date.UTC(2026, 0, 31, 12, 0, results.length * 7)).toISOString();
    results.push({ v: 1, ...result, link_gbps: 10, surroundings: SURROUNDINGS, time });
  };
  const noisy = (value: number, share: number): number =>
    Number((value * Math.exp(-share * Math.abs(normal()))).toPrecision(6));

  for (const size of [64, 128, 256, 512, 1024, 1280, 1518]) {
    const line = lineRate(10e9, size) / 1e6;
    for (const slots of [1024, 2048]) {
      for (let repeat = 0; repeat < 8; repeat++) {
        const mpps = noisy(Math.min(line, slots === 1024 ? 7.2 * scale : 11.4 * scale), 0.01);
        add({
          kind: 'forward',
          cell: { size, slots },
          repeat,
          metrics: { mpps, loss: Number((1 - mpps / line).toFixed(5)) },
        });
      }
    }
    const ndr = Math.min(line, 9.1 * scale);
    const pdr = Math.min(line, ndr * 1.05);
    add({
      kind: 'throughput',
      cell: { size, slots: 2048 },
      repeat: 0,
      metrics: {
        ndr_mpps: ndr,
        ndr_lower_mpps: ndr * 0.9975,
        ndr_upper_mpps: ndr * 1.0025,
        pdr_mpps: pdr,
        trial_s: 75,
      },
    });
    add({
      kind: 'burst',
      cell: { size },
      repeat: 0,
      metrics: { burst_frames: Math.round(2048 / (1 - 0.6 * Math.min(1, 9.1 / line))) },
    });
  }
  for (const load of [0.5, 0.9]) {
    const histogram = new Histogram();
    for (let i = 0; i < 200_000; i++)
      histogram.record(5000 + 3000 * load * Math.exp((0.4 + load) * normal()) + (i % 5000 === 0 ? 250_000 : 0));
    const metrics = { p50_ns: histogram.percentile(50), p99_ns: histogram.percentile(99), clock_ns: 32 };
    add({ kind: 'latency', cell: { size: 64, load }, repeat: 0, metrics, histogram: histogram.toJSON() });
  }
  for (const slots of [1024, 2048]) {
    for (let step = 1; step <= 10; step++) {
      const offered = (14.8809 * step) / 10;
      const loss = Math.max(0, 1 - (slots === 1024 ? 7.2 : 11.4) / offered);
      const metrics = { offered_mpps: offered, mpps: offered * (1 - loss), loss: step === 4 ? 0.00002 : loss };
      add({ kind: 'loss', cell: { size: 64, slots, load: step / 10 }, repeat: 0, metrics });
    }
  }
  for (const burst of [16, 64, 256, 1024]) {
    for (const wait of ['poll', 'busy']) {
      for (const itr of [40, 62, 124]) {
        for (let repeat = 0; repeat < 8; repeat++) {
          const mpps = noisy(
            (scale * (14.5 - itr / 20) * burst) / (burst + (wait === 'poll' ? 30 : 10)),
            wait === 'poll' && burst === 16 ? 0.6 : 0.02,
          );
          add({
            kind: 'matrix',
            cell: { burst, wait, itr },
            repeat,
            metrics: { mpps, frame_ns: Number((1000 / mpps).toPrecision(4)) },
          });
        }
      }
    }
  }
  for (const lro of ['on', 'off']) {
    const gbps = Array.from({ length: 20 }, () => noisy(lro === 'on' ? 17 : 9.4, 0.04));
    const metrics = { gbps: gbps.reduce((a, b) => a + b) / 20 };
    add({ kind: 'samples', cell: { direction: 'receive', lro }, repeat: 0, metrics, samples: { gbps }, sample_s: 1 });
  }
  return results;
}
