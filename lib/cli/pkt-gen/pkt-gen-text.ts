/** What `pkt-gen` prints. */
import type { Flow } from '../../gen/headers.js';
import type { Endpoint } from '../../gen/range.js';
import type { GenReport } from '../../gen/gen-report.js';
import type { Span } from '../../gen/span.js';
import type { GenOpened, GenSettings } from '../../gen/job.js';
import { Histogram, type HistogramJson } from '../../stats/histogram.js';
import { FCS_BYTES, formatFrameRate, formatRate, formatTime, WIRE_OVERHEAD_BYTES } from '../../text/units.js';
import { count, portStatsText, portText } from '../port-text.js';

/** What flowed between two reports. */
interface GenRates {
  /** Sent, received or sent back, whichever the mode is about. */
  frames: number;
  /** Without FCS. */
  bytes: number;
  pps: number;
  /** With 24 bytes a frame more: FCS 4, preamble 8, gap 12. */
  wireBitsPerSecond: number;
}

/** What flowed one way: frames and their bytes without FCS. */
interface Amount {
  frames: number;
  bytes: number;
}

function ratesOf({ frames, bytes }: Amount, seconds: number): Pick<GenRates, 'pps' | 'wireBitsPerSecond'> {
  if (seconds <= 0) return { pps: 0, wireBitsPerSecond: 0 };
  const bits = 8 * (bytes + frames * (FCS_BYTES + WIRE_OVERHEAD_BYTES));
  return { pps: frames / seconds, wireBitsPerSecond: bits / seconds };
}

/** Sent and received, what a mode has of them, between two reports. */
export function ratesBetween(
  before: GenReport | undefined,
  after: GenReport,
): Record<'sent' | 'received', GenRates | undefined> {
  const seconds = (after.ns - (before?.ns ?? 0)) / 1e9;
  const rates = (of: (report: GenReport) => Amount | undefined): GenRates | undefined => {
    const now = of(after);
    if (now === undefined) return undefined;
    const then = (before && of(before)) ?? { frames: 0, bytes: 0 };
    const amount = { frames: now.frames - then.frames, bytes: now.bytes - then.bytes };
    return { ...amount, ...ratesOf(amount, seconds) };
  };
  return { sent: rates((report) => report.sent ?? report.reflected), received: rates((report) => report.received) };
}

/**
 * Sent and received in a whole run, at the rate at which frames flowed: from the first to the latest, so that the time
 * before somebody sent, or after, is not in it. Of a single batch that is the run's time.
 */
export function ratesOfRun(report: GenReport): Record<'sent' | 'received', GenRates | undefined> {
  const rates = (of: (Amount & { span: Span | undefined }) | undefined): GenRates | undefined => {
    if (of === undefined) return undefined;
    const { frames, bytes, span } = of;
    const later = frames - (span?.firstFrames ?? 0);
    const ns = span === undefined ? 0 : span.latestNs - span.firstNs;
    const flowed = ns > 0 && later > 0;
    const amount = flowed ? { frames: later, bytes: (bytes * later) / frames } : { frames, bytes };
    return { frames, bytes, ...ratesOf(amount, (flowed ? ns : report.ns) / 1e9) };
  };
  return { sent: rates(report.sent ?? report.reflected), received: rates(report.received) };
}

/** Percentiles of a histogram, ns. */
interface Times {
  count: number;
  minNs: number;
  meanNs: number;
  p50Ns: number;
  p99Ns: number;
  p999Ns: number;
  p9999Ns: number;
  maxNs: number;
}

/** Undefined where nothing was recorded. */
export function timesOf(json: HistogramJson | undefined): Times | undefined {
  if (json === undefined || json.count === 0) return undefined;
  const histogram = Histogram.fromJSON(json);
  return {
    count: histogram.count,
    minNs: histogram.min,
    meanNs: Math.round(histogram.mean),
    p50Ns: histogram.percentile(50),
    p99Ns: histogram.percentile(99),
    p999Ns: histogram.percentile(99.9),
    p9999Ns: histogram.percentile(99.99),
    maxNs: histogram.max,
  };
}

/** How numbers are written: for people, or raw. */
export class Numbers {
  /** @param timed whether frames flow by the machine's clock, so that there are rates */
  constructor(
    readonly raw: boolean,
    readonly timed: boolean,
  ) {}

