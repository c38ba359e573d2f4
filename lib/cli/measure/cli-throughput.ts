import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { parseCountWithin } from '../../text/units.js';
import { costMetrics, GENERATOR_LIMITED, noteOf, type Bench, type BenchTrial } from '../../measure/trial/bench.js';
import { helped, parsePart, type Output } from './measure-cli.js';
import { busyCores, coresText, cpuMetrics } from '../../measure/trial/cpu.js';
import { formatNumber } from '../../text/format.js';
import { BENCH_OPTIONS, onBench } from './open-bench.js';
import {
  firstSeconds,
  lossRatio,
  ndrPdrGoals,
  runSearch,
  searchSteps,
  steadyGoals,
  type GoalResult,
  type SearchResult,
} from '../../measure/search/search.js';
import { parseSeconds, placeOf } from './setup.js';

const OPTIONS = {
  ...BENCH_OPTIONS,
  seconds: { value: 'N', help: 'Length of the trials that decide. Default: 2. RFC 2544 asks for 60.' },
  trials: {
    value: 'N',
    help: 'Trials of that length at a load, of which the majority decides. Default: 1, where a single lost frame does.',
  },
  width: { value: 'PERCENT', help: 'Width of the intervals, as a share of their upper end. Default: 0.5%.' },
} as const satisfies OptionTable;

export const THROUGHPUT_HELP = `Usage: measure throughput [options]

Finds, for each frame size, the highest load that is forwarded without loss (NDR, the throughput of RFC 2544 section 26.1)
and with at most 0.5 % loss (PDR), both in one search (multiple loss ratio search, RFC 9971): short trials come close,
full-length ones decide. docs/measuring.md tells how, and what each figure means.

${optionsHelp(OPTIONS)}

Columns: NDR and PDR are what was forwarded at the lower bound, in 10⁶ frames a second, both directions together; in
brackets the loads between which the true value lies; trial-seconds is the time spent offering load.
`;

/** Loads below this share of the line rate are not looked at. */
const LEAST_SHARE = 1e-4;

export interface ThroughputOptions {
  seconds: number;
  /** Full-length trials at a load, of which the majority decides. */
  trials: number;
  /** Width of the intervals as a share of their upper end. */
  width: number;
  onTrial?: (trial: { load: number; seconds: number; trialSeconds: number }) => void;
}

export interface Throughput {
  search: SearchResult;
  ndr: GoalResult;
  pdr: GoalResult;
  /** The worst full-length trial at NDR's lower bound; absent when no load was carried without loss. */
  atNdr?: BenchTrial;
  trials: BenchTrial[];
}

/** Searches a bench for NDR and PDR at one frame size. @throws UsageError when the trials are too short for the link */
export async function findThroughput(bench: Bench, size: number, options: ThroughputOptions): Promise<Throughput> {
  const { seconds, trials: repeats, width, onTrial } = options;
  const goals = repeats === 1 ? ndrPdrGoals(seconds, width) : steadyGoals(seconds, repeats, width);
  const maxLoad = bench.maxLoad(size);
  // The shortest trial still offers a frame in each direction.
  const minLoad = Math.max(maxLoad * LEAST_SHARE, bench.directions / firstSeconds(seconds));
  if (minLoad >= maxLoad)
    throw new UsageError(
      `${size} bytes: in ${firstSeconds(seconds)} s, the shortest trial, this link carries no more than one frame; ` +
        'write a larger --seconds',
    );
  const trials: { load: number; asked: number; ratio: number; trial: BenchTrial }[] = [];
  let trialSeconds = 0;
  const search = await runSearch(searchSteps({ goals, minLoad, maxLoad }), async (request) => {
    onTrial?.({ ...request, trialSeconds });
    const trial = await bench.run({ size, ...request });
    trialSeconds += request.seconds;
    trials.push({ load: request.load, asked: request.seconds, ratio: lossRatio(request, trial), trial });
    return { offered: trial.offered, lost: trial.lost };
  });
  const [ndr, pdr] = search.goals;
  const [atNdr] = trials
    .filter(({ load, asked }) => load === ndr.lower && asked >= seconds)
    .sort((x, y) => y.ratio - x.ratio);
  return {
    search,
    ndr,
    pdr,
    trials: trials.map(({ trial }) => trial),
    ...((atNdr as typeof atNdr | undefined) && { atNdr: atNdr.trial }),
  };
}

