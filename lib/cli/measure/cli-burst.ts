import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { formatTime, parseCountWithin, parsePercent } from '../../text/units.js';
import { noteOf, shortOffer, type Bench, type BenchTrial } from '../../measure/trial/bench.js';
import { burstSteps, type BurstResult } from '../../measure/search/burst-search.js';
import { helped, type Output } from './measure-cli.js';
import { findThroughput } from './cli-throughput.js';
import { BENCH_OPTIONS, onBench } from './open-bench.js';
import { parseSeconds, placeOf } from './setup.js';

const OPTIONS = {
  ...BENCH_OPTIONS,
  seconds: { value: 'N', help: 'The longest burst lasts so long at line rate. Default: 2.' },
  trials: {
    value: 'N',
    help: 'Times the search is made; average, least and most are shown. Default: 5. RFC 2544 asks for 50.',
  },
  width: {
    value: 'PERCENT',
    help: 'Width of the last interval, as a share of its upper end; 1 frame at least. Default: 0.1%.',
  },
  corrected: {
    help: 'Search the throughput too, and correct the buffer time by what leaves during the burst (RFC 9004).',
  },
} as const satisfies OptionTable;

export const BURST_HELP = `Usage: measure burst [options]

Back-to-back frames (RFC 2544 section 26.4, RFC 9004): the longest burst at line rate that loses nothing, for each frame
size and each direction. From it follows for how long the buffers last.

${optionsHelp(OPTIONS)}
`;

/**
 * Searches the longest burst without loss once. `atLongest` is the trial of that burst; absent when even one frame was lost.
 */
export async function findBurst(
  bench: Bench,
  size: number,
  options: { seconds: number; width: number; onBurst?: (frames: number) => void },
): Promise<BurstResult & { benchTrials: BenchTrial[]; atLongest?: BenchTrial }> {
  const rate = bench.maxLoad(size) / bench.directions;
  const benchTrials: BenchTrial[] = [];
  const steps = burstSteps(Math.max(1, Math.round(rate * options.seconds)), options.width);
  let step = steps.next();
  while (!step.done) {
    const frames = step.value;
    options.onBurst?.(frames);
    const trial = await bench.run({ size, load: bench.maxLoad(size), seconds: frames / rate, frames });
    benchTrials.push(trial);
    step = steps.next(trial.lost);
  }
  const found = step.value;
  const at = found.trials.findIndex(({ frames }) => frames === found.longest);
  return { ...found, benchTrials, ...(at >= 0 && { atLongest: benchTrials[at] }) };
}

const HEADS = [
  'size\nbytes',
  'average\nframes',
  'least',
  'most',
  'standard\ndeviation',
  'lasts at\nline rate',
  'corrected\nbuffer time',
];

/** Runs `measure burst`. Returns the exit code. */
export async function runBurst(args: string[], io: Output): Promise<number> {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, BURST_HELP)) return 0;
  const seconds = line.read('seconds', parseSeconds) ?? 2;
  const repeats = line.read('trials', (text) => parseCountWithin(text, 1, 1000)) ?? 5;
  const width = line.read('width', parseWidth) ?? 0.001;
  const searches = repeats === 1 ? '1 search' : `${repeats} searches`;
  const about = `bursts up to ${seconds} s at line rate, ${searches} a size`;
  return onBench(line, io, { about, heads: HEADS }, async ({ setup, bench, emitter, trials }) => {
    const remarks: string[] = [];
    for (const size of setup.sizes) {
      let short: string | undefined;
      const longest: number[] = [];
      let whole = true;
      for (let i = 0; i < repeats; i++) {
        const found = await findBurst(bench, size, {
          seconds,
          width,
          onBurst: (frames) => {
            emitter.progress(`${size} bytes, search ${i + 1} of ${repeats}: a burst of ${frames} frames`);
          },
        });
        longest.push(found.longest);
        whole &&= found.shortestLossy === undefined;
        trials.push(...found.benchTrials);
        // What a burst that came too slowly lost, it would have lost at line rate, too: only those that lost nothing count.
        if (found.atLongest !== undefined) short ??= shortOffer(bench.maxLoad(size), found.atLongest);
      }
      const rate = bench.maxLoad(size) / bench.directions;
      const average = longest.reduce((sum, frames) => sum + frames) / repeats;
      const spread = Math.sqrt(
        longest.reduce((sum, frames) => sum + (frames - average) ** 2, 0) / Math.max(1, repeats - 1),
      );
      const impliedNs = (average / rate) * 1e9;
      let correctedNs: number | undefined;
      if (line.has('corrected') && !whole && short === undefined) {
        emitter.progress(`${size} bytes: the throughput`);
        const { ndr } = await findThroughput(bench, size, { seconds, trials: 1, width: 0.005 });
        correctedNs = impliedNs * (1 - ndr.conditionalThroughput / bench.maxLoad(size));
      }
      const [least, most] = [Math.min(...longest), Math.max(...longest)];
      const averageText = `${whole ? '≥ ' : ''}${Math.round(average)}`;
      emitter.add(
        {
          kind: 'burst',
          cell: bench.cell(size),
          metrics: {
            burst_frames: average,
            least_frames: least,
            most_frames: most,
            deviation_frames: spread,
            ...(short === undefined && { buffer_us: impliedNs / 1e3 }),
            ...(correctedNs === undefined ? {} : { corrected_buffer_us: correctedNs / 1e3 }),
          },
          units: {
            // A buffer that lasts longer is better, whereas most times are not.
            ...(short === undefined && {
              buffer_us: { unit: 'µs', label: 'burst without loss', better: 'higher' as const },
            }),
            ...(correctedNs === undefined ? {} : { corrected_buffer_us: { unit: 'µs', better: 'higher' as const } }),
          },
          ...noteOf(
            whole ? 'the longest burst tried lost nothing' : undefined,
            short && `${short}: the burst was not at line rate and says nothing of how long buffers last`,
          ),
        },
        [
          String(size),
          averageText,
          String(least),
          String(most),
          spread.toFixed(1),
          short === undefined ? formatTime(impliedNs) : '–',
          correctedNs === undefined ? '–' : formatTime(correctedNs),
        ],
        `${placeOf(size, setup)}: longest burst ${averageText} frames, ${short ?? formatTime(impliedNs)}`,
      );
      if (short !== undefined)
        remarks.push(
          `${size} bytes: ${short}, so the burst was not at line rate and says nothing of how long buffers last.`,
        );
    }
    return remarks.length === 0 ? [] : [remarks.join('\n')];
  });
}

function parseWidth(text: string): number {
  const width = parsePercent(text);
  if (width < 1) return width;
  throw new UsageError(`'${text}': expected less than 100%, such as 0.1%`);
}