  count(n: number): string {
    return this.raw ? String(n) : count(n);
  }
  time(ns: number): string {
    return this.raw ? `${ns} ns` : formatTime(ns);
  }
  /** The rates with `before` in front; empty where there are none. */
  rates(before: string, { pps, wireBitsPerSecond }: GenRates): string {
    if (!this.timed) return '';
    return this.raw
      ? `${before}${Math.round(pps)} pps, ${Math.round(wireBitsPerSecond)} bit/s on the wire`
      : `${before}${formatFrameRate(pps)}, ${formatRate(wireBitsPerSecond)} on the wire`;
  }
  times(times: Times): string {
    const parts = (['min', 'p50', 'p99', 'p999', 'p9999', 'max'] as const).map((name) => {
      const label = { min: 'min', p50: 'median', p99: '99 %', p999: '99.9 %', p9999: '99.99 %', max: 'max' }[name];
      return `${label} ${this.time(times[`${name}Ns`])}`;
    });
    return parts.join(', ');
  }
}

function addressText(bytes: Uint8Array, low: number): string {
  const all = [...bytes.slice(0, -4), low >>> 24, (low >>> 16) & 0xff, (low >>> 8) & 0xff, low & 0xff];
  if (all.length === 4) return all.join('.');
  if (all.length === 6) return all.map((byte) => byte.toString(16).padStart(2, '0')).join(':');
  const groups = Array.from({ length: 8 }, (_, i) => ((all[2 * i] << 8) | all[2 * i + 1]).toString(16));
  // As RFC 5952 writes it, which is how URLs do.
  return new URL(`http://[${groups.join(':')}]`).hostname.slice(1, -1);
}

function endpointText({ family, address: { bytes, low }, port }: Endpoint): string {
  const end = (value: number, at: number): string =>
    `${family === 6 ? `[${addressText(bytes, value)}]` : addressText(bytes, value)}:${at}`;
  const [first, last] = [end(low.first, port.first), end(low.last, port.last)];
  return first === last ? first : `${first}-${last}`;
}

function macText({ bytes, low }: Flow['sourceMac']): string {
  const [first, last] = [addressText(bytes, low.first), addressText(bytes, low.last)];
  return first === last ? first : `${first}-${last}`;
}

/** What is sent, in words. */
function framesText(
  { flow, sizes, rate, replay, randomPayload, mode }: GenSettings,
  sourceMac: string,
  numbers: Numbers,
): string[] {
  if (mode === 'rx' || mode === 'pong') return [];
  const pace =
    rate === undefined || rate === Infinity
      ? mode === 'ping'
        ? 'each as soon as the one before was answered'
        : 'as fast as the port takes them'
      : numbers.raw
        ? `${rate} pps`
        : formatFrameRate(rate);
  if (replay !== undefined) {
    const { speed, wireRate } = replay;
    const own = speed === Infinity ? 'as fast as possible' : `at ${speed} × its own timing`;
    const timing = wireRate === undefined ? own : `${formatRate(wireRate)} on the wire`;
    return [
      `sends ${replay.file}, ${rate === undefined ? timing : pace}${replay.loops > 1 ? `, ${replay.loops} times` : ''}`,
    ];
  }
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const size =
    least === most
      ? `${least} bytes with FCS (${least - FCS_BYTES} in the slot)`
      : `${least} to ${most} bytes with FCS`;
  const vlans = flow.vlans.length === 0 ? '' : `, VLAN ${flow.vlans.join(':')}`;
  return [
    `sends UDP over IPv${flow.source.family}${vlans}, ${endpointText(flow.source)} → ${endpointText(flow.destination)}`,
    `  from ${flow.sourceMac === null ? sourceMac : macText(flow.sourceMac)} to ${macText(flow.destinationMac)}`,
    `  frames of ${size}${randomPayload ? ', random payload' : ''}, ${pace}`,
  ];
}

export function openedText({ port, sourceMac }: GenOpened, settings: GenSettings, numbers: Numbers): string {
  const { threads } = settings;
  const shared = threads > 1 ? `, shared out among ${threads} threads` : '';
  const lines = [`${port.name}: ${portText(port)}${shared}`, ...port.notes.map((note) => `  ${note}`)];
  return `${[...lines, ...framesText(settings, sourceMac, numbers)].join('\n')}\n`;
}

/** One line for an interval. */
export function intervalText(before: GenReport | undefined, after: GenReport, numbers: Numbers): string {
  const { sent, received } = ratesBetween(before, after);
  const parts: string[] = [];
  if (sent)
    parts.push(
      `${after.reflected ? 'sent back' : 'sent'} ${numbers.count(sent.frames)} frames${numbers.rates(', ', sent)}`,
    );
  if (received) parts.push(`received ${numbers.count(received.frames)} frames${numbers.rates(', ', received)}`);
  const lost = after.received && after.sent === undefined ? after.received.lost - (before?.received?.lost ?? 0) : 0;
  // Less than before: some were late, or another thread had them; the summary tells.
  if (lost > 0) parts.push(`lost ${numbers.count(lost)}`);
  return `${(after.ns / 1e9).toFixed(1)} s  ${parts.join('; ')}\n`;
}

