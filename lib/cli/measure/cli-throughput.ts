import { formatNumber } from '../../text/format.js';
import { formatFrameRate, within, type RateColumn } from '../../text/units.js';
import { benchRemarks, costMetrics } from '../../measure/trial/bench.js';
import { busyCores, coresText } from '../../measure/trial/cpu.js';
import { GENERATOR_LIMITED } from '../../measure/trial/offer.js';
import type { GoalResult } from '../../measure/search/search.js';
import { findThroughput, throughputMetrics } from '../../measure/search/throughput.js';
import { experiment } from './experiment.js';
import { parsePart } from './measure-cli.js';
import { BENCH_OPTIONS } from './open-bench.js';
import { parseLength, TRIALS } from './setup-options.js';

/** `measure throughput`. */
export const runThroughput = experiment({
  kind: 'throughput',
  help: [
    `Usage: measure throughput [options]

Finds, for each frame size, the highest load that is forwarded without loss (NDR, the throughput of RFC 2544 section 26.1)
and with at most 0.5 % loss (PDR), both in one search (multiple loss ratio search, RFC 9971): short trials come close,
full-length ones decide. docs/measuring.md tells how, and what each figure means.`,
    `Columns: NDR and PDR are the highest loads that were found to be forwarded so, in frames a second, both directions
together; in brackets the loads between which the true value lies, of which that is the lower; trial-seconds is the time spent offering load.`,
  ],
  options: {
    ...BENCH_OPTIONS,
    seconds: {
      value: 'TIME',
      help: 'Length of the trials that decide, such as 2 or 500ms. Default: 2. RFC 2544 asks for 60.',
    },
    trials: {
      value: 'N',
      help: 'Trials of that length at a load, of which the majority decides. Default: 1, where a single lost frame does.',
    },
    width: { value: 'PERCENT', help: 'Width of the intervals, as a share of their upper end. Default: 0.5%.' },
  },
  heads: ({ frames: { unit } }) => [
    `NDR\n${unit} [lower, upper]`,
    '% of\nline rate',
    `PDR\n${unit} [lower, upper]`,
    '% of\nline rate',
    'trial-\nseconds',
    'busy\n%',
    'ns a\nframe',
    'CPUs\nbusy',
  ],
  plan(line) {
    const seconds = line.read('seconds', parseLength) ?? 2;
    const trials = line.read('trials', within(TRIALS)) ?? 1;
    const width = line.read('width', parsePart) ?? 0.005;
    return {
      about: (ways) => `${ways}, final trials of ${seconds} s${trials === 1 ? '' : `, majority of ${trials}`}`,
      async *measure({ bench, units: { frames }, size, name, ran, progress, remark, stop }) {
        const found = await findThroughput(bench, size, {
          seconds,
          trials,
          width,
          stop,
          onTrial: ({ load, seconds: length, trialSeconds }) => {
            const trial = `${formatFrameRate(load)} for ${formatNumber(length, 3)} s`;
            progress(`${name}: ${trial}, ${formatNumber(trialSeconds, 3)} trial-seconds so far`);
          },
        });
        ran(found.trials);
        const { ndr, pdr, search, atNdr } = found;
        if (search.trials.length === 0) return;
        const goalText = (goal: GoalResult): string => boundsText(goal, search.complete, frames);
        const share = ({ lower }: GoalResult): string =>
          lower === undefined && !search.complete ? '–' : ((100 * (lower ?? 0)) / bench.maxLoad(size)).toFixed(1);
        if (atNdr !== undefined && atNdr.cores.length > 0)
          remark(` at NDR, the whole machine: ${coresText(atNdr.cores)}`);
        if (search.generatorLimited) remark(`: ${GENERATOR_LIMITED}.`);
        yield {
          metrics: throughputMetrics(found),
          trial: atNdr,
          notes: [search.generatorLimited ? GENERATOR_LIMITED : undefined],
          texts: [
            goalText(ndr),
            share(ndr),
            goalText(pdr),
            share(pdr),
            search.trialSeconds.toFixed(1),
            atNdr?.busyShare === undefined ? '–' : (100 * atNdr.busyShare).toFixed(0),
            costText(costMetrics(atNdr)),
            shown(atNdr && busyCores(atNdr.cores)),
          ],
          said: `${name}: NDR ${goalText(ndr)} ${frames.unit}, PDR ${goalText(pdr)} ${frames.unit}`,
        };
      },
      end: benchRemarks,
    };
  },
});

/** `2.310 [2.301, 2.312]`; a bound that does not exist, or that a search has not come to, is a dash. */
function boundsText({ lower, upper }: GoalResult, complete: boolean, { text }: RateColumn): string {
  const bound = (load: number | undefined): string => (load === undefined ? '–' : text(load));
  return `${bound(complete ? (lower ?? 0) : lower)} [${bound(lower)}, ${bound(upper)}]`;
}

function shown(value: number | undefined): string {
  return value === undefined ? '–' : formatNumber(value, 3);
}

/** `45.2`, or `45.2 (163 cycles)` where cycles can be read. */
function costText({ frame_ns: ns, frame_cycles: cycles }: Record<string, number | undefined>): string {
  return `${shown(ns)}${cycles === undefined ? '' : ` (${formatNumber(cycles, 3)} cycles)`}`;
}
