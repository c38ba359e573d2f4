import { Histogram, type HistogramJson } from '../stats/histogram.js';
import { mergeSpans, type Span } from './span.js';
import type { GenReport, Received, Reflected, Sent, StreamState } from './gen-report.js';

type Numeric<T> = { [Key in keyof T]-?: T[Key] extends number ? Key : never }[keyof T];

function sum<T>(parts: readonly T[], key: Numeric<T>): number {
  return parts.reduce((total, part) => total + (part[key] as number), 0);
}

function sums<T, Key extends Numeric<T>>(parts: readonly T[], ...keys: Key[]): Record<Key, number> {
  return Object.fromEntries(keys.map((key) => [key, sum(parts, key)])) as Record<Key, number>;
}

function together(histograms: readonly HistogramJson[]): Histogram {
  const all = new Histogram();
  for (const json of histograms) all.merge(Histogram.fromJSON(json));
  return all;
}

/** The reports of a run's threads as one: counts are sums, times the longest, histograms hold what all recorded. */
export function mergeReports(reports: readonly GenReport[]): GenReport {
  const of = <T>(pick: (report: GenReport) => T | undefined): T[] => reports.flatMap((report) => pick(report) ?? []);
  const [sent, received, reflected] = [of((r) => r.sent), of((r) => r.received), of((r) => r.reflected)];
  const problem = of((report) => report.problem).at(0);
  const stats: Record<string, number> = {};
  for (const report of reports)
    for (const [name, value] of Object.entries(report.stats))
      // An extreme, such as longestGapNs, is none of a sum.
      stats[name] = name.endsWith('Ns') ? Math.max(stats[name] ?? 0, value) : (stats[name] ?? 0) + value;
  return {
    ns: Math.max(...reports.map(({ ns }) => ns)),
    ...(sent.length > 0 && { sent: mergeSent(sent) }),
    ...(received.length > 0 && { received: mergeReceived(received) }),
    ...(reflected.length > 0 && { reflected: mergeReflected(reflected) }),
    stats,
    ...sums(reports, 'userNs', 'systemNs'),
    ...(problem !== undefined && { problem }),
  };
}

function spanOf(parts: readonly { span: Span | undefined }[]): Span | undefined {
  return mergeSpans(parts.flatMap(({ span }) => span ?? []));
}

function mergeSent(parts: readonly Sent[]): Sent {
  // Every part is paced, or none; a capture is sent by one thread alone, and what is told of it goes through.
  const [first] = parts;
  const gaps = together(parts.flatMap((part) => part.gaps ?? []));
  const deviation = parts.reduce((total, part) => total + (part.meanDeviationNs ?? 0) * (part.gaps?.count ?? 0), 0);
  return {
    ...first,
    ...sums(parts, 'frames', 'bytes', 'unsent', 'refused', 'txFull', 'givenUp'),
    span: spanOf(parts),
    ...(first.targetPps !== undefined && {
      targetPps: parts.reduce((total, { targetPps = 0 }) => total + targetPps, 0),
      gaps: gaps.toJSON(),
      meanDeviationNs: deviation / Math.max(1, gaps.count),
    }),
  };
}

function mergeReflected(parts: readonly Reflected[]): Reflected {
  return { ...sums(parts, 'frames', 'bytes', 'unsent', 'refused', 'ignored'), span: spanOf(parts) };
}

function mergeReceived(parts: readonly Received[]): Received {
  const { seen, lost, twice } = mergeStreams(parts.flatMap((part) => part.seen));
  return {
    ...sums(parts, 'frames', 'bytes', 'tagged', 'reordered', 'otherClock', 'old'),
    streams: seen.length,
    lost,
    duplicates: sum(parts, 'duplicates') + twice,
    before: seen.reduce((total, { first }) => total + ((first - 1) >>> 0), 0),
    latency: together(parts.map((part) => part.latency)).toJSON(),
    seen,
    span: spanOf(parts),
  };
}

/**
 * A NIC spreads a stream's flows over its rings, and so over threads: what one of them misses, another has. Numbers wrap
 * with 32 bits, and differences of them do so too, so what comes out is right while fewer than 2^31 frames are lost, and
 * no thread has been without the stream for 2^32 frames.
 */
function mergeStreams(states: readonly StreamState[]): { seen: StreamState[]; lost: number; twice: number } {
  const streams = new Map<number, StreamState[]>();
  for (const state of states) streams.set(state.stream, [...(streams.get(state.stream) ?? []), state]);
  let twice = 0;
  const seen = [...streams.values()].map((parts) => {
    const [one] = parts;
    if (parts.length === 1) return one;
    const { stream } = one;
    const first = Math.min(...parts.map((part) => part.first >>> 0));
    const span = Math.max(...parts.map(({ next }) => (next - first) >>> 0));
    const arrived = parts.reduce((total, part) => (total + part.next - part.first - part.lost) | 0, 0);
    const lost = (span - arrived) | 0;
    twice += Math.max(0, -lost);
    return { stream, first: first | 0, next: (first + span) | 0, lost: Math.max(0, lost) };
  });
  return { seen, lost: sum(seen, 'lost'), twice };
}
