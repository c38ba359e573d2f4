import { startGenerator } from '../../gen/gen-start.js';
import type { GenReport } from '../../gen/gen-report.js';
import type { GenSettings } from '../../gen/job.js';
import { type Result, RESULT_VERSION } from '../../measure/results/result.js';
import { latencyMetrics } from '../../measure/results/metrics.js';
import { appendResults } from '../../measure/results/results.js';
import { Histogram } from '../../stats/histogram.js';
import { EXIT } from '../exit.js';
import type { Output } from '../output.js';
import { parsePktGen, PKT_GEN_HELP, type PktGenCommand } from './pkt-gen-options.js';
import { intervalText, Numbers, openedText, ratesBetween, ratesOfRun, summaryText, timesOf } from './pkt-gen-text.js';
import type { Stop } from '../signals.js';
import { portTool, untilEnded } from '../port-tool.js';

/** The tool. */
export const pktGen = portTool('pkt-gen', PKT_GEN_HELP, parsePktGen, ({ settings }) => [settings.name], run);

/** Runs the generator until a signal, a limit or the end of its source. Returns the exit code; throws what failed. */
async function run(command: PktGenCommand, output: Output, stop: Stop): Promise<number> {
  const { settings, intervalSeconds } = command;
  const numbers = new Numbers(command.raw);
  const say = (sentence: string): void => {
    output.say(sentence);
  };
  const add = (results: Result[]): void => {
    const notice = command.out === undefined ? undefined : appendResults(command.out, results);
    if (notice !== undefined) output.error(`pkt-gen: ${notice}\n`);
  };
  // A file that cannot be written is told before anything is sent, not after.
  add([]);
  const generator = startGenerator(settings, say);
  stop.onWish(() => {
    generator.stop();
  });
  const opened = await generator.opened;
  output.text(openedText(opened, settings, numbers));
  const { name, mode, sizes } = settings;
  output.json({ type: 'open', ...opened, name, mode, leastSize: Math.min(...sizes), mostSize: Math.max(...sizes) });
  command.notes.forEach(say);
  await generator.running;
  let before: GenReport | undefined;
  const { ended, failure } = await untilEnded(generator, intervalSeconds, async (stopped) => {
    const now = await generator.report();
    if (stopped()) return;
    output.text(intervalText(before, now, numbers));
    output.json({ type: 'stats', ...jsonOf(now, before) });
    before = now;
  });
  const { reason, report } = ended;
  output.result(summaryText(report, settings, numbers), {
    type: 'summary',
    reason,
    ...jsonOf(report, undefined, true),
  });
  if (failure !== undefined) throw failure;
  add([resultOf(command, report)]);
  const problem = report.problem ?? unanswered(settings, report);
  if (problem === undefined) return EXIT.ok;
  output.error(`pkt-gen: ${problem}\n`);
  return EXIT.failed;
}

/** What is wrong with a ping that nobody answered. */
function unanswered({ mode, name }: GenSettings, { sent, received }: GenReport): string | undefined {
  if (mode !== 'ping' || received!.tagged > 0) return undefined;
  return `${name}: none of ${sent!.frames} pings was answered; is a pong running at the other end?`;
}

/** A report for programs: histograms as percentiles. */
function jsonOf(report: GenReport, before: GenReport | undefined, whole = false): Record<string, unknown> {
  const { ns, sent, received, reflected, ...rest } = report;
  const rates = whole ? ratesOfRun(report) : ratesBetween(before, report);
  return {
    seconds: ns / 1e9,
    ...(rates.sent && { sentPps: rates.sent.pps, sentWireBitsPerSecond: rates.sent.wireBitsPerSecond }),
    ...(rates.received && {
      receivedPps: rates.received.pps,
      receivedWireBitsPerSecond: rates.received.wireBitsPerSecond,
    }),
    ...(sent && { sent: { ...sent, span: undefined, gaps: timesOf(sent.gaps), lateness: timesOf(sent.lateness) } }),
    // One by one, streams are of use to the merging of threads only.
    ...(received && {
      received: { ...received, seen: undefined, span: undefined, latency: timesOf(received.latency) },
    }),
    ...(reflected && { reflected: { ...reflected, span: undefined } }),
    ...rest,
  };
}

/** A line for a result file. */
function resultOf({ settings }: PktGenCommand, report: GenReport): Result {
  const { sent, received } = report;
  const rates = ratesOfRun(report);
  const flowed = rates.received ?? rates.sent;
  const latency = received?.latency.count === 0 ? undefined : received?.latency;
  const sizes = new Set(settings.sizes);
  const sends = sent !== undefined && settings.replay === undefined;
  return {
    v: RESULT_VERSION,
    kind: latency === undefined ? 'forward' : 'latency',
    cell: {
      port: settings.name,
      mode: settings.mode,
      ...(settings.threads > 1 && { threads: settings.threads }),
      ...(sends && { size: sizes.size === 1 ? settings.sizes[0] : `${Math.min(...sizes)}-${Math.max(...sizes)}` }),
      ...(settings.rate !== undefined && settings.rate !== Infinity && { pps: settings.rate }),
    },
    repeat: 0,
    metrics: {
      ...(flowed && { mpps: flowed.pps / 1e6, gbps: flowed.wireBitsPerSecond / 1e9 }),
      ...(received && sent === undefined && { loss: received.lost / Math.max(1, received.tagged + received.lost) }),
      ...(latency && latencyMetrics(Histogram.fromJSON(latency))),
      ...(sent?.meanDeviationNs !== undefined && { jitter_ns: sent.meanDeviationNs }),
      cpu_user_share: report.ns > 0 ? report.userNs / report.ns : 0,
      cpu_system_share: report.ns > 0 ? report.systemNs / report.ns : 0,
    },
    ...(latency && { histogram: latency }),
    time: new Date().toISOString(),
  };
}