export function summaryText(report: GenReport, { name, threads, replay }: GenSettings, numbers: Numbers): string {
  const { sent, received, reflected } = report;
  // A simulated port knows its own frames only; ours are foreign to it, all of them.
  const { foreign = 0, ...stats } = report.stats;
  if (foreign > 0 && sent === undefined && reflected === undefined) stats['foreign'] = foreign;
  const rates = ratesOfRun(report);
  const lines = [`\nran for ${numbers.time(Math.round(report.ns))}`];
  const flowed = (what: string, of: { frames: number; bytes: number }, at: GenRates): string =>
    `${what} ${numbers.count(of.frames)} frames, ${numbers.count(of.bytes)} bytes${numbers.rates('; ', at)}`;
  if (sent) {
    lines.push(flowed('sent', sent, rates.sent!));
    lines.push(...keptLines(sent, numbers));
    const { short = 0, empty = 0, long = 0 } = sent.skipped ?? {};
    if (short > 0) lines.push(`  ${numbers.count(short)} left out: the capture holds only their beginning`);
    if (empty > 0) lines.push(`  ${numbers.count(empty)} left out: they have no bytes`);
    if (long > 0) lines.push(`  ${numbers.count(long)} left out: too long for the ring`);
    if (sent.givenUp > 0)
      lines.push(
        `  ${numbers.count(sent.givenUp)} of the schedule given up: the sender was held up for longer than a burst (-b)`,
      );
    const gaps = numbers.timed ? timesOf(sent.gaps) : undefined;
    if (gaps !== undefined) {
      const inEach = threads > 1 ? ' in each thread' : '';
      lines.push(
        `  frame to frame${inEach}: asked for ${numbers.time(Math.round(sent.gapNs!))}, mean ${numbers.time(gaps.meanNs)}, ${numbers.times(gaps)}`,
        `  jitter: ${numbers.time(Math.round(sent.meanDeviationNs!))} from what was asked for, on average`,
      );
    }
    const lateness = numbers.timed ? timesOf(sent.lateness) : undefined;
    const timing = replay?.wireRate === undefined ? "the capture's timing" : 'the schedule';
    if (lateness !== undefined) lines.push(`  behind ${timing}: ${numbers.times(lateness)}`);
  }
  if (reflected) {
    lines.push(flowed('sent back', reflected, rates.sent!), ...keptLines(reflected, numbers));
    if (reflected.ignored > 0)
      lines.push(
        `  ${numbers.count(reflected.ignored)} frames are no UDP datagrams, or replies themselves, and were left unanswered`,
      );
  }
  if (received) lines.push(flowed('received', received, rates.received!), ...receivedLines(report, numbers));
  return `${lines.join('\n')}\n${portStatsText({ name, stats })}`;
}

/** What was put into the tx rings and was not sent. */
function keptLines({ refused, unsent }: { refused: number; unsent: number }, numbers: Numbers): string[] {
  return [
    ...(refused > 0
      ? [`  ${numbers.count(refused)} more were refused by the port: longer than it takes (MTU), or it failed`]
      : []),
    ...(unsent > 0 ? [`  ${numbers.count(unsent)} more were in the tx rings and did not leave`] : []),
  ];
}

function receivedLines({ sent, received }: GenReport, numbers: Numbers): string[] {
  const { frames, tagged, streams, lost, duplicates, reordered, before, otherClock, old, latency } = received!;
  const lines: string[] = [];
  if (sent) {
    // ping: what was not answered is lost, wherever on the way.
    const unanswered = Math.max(0, sent.frames - tagged);
    lines.push(
      `  answered ${numbers.count(tagged)}, unanswered ${numbers.count(unanswered)}, duplicates ${duplicates}, reordered ${reordered}`,
    );
  } else if (tagged > 0) {
    const order = `lost ${numbers.count(lost)}, duplicates ${numbers.count(duplicates)}, reordered ${numbers.count(reordered)}`;
    lines.push(`  ${numbers.count(tagged)} tagged, in ${streams} stream${streams === 1 ? '' : 's'}: ${order}`);
    if (before > 0)
      lines.push(`  ${numbers.count(before)} were sent before the first that was seen; they do not count as lost`);
  }
  if (frames > tagged) lines.push(`  ${numbers.count(frames - tagged)} ${sent ? 'others' : 'without a tag'}`);
  if (otherClock > 0)
    lines.push(
      `  ${numbers.count(otherClock)} without a latency: from a file, or sent later than now by this machine's clock, so by another's`,
    );
  if (old > 0)
    lines.push(
      `  ${numbers.count(old)} without a latency: sent more than 10 s ago (they lay somewhere, or another machine's clock wrote it)`,
    );
  const times = timesOf(latency);
  if (times !== undefined) lines.push(`  ${sent ? 'round trip' : 'latency'}: ${numbers.times(times)}`);
  return lines;
}
