/** What is known of metrics by their names, and which one a result is about. */
import type { Histogram } from '../../stats/histogram.js';
import type { Metric, Result, ResultKind } from './result.js';

const HIGHER = { better: 'higher' } as const;
const LOWER = { better: 'lower' } as const;
const RARE = { better: 'lower', scale: 'difference' } as const;

/** Metrics by the last word of their name: `ndr_mpps` is in Mpps, `p99_ns` in ns. */
const BY_SUFFIX = new Map<string, Metric>(
  Object.entries({
    mpps: { unit: 'Mpps', ...HIGHER },
    gbps: { unit: 'Gbit/s', ...HIGHER },
    frames: { unit: 'frames' },
    ns: { unit: 'ns', ...LOWER },
    us: { unit: 'µs', ...LOWER },
    ms: { unit: 'ms', ...LOWER },
    s: { unit: 's' },
    cycles: { unit: 'cycles', ...LOWER },
    loss: { unit: '', ...RARE, matters: 0.001 },
    share: { unit: '', ...RARE, matters: 0.01 },
    retransmits: { unit: '', ...RARE, matters: 10 },
  }),
);

const BY_NAME = new Map<string, Metric>(
  Object.entries({
    mpps: { unit: 'Mpps', label: 'forwarded', ...HIGHER },
    gbps: { unit: 'Gbit/s', label: 'throughput', ...HIGHER },
    offered_mpps: { unit: 'Mpps', label: 'offered' },
    ndr_mpps: { unit: 'Mpps', label: 'NDR', ...HIGHER },
    pdr_mpps: { unit: 'Mpps', label: 'PDR', ...HIGHER },
    ndr_lower_mpps: { unit: 'Mpps', label: 'NDR lower bound' },
    ndr_upper_mpps: { unit: 'Mpps', label: 'NDR upper bound' },
    pdr_lower_mpps: { unit: 'Mpps', label: 'PDR lower bound' },
    pdr_upper_mpps: { unit: 'Mpps', label: 'PDR upper bound' },
    burst_frames: { unit: 'frames', label: 'longest burst without loss', ...HIGHER },
    frame_ns: { unit: 'ns', label: 'time per frame', ...LOWER },
    frame_cycles: { unit: 'cycles', label: 'cycles per frame', ...LOWER },
    trial_s: { unit: 's', label: 'trial-seconds spent' },
    loss: { unit: '', label: 'loss ratio', ...RARE, matters: 0.001 },
  }),
);

/** What is known of a metric: from the result's own `units`, else from its name, else from its name's last word. */
export function metricOf(name: string, units?: Record<string, Metric>): Metric & { label: string } {
  const own = units && Object.hasOwn(units, name) ? units[name] : undefined;
  const known = own ?? BY_NAME.get(name) ?? BY_SUFFIX.get(name.slice(name.lastIndexOf('_') + 1)) ?? { unit: '' };
  return { label: name.replaceAll('_', ' '), ...known };
}

/** The unit of a metric, or '' where its name says it: gbps is in Gbit/s, mpps and p99_us need no more. */
export function untoldUnit(name: string, { unit }: Metric): string {
  const last = name.slice(name.lastIndexOf('_') + 1);
  return last === unit.toLowerCase().replace('µ', 'u') ? '' : unit;
}

/** A metric's name with its unit, where the name does not say it: "gbps (Gbit/s)", "mpps", "p99_us". */
export function metricHead(name: string, metric: Metric): string {
  const unit = untoldUnit(name, metric);
  return unit === '' ? name : `${name} (${unit})`;
}

/** The metrics by which a kind of result is judged unless others are named: the first that a result has. */
const PRIMARY: Record<ResultKind, readonly string[]> = {
  forward: ['mpps', 'gbps'],
  throughput: ['ndr_mpps'],
  latency: ['p99_ns'],
  loss: ['loss'],
  burst: ['burst_frames'],
  matrix: ['mpps', 'ndr_mpps', 'gbps'],
  samples: ['mpps', 'gbps'],
};

/** What cores did meanwhile stands beside every result: it is what a result is about only where there is nothing else. */
export function isCpuShare(name: string): boolean {
  return /(^|_)cpu_(\w+_)?share$/.test(name);
}

/**
 * The one metric that a result is about when none is named: what its kind is about, else the first that can be judged,
 * else the first; a matrix's own metrics before CPU shares. Undefined when there are no metrics.
 */
export function primaryMetric(result: Result): string | undefined {
  const has = (name: string): boolean => name in result.metrics || name in (result.samples ?? {});
  const names = Object.keys(result.metrics);
  const own = names.filter((name) => !isCpuShare(name));
  const first = (some: readonly string[]): string | undefined =>
    some.find((name) => metricOf(name, result.units).better !== undefined) ?? some.at(0);
  return PRIMARY[result.kind].find(has) ?? first(own) ?? first(names);
}

/** The percentiles of a latency distribution that results have. */
export const PERCENTILES = [
  ['p50_ns', 50],
  ['p99_ns', 99],
  ['p999_ns', 99.9],
  ['p9999_ns', 99.99],
] as const;

/** The figures of a latency distribution, as result files name them; none when no frame was looked at. */
export function latencyMetrics(histogram: Histogram): Record<string, number> {
  if (histogram.count === 0) return {};
  return {
    min_ns: histogram.min,
    ...Object.fromEntries(PERCENTILES.map(([name, percent]) => [name, histogram.percentile(percent)])),
    max_ns: histogram.max,
    mean_ns: histogram.mean,
  };
}