function metricsOf({ search, ndr, pdr, atNdr }: Throughput): Record<string, number> {
  const bounds = (name: string, { lower, upper }: GoalResult): Record<string, number> => ({
    ...(lower === undefined ? {} : { [`${name}_lower_mpps`]: lower / 1e6 }),
    ...(upper === undefined ? {} : { [`${name}_upper_mpps`]: upper / 1e6 }),
  });
  return {
    ndr_mpps: ndr.conditionalThroughput / 1e6,
    pdr_mpps: pdr.conditionalThroughput / 1e6,
    ...bounds('ndr', ndr),
    ...bounds('pdr', pdr),
    trial_s: search.trialSeconds,
    ...(atNdr?.busyShare === undefined ? {} : { busy_share: atNdr.busyShare }),
    ...costMetrics(atNdr),
    ...cpuMetrics(atNdr?.cores ?? []),
  };
}

/** `2.310 [2.301, 2.312]`; a bound that does not exist is a dash. */
function goalText({ lower, upper, conditionalThroughput }: GoalResult): string {
  const bound = (load: number | undefined): string => (load === undefined ? '–' : (load / 1e6).toFixed(3));
  return `${(conditionalThroughput / 1e6).toFixed(3)} [${bound(lower)}, ${bound(upper)}]`;
}

const HEADS = [
  'size\nbytes',
  'NDR\nMpps [lower, upper]',
  '% of\nline rate',
  'PDR\nMpps [lower, upper]',
  '% of\nline rate',
  'trial-\nseconds',
  'busy\n%',
  'ns a\nframe',
  'CPUs\nbusy',
];

/** Runs `measure throughput`. Returns the exit code. */
export async function runThroughput(args: string[], io: Output): Promise<number> {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, THROUGHPUT_HELP)) return 0;
  const seconds = line.read('seconds', parseSeconds) ?? 2;
  const repeats = line.read('trials', (text) => parseCountWithin(text, 1, 1000)) ?? 1;
  const width = line.read('width', parsePart) ?? 0.005;
  const about = `final trials of ${seconds} s${repeats === 1 ? '' : `, majority of ${repeats}`}`;
  return onBench(line, io, { about, heads: HEADS }, async ({ setup, bench, emitter, trials }) => {
    const remarks: string[] = [];
    for (const size of setup.sizes) {
      const found = await findThroughput(bench, size, {
        seconds,
        trials: repeats,
        width,
        onTrial: ({ load, seconds: length, trialSeconds }) => {
          const trial = `${(load / 1e6).toFixed(3)} Mpps for ${formatNumber(length, 3)} s`;
          emitter.progress(`${placeOf(size, setup)}: ${trial}, ${formatNumber(trialSeconds, 3)} trial-seconds so far`);
        },
      });
      trials.push(...found.trials);
      const { ndr, pdr, search, atNdr } = found;
      const share = ({ conditionalThroughput }: GoalResult): string =>
        ((100 * conditionalThroughput) / bench.maxLoad(size)).toFixed(1);
      emitter.add(
        {
          kind: 'throughput',
          cell: bench.cell(size),
          metrics: metricsOf(found),
          ...noteOf(search.generatorLimited ? GENERATOR_LIMITED : undefined),
          ...(atNdr === undefined ? {} : { cores: atNdr.cores }),
        },
        [
          String(size),
          goalText(ndr),
          share(ndr),
          goalText(pdr),
          share(pdr),
          search.trialSeconds.toFixed(1),
          atNdr?.busyShare === undefined ? '–' : (100 * atNdr.busyShare).toFixed(0),
          costText(costMetrics(atNdr)),
          shown(atNdr && busyCores(atNdr.cores)),
        ],
        `${placeOf(size, setup)}: NDR ${goalText(ndr)} Mpps, PDR ${goalText(pdr)} Mpps`,
      );
      if (atNdr !== undefined && atNdr.cores.length > 0)
        remarks.push(`${size} bytes at NDR, the whole machine: ${coresText(atNdr.cores)}`);
      if (search.generatorLimited) remarks.push(`${size} bytes: ${GENERATOR_LIMITED}.`);
    }
    return remarks.length === 0 ? [] : [remarks.join('\n')];
  });
}

function shown(value: number | undefined): string {
  return value === undefined ? '–' : formatNumber(value, 3);
}

/** `45.2`, or `45.2 (163 cycles)` where cycles can be read. */
function costText({ frame_ns: ns, frame_cycles: cycles }: Record<string, number | undefined>): string {
  return `${shown(ns)}${cycles === undefined ? '' : ` (${formatNumber(cycles, 3)} cycles)`}`;
}
