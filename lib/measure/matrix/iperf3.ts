/** The report of `iperf3 --json` (written against iperf 3.12; older ones lack some fields). */
import { type Measured, ReadingError } from './measured.js';

interface Sum {
  seconds?: number;
  bits_per_second?: number;
  retransmits?: number;
  jitter_ms?: number;
  lost_packets?: number;
  packets?: number;
  omitted?: boolean;
}

interface Interval {
  sum?: Sum;
  sum_bidir_reverse?: Sum;
}

/** What iperf3 writes; nothing of it is certain, for anything can be read. */
interface Report {
  error?: unknown;
  intervals?: unknown;
  end?: {
    sum?: Sum;
    sum_sent?: Sum;
    sum_received?: Sum;
    sum_bidir_reverse?: Sum;
    sum_received_bidir_reverse?: Sum;
    cpu_utilization_percent?: Partial<Record<`${'host' | 'remote'}_${'total' | 'user' | 'system'}`, number>>;
  };
}

/** An interval shorter than this share of the first is what was left over at the end. */
const STUB = 0.5;

function parse(stdout: string): Report {
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    throw new ReadingError('printed no JSON: give iperf3 the option --json');
  }
  if (typeof value !== 'object' || value === null) throw new ReadingError('printed no report of iperf3');
  return value;
}

function textOf(error: unknown): string {
  return typeof error === 'string' ? error : JSON.stringify(error);
}

/** The error that a report tells, where it is one. iperf3 then also exits with 1. */
export function iperf3Error(stdout: string): string | undefined {
  try {
    const { error } = parse(stdout);
    return error === undefined ? undefined : textOf(error);
  } catch {
    return undefined;
  }
}

function samplesOf(intervals: readonly (Sum | undefined)[]): [number[], number] | undefined {
  const whole = intervals.filter((sum): sum is Sum & { bits_per_second: number; seconds: number } => {
    return Number.isFinite(sum?.bits_per_second) && Number(sum?.seconds) > 0 && sum?.omitted !== true;
  });
  if (whole.length === 0) return undefined;
  const [{ seconds }] = whole;
  const kept = whole.filter((sum) => sum.seconds >= STUB * seconds);
  return [kept.map((sum) => sum.bits_per_second / 1e9), Math.round(seconds * 1000) / 1000 || seconds];
}

/**
 * Gbit/s that arrived, retransmits (TCP), loss and jitter (UDP), CPU of both hosts, and Gbit/s of each interval. With --bidir
 * the way back is in metrics that begin with `reverse_`. CPU is that of iperf3 itself on this host and on the remote one, in cores: 1 is
 * one core busy.
 * @throws ReadingError when iperf3 reports an error or this is no report of iperf3
 */
export function readIperf3(stdout: string): Measured {
  const report = parse(stdout);
  if (report.error !== undefined) throw new ReadingError(`iperf3: ${textOf(report.error)}`);
  const { end } = report;
  const intervals = Array.isArray(report.intervals) ? (report.intervals as (Interval | null)[]) : [];
  const metrics: Record<string, number> = {};
  const put = (name: string, value: number | undefined, scale = 1): void => {
    if (value !== undefined && Number.isFinite(value * scale) && typeof value === 'number')
      metrics[name] = value * scale;
  };
  const way = (prefix: string, received: Sum | undefined, udp: Sum | undefined): void => {
    const loss = udp?.packets === undefined ? undefined : (udp.lost_packets ?? 0) / Math.max(udp.packets, 1);
    // A report without what arrived has only the rate of the sender, lost datagrams included.
    const arrived = received?.bits_per_second ?? (udp?.bits_per_second ?? NaN) * (1 - (loss ?? 0));
    put(`${prefix}gbps`, arrived, 1e-9);
    put(`${prefix}loss`, loss);
    put(`${prefix}jitter_ms`, udp?.jitter_ms);
  };
  way('', end?.sum_received, end?.sum);
  if (!('gbps' in metrics)) throw new ReadingError('no rate in the report of iperf3: was it ended early?');
  put('sent_gbps', end?.sum_sent?.bits_per_second, 1e-9);
  put('retransmits', end?.sum_sent?.retransmits);
  way('reverse_', end?.sum_received_bidir_reverse, end?.sum_bidir_reverse);
  const cpu = end?.cpu_utilization_percent ?? {};
  for (const side of ['host', 'remote'] as const) {
    put(`${side}_cpu_share`, cpu[`${side}_total`], 0.01);
    put(`${side}_cpu_user_share`, cpu[`${side}_user`], 0.01);
    put(`${side}_cpu_system_share`, cpu[`${side}_system`], 0.01);
  }
  const forth = samplesOf(intervals.map((interval) => interval?.sum));
  const back = samplesOf(intervals.map((interval) => interval?.sum_bidir_reverse));
  return {
    metrics,
    ...(forth && { samples: { gbps: forth[0], ...(back && { reverse_gbps: back[0] }) }, sample_s: forth[1] }),
  };
}
