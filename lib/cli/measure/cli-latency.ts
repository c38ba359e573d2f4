import { UsageError } from '../../text/errors.js';
import { formatFrameRate, formatTime, parseCountWithin, parsePercent } from '../../text/units.js';
import { benchRemarks, lossOf } from '../../measure/trial/bench.js';
import { clockCost } from '../../measure/trial/clock-cost.js';
import { GENERATOR_LIMITED, shortOffer } from '../../measure/trial/offer.js';
import { Interrupted } from '../../measure/trial/trial.js';
import { latencyMetrics, PERCENTILES } from '../../measure/results/metrics.js';
import { findThroughput } from '../../measure/search/throughput.js';
import { Histogram } from '../../stats/histogram.js';
import { experiment, type Place } from './experiment.js';
import { BENCH_OPTIONS } from './open-bench.js';
import { parseLength } from './setup-options.js';

const ERROR = `${(100 * Histogram.relativeError).toFixed(2)} %`;
/** Width of the throughput's interval, of which a share is taken. */
const WIDTH = 0.01;

/** `measure latency`. */
export const runLatency = experiment({
  kind: 'latency',
  help: [
    `Usage: measure latency [options]

Measures how long frames take through the bridge at a share of its throughput (RFC 2544 section 26.2): from the moment a
frame's last bit has arrived at one port to the moment its last bit has left the other.`,
    `Percentiles are read from a log-linear histogram and differ from the exact ones by at most ${ERROR};
minimum and maximum are exact to the nanosecond.`,
  ],
  options: {
    ...BENCH_OPTIONS,
    load: { value: 'PERCENT', help: 'Offered load as a share of what --of names. Default: 50%.' },
    of: {
      value: 'WHAT',
      help: 'ndr (the throughput without loss, which is searched first; the default) or line (the line rate).',
    },
    seconds: {
      value: 'TIME',
      help: 'Length of the trial, and of the trials that decide on the throughput, such as 2 or 500ms. Default: 2.',
    },
    every: {
      value: 'N',
      help: 'Time one frame of N, a power of two. Default: 64. With --tx and --rx all frames are timed.',
    },
  },
  heads: ({ frames }) => [
    `load\n${frames.unit}`,
    'of line\nrate',
    'min',
    'median',
    'p99',
    'p99.9',
    'p99.99',
    'max',
    'frames\ntimed',
    'lost\nframes',
  ],
  plan(line) {
    const share = line.read('load', parseLoad) ?? 0.5;
    const of = line.word('of', ['ndr', 'line']) ?? 'ndr';
    const seconds = line.read('seconds', parseLength) ?? 2;
    const every = line.read('every', parseEvery) ?? 64;
    const outside = line.has('tx') || line.has('rx');
    if (outside && line.has('every'))
      throw new UsageError(
        '--every: with --tx and --rx every frame carries its time, and all are timed; leave --every out',
      );
    const timed = outside || every === 1 ? 'every frame timed' : `one frame of ${every} timed`;
    const clock = clockCost();
    let without = false;
    return {
      about: (ways) =>
        `${ways}, ${100 * share} % of the ${of === 'ndr' ? 'throughput' : 'line rate'}, ${seconds} s a size, ${timed}`,
      async *measure(at) {
        const { bench, units, size, name, run, progress, remark, tell } = at;
        const notes: string[] = [];
        const full = of === 'line' ? bench.maxLoad(size) : await throughput(at, seconds, notes);
        if (full === 0) {
          without = true;
          const why = notes.length > 0 ? `; ${GENERATOR_LIMITED}` : '';
          tell(`${name}: even the lowest load lost frames, so there is no throughput to take a share of${why}`);
          return;
        }
        const load = full * share;
        progress(`${name}: ${formatFrameRate(load)} for ${seconds} s`);
        const trial = await run({ load, seconds, latencyEvery: every });
        const { latency } = trial;
        if (latency === undefined) throw new Error(`${bench.title}: a trial without latencies`);
        const short = shortOffer(load, trial);
        if (short !== undefined) notes.push(`${short}: the latencies are those at the load that was offered`);
        for (const note of notes) remark(`: ${note}.`);
        const offered = short === undefined ? load : trial.offered / trial.seconds;
        const histogram = Histogram.fromJSON(latency.histogram);
        const metrics = latencyMetrics(histogram);
        const timeText = (metric: string): string => (metric in metrics ? formatTime(metrics[metric]) : '–');
        yield {
          cell: { load: share, of },
          metrics: { ...metrics, clock_ns: clock, mpps: trial.rate / 1e6, loss: lossOf(trial) },
          histogram: latency.histogram,
          trial,
          notes,
          texts: [
            units.frames.text(offered),
            `${((100 * offered) / bench.maxLoad(size)).toFixed(1)} %`,
            ...['min_ns', ...PERCENTILES.map(([metric]) => metric), 'max_ns'].map(timeText),
            String(histogram.count),
            String(trial.lost),
          ],
          said:
            `${name}: median ${timeText('p50_ns')}, p99.9 ${timeText('p999_ns')}, max ${timeText('max_ns')}` +
            (short === undefined ? '' : `; ${short}`),
        };
      },
      end: (trials) => [
        `Percentiles are within ${ERROR} of the exact ones. Reading the clock costs ${clock.toFixed(0)} ns here; ` +
          'the simulated links read it once a sync, not once a frame.',
        ...benchRemarks(trials),
      ],
      failed: () => without,
    };
  },
});

/**
 * The throughput without loss, frames/s; 0 when there is none. Says in `notes` when the generator may have set it.
 * @throws Interrupted
 */
async function throughput(
  { bench, size, name, progress, stop }: Place,
  seconds: number,
  notes: string[],
): Promise<number> {
  const { ndr, search } = await findThroughput(bench, size, {
    seconds,
    trials: 1,
    width: WIDTH,
    stop,
    onTrial: ({ load }) => {
      progress(`${name}: looking for the throughput, ${formatFrameRate(load)}`);
    },
  });
  if (!search.complete) throw new Interrupted();
  if (search.generatorLimited) notes.push(`the throughput: ${GENERATOR_LIMITED}`);
  return ndr.lower ?? 0;
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
