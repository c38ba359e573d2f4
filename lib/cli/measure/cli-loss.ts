import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { parsePercent } from '../../text/units.js';
import { costMetrics, noteOf, shortOffer } from '../../measure/trial/bench.js';
import { helped, type Output } from './measure-cli.js';
import { cpuMetrics } from '../../measure/trial/cpu.js';
import { formatShare } from '../../text/format.js';
import { BENCH_OPTIONS, onBench } from './open-bench.js';
import { parseSeconds, placeOf } from './setup.js';

const OPTIONS = {
  ...BENCH_OPTIONS,
  steps: { value: 'PERCENT', help: 'From one load to the next, as a share of the line rate. Default: 10%.' },
  seconds: { value: 'N', help: 'Length of each trial. Default: 2.' },
} as const satisfies OptionTable;

export const LOSS_HELP = `Usage: measure loss [options]

The frame loss rate curve of RFC 2544 section 26.3: one trial at line rate, then at ever lower loads, until two trials in a
row lose nothing.

${optionsHelp(OPTIONS)}
`;

/** The loads of RFC 2544 section 26.3 as shares of the line rate: 1, 1 − step, … above 0. */
export function lossLoads(step: number): number[] {
  // Multiples of the step from the top, so that roundings do not add up; to a millionth, so that they read well.
  const loads = Array.from({ length: Math.ceil(1 / step - 1e-9) }, (_, i) => Math.round((1 - i * step) * 1e6) / 1e6);
  return loads.filter((load) => load > 0);
}

const HEADS = ['size\nbytes', 'load, % of\nline rate', 'offered\nMpps', 'forwarded\nMpps', 'lost\nframes', 'loss'];

/** Runs `measure loss`. Returns the exit code. */
export async function runLoss(args: string[], io: Output): Promise<number> {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, LOSS_HELP)) return 0;
  const step = line.read('steps', parseStep) ?? 0.1;
  const seconds = line.read('seconds', parseSeconds) ?? 2;
  return onBench(line, io, { about: `${seconds} s a load`, heads: HEADS }, async (run) => {
    const { setup, bench, emitter, trials } = run;
    const remarks: string[] = [];
    for (const size of setup.sizes) {
      let lossless = 0;
      for (const load of lossLoads(step)) {
        const place = `${placeOf(size, setup)} at ${(100 * load).toFixed(1)} % of line rate`;
        emitter.progress(place);
        const asked = load * bench.maxLoad(size);
        const trial = await bench.run({ size, load: asked, seconds });
        trials.push(trial);
        const loss = trial.offered === 0 ? 0 : trial.lost / trial.offered;
        const offered = trial.offered / trial.seconds / 1e6;
        const short = shortOffer(asked, trial);
        if (short !== undefined) remarks.push(`${size} bytes at ${(100 * load).toFixed(1)} % of line rate: ${short}.`);
        emitter.add(
          {
            kind: 'loss',
            cell: { ...bench.cell(size), load },
            metrics: {
              offered_mpps: offered,
              mpps: trial.rate / 1e6,
              loss,
              lost_frames: trial.lost,
              ...costMetrics(trial),
              ...cpuMetrics(trial.cores),
            },
            ...noteOf(short),
            cores: trial.cores,
          },
          [
            String(size),
            (100 * load).toFixed(1),
            offered.toFixed(3),
            (trial.rate / 1e6).toFixed(3),
            String(trial.lost),
            formatShare(loss),
          ],
          `${place}: ${short === undefined ? '' : `${short}, `}${formatShare(loss)} lost`,
        );
        lossless = trial.lost === 0 ? lossless + 1 : 0;
        if (lossless === 2) break;
      }
    }
    return remarks.length === 0
      ? []
      : [
          `${remarks.join('\n')}\nWhat was lost there was lost at the load that was offered, not at the one that was asked for.`,
        ];
  });
}

function parseStep(text: string): number {
  const step = parsePercent(text);
  if (step >= 0.001) return step;
  throw new UsageError(`'${text}': expected 0.1% or more, such as 10%`);
}
