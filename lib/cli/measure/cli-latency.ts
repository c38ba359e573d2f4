import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { formatTime, parseCountWithin, parsePercent } from '../../text/units.js';
import { GENERATOR_LIMITED, noteOf, shortOffer } from '../../measure/trial/bench.js';
import { helped, type Output } from './measure-cli.js';
import { findThroughput } from './cli-throughput.js';
import { clockCost } from '../../measure/trial/clock-cost.js';
import { cpuMetrics } from '../../measure/trial/cpu.js';
import { Histogram } from '../../stats/histogram.js';
import { BENCH_OPTIONS, onBench } from './open-bench.js';
import { parseSeconds, placeOf } from './setup.js';

const OPTIONS = {
  ...BENCH_OPTIONS,
  load: { value: 'PERCENT', help: 'Offered load as a share of what --of names. Default: 50%.' },
  of: {
    value: 'WHAT',
    help: 'ndr (the throughput without loss, which is searched first; the default) or line (the line rate).',
  },
  seconds: { value: 'N', help: 'Length of the trial, and of the trials that decide on the throughput. Default: 2.' },
  every: {
    value: 'N',
    help: 'Time one frame of N, a power of two. Default: 64. With --tx and --rx all frames are timed.',
  },
} as const satisfies OptionTable;

export const LATENCY_HELP = `Usage: measure latency [options]

Measures how long frames take through the bridge at a share of its throughput (RFC 2544 section 26.2): from the moment a
frame's last bit has arrived at one port to the moment its last bit has left the other.

${optionsHelp(OPTIONS)}

Percentiles are read from a log-linear histogram and differ from the exact ones by at most ${(100 * Histogram.relativeError).toFixed(2)} %;
minimum and maximum are exact to the nanosecond.
`;

const PERCENTILES = [
  ['p50_ns', 50],
  ['p99_ns', 99],
  ['p999_ns', 99.9],
  ['p9999_ns', 99.99],
] as const;

/** The figures of a latency distribution, as result files name them; all 0 when no frame was looked at. */
export function latencyMetrics(histogram: Histogram): Record<string, number> {
  if (histogram.count === 0) return {};
  return {
    min_ns: histogram.min,
    ...Object.fromEntries(PERCENTILES.map(([name, percent]) => [name, histogram.percentile(percent)])),
    max_ns: histogram.max,
    mean_ns: histogram.mean,
  };
}

const HEADS = [
  'size\nbytes',
  'load\nMpps',
  'of line\nrate',
  'min',
  'median',
  'p99',
  'p99.9',
  'p99.99',
  'max',
  'frames\ntimed',
  'lost\nframes',
];

/** Runs `measure latency`. Returns the exit code. */
export async function runLatency(args: string[], io: Output): Promise<number> {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, LATENCY_HELP)) return 0;
  const share = line.read('load', parseLoad) ?? 0.5;
  const of = line.word('of', ['ndr', 'line']) ?? 'ndr';
  const seconds = line.read('seconds', parseSeconds) ?? 2;
  const every = line.read('every', parseEvery) ?? 64;
  const whole = of === 'ndr' ? 'throughput' : 'line rate';
  const outside = line.has('tx') || line.has('rx');
  if (outside && line.has('every'))
    throw new UsageError(
      '--every: with --tx and --rx every frame carries its time, and all are timed; leave --every out',
    );
  const timed = outside || every === 1 ? 'every frame timed' : `one frame of ${every} timed`;
  const about = `${100 * share} % of the ${whole}, ${seconds} s a size, ${timed}`;
  let without = 0;
  const code = await onBench(line, io, { about, heads: HEADS }, async ({ setup, bench, emitter, trials }) => {
    const clock = clockCost();
    const remarks: string[] = [];
    for (const size of setup.sizes) {
      const place = placeOf(size, setup);
      const maxLoad = bench.maxLoad(size);
      let full = maxLoad;
      const notes: string[] = [];
      if (of === 'ndr') {
        const { ndr, search } = await findThroughput(bench, size, {
          seconds,
          trials: 1,
          width: 0.01,
          onTrial: ({ load }) => {
            emitter.progress(`${place}: looking for the throughput, ${(load / 1e6).toFixed(3)} Mpps`);
          },
        });
        full = ndr.lower ?? 0;
        if (search.generatorLimited) notes.push(`the throughput: ${GENERATOR_LIMITED}`);
        if (full === 0) {
          without++;
          emitter.progress('');
          const why = search.generatorLimited ? `; ${GENERATOR_LIMITED}` : '';
          io.err(`${place}: even the lowest load lost frames, so there is no throughput to take a share of${why}\n`);
          continue;
        }
      }
      emitter.progress(`${place}: ${((full * share) / 1e6).toFixed(3)} Mpps for ${seconds} s`);
      const trial = await bench.run({ size, load: full * share, seconds, latencyEvery: every });
      trials.push(trial);
      const short = shortOffer(full * share, trial);
      const offered = short === undefined ? full * share : trial.offered / trial.seconds;
      if (short !== undefined) notes.push(`${short}: the latencies are those at the load that was offered`);
      remarks.push(...notes.map((note) => `${size} bytes: ${note}.`));
      const { latency } = trial;
      if (latency === undefined) throw new Error(`${bench.title}: a trial without latencies`);
      const histogram = Histogram.fromJSON(latency.histogram);
      const metrics = latencyMetrics(histogram);
      const timeText = (name: string): string => (name in metrics ? formatTime(metrics[name]) : '–');
      emitter.add(
        {
          kind: 'latency',
          cell: { ...bench.cell(size), load: share, of },
          metrics: {
            ...metrics,
            clock_ns: clock,
            mpps: trial.rate / 1e6,
            loss: trial.offered === 0 ? 0 : trial.lost / trial.offered,
            ...cpuMetrics(trial.cores),
          },
          histogram: latency.histogram,
          ...noteOf(...notes),
          cores: trial.cores,
        },
        [
          String(size),
          (offered / 1e6).toFixed(3),
          `${((100 * offered) / maxLoad).toFixed(1)} %`,
          ...['min_ns', ...PERCENTILES.map(([name]) => name), 'max_ns'].map(timeText),
          String(histogram.count),
          String(trial.lost),
        ],
        `${place}: median ${timeText('p50_ns')}, p99.9 ${timeText('p999_ns')}, max ${timeText('max_ns')}${
          short === undefined ? '' : `; ${short}`
        }`,
      );
    }
    return [
      ...(remarks.length === 0 ? [] : [remarks.join('\n')]),
      `Percentiles are within ${(100 * Histogram.relativeError).toFixed(2)} % of the exact ones. Reading the clock costs ${clock.toFixed(0)} ns here; ` +
        'the simulated links read it once a sync, not once a frame.',
    ];
  });
  return without > 0 ? 1 : code;
}

function parseLoad(text: string): number {
  const share = parsePercent(text);
  if (share > 0) return share;
  throw new UsageError(`'${text}': at no load there is no latency; expected more than 0%, such as 50%`);
}

function parseEvery(text: string): number {
  const every = parseCountWithin(text, 1, 65_536);
  if ((every & (every - 1)) === 0) return every;
  throw new UsageError(`'${text}': expected a power of two, such as 64`);
}
