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
import { onVirtualClock } from '../port-text.js';
import type { Stop } from '../signals.js';
import { portTool, untilEnded } from '../port-tool.js';

/** The tool. */
export const pktGen = portTool('pkt-gen', PKT_GEN_HELP, parsePktGen, ({ settings }) => [settings.name], run);

/** Runs the generator until a signal, a limit or the end of its source. Returns the exit code; throws what failed. */
async function run(command: PktGenCommand, output: Output, stop: Stop): Promise<number> {
  const { settings, intervalSeconds } = command;
  const timed = !onVirtualClock([settings.name]);
  const numbers = new Numbers(command.raw, timed);
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
    output.json({ type: 'stats', ...jsonOf(now, timed && ratesBetween(before, now)) });
    before = now;
  });
  const { reason, report } = ended;
  output.result(summaryText(report, settings, numbers), {
    type: 'summary',
    reason,
    ...jsonOf(report, timed && ratesOfRun(report)),
  });
  if (failure !== undefined) throw failure;
  add([resultOf(command, report, timed)]);
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

/**
 * A report for programs: histograms as percentiles.
 * @param rates false where frames flow by a clock of their own: the machine's tells neither rates nor gaps
 */
function jsonOf(report: GenReport, rates: ReturnType<typeof ratesOfRun> | false): Record<string, unknown> {
  const { ns, sent, received, reflected, ...rest } = report;
  const flowed = rates || { sent: undefined, received: undefined };
  const times = rates && sent && { gaps: timesOf(sent.gaps), lateness: timesOf(sent.lateness) };
  const untimed = { gaps: undefined, lateness: undefined, meanDeviationNs: undefined };
  return {
    seconds: ns / 1e9,
    ...(flowed.sent && { sentPps: flowed.sent.pps, sentWireBitsPerSecond: flowed.sent.wireBitsPerSecond }),
    ...(flowed.received && {
      receivedPps: flowed.received.pps,
      receivedWireBitsPerSecond: flowed.received.wireBitsPerSecond,
    }),
    ...(sent && { sent: { ...sent, span: undefined, ...(times || untimed) } }),
    // One by one, streams are of use to the merging of threads only.
    ...(received && {
      received: { ...received, seen: undefined, span: undefined, latency: timesOf(received.latency) },
    }),
    ...(reflected && { reflected: { ...reflected, span: undefined } }),
    ...rest,
  };
}

/** A line for a result file. */
function resultOf({ settings }: PktGenCommand, report: GenReport, timed: boolean): Result {
  const { sent, received } = report;
  const rates = ratesOfRun(report);
  const flowed = timed ? (rates.received ?? rates.sent) : undefined;
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
      ...(timed && sent?.meanDeviationNs !== undefined && { jitter_ns: sent.meanDeviationNs }),
      cpu_user_share: report.ns > 0 ? report.userNs / report.ns : 0,
      cpu_system_share: report.ns > 0 ? report.systemNs / report.ns : 0,
    },
    ...(latency && { histogram: latency }),
    time: new Date().toISOString(),
  };
}
