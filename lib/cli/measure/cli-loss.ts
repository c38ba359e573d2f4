import { UsageError } from '../../text/errors.js';
import { formatShare } from '../../text/format.js';
import { parsePercent } from '../../text/units.js';
import { benchRemarks, costMetrics, lossOf } from '../../measure/trial/bench.js';
import { shortOffer } from '../../measure/trial/offer.js';
import { experiment } from './experiment.js';
import { BENCH_OPTIONS } from './open-bench.js';
import { parseLength } from './setup-options.js';

/** The loads of RFC 2544 section 26.3 as shares of the line rate: 1, 1 − step, … above 0. */
export function lossLoads(step: number): number[] {
  // Multiples of the step from the top, so that roundings do not add up; to a millionth, so that they read well.
  const loads = Array.from({ length: Math.ceil(1 / step - 1e-9) }, (_, i) => Math.round((1 - i * step) * 1e6) / 1e6);
  return loads.filter((load) => load > 0);
}

/** `measure loss`. */
export const runLoss = experiment({
  kind: 'loss',
  help: [
    `Usage: measure loss [options]

The frame loss rate curve of RFC 2544 section 26.3: one trial at line rate, then at ever lower loads, until two trials in a
row lose nothing.`,
  ],
  options: {
    ...BENCH_OPTIONS,
    steps: { value: 'PERCENT', help: 'From one load to the next, as a share of the line rate. Default: 10%.' },
    seconds: { value: 'TIME', help: 'Length of each trial, such as 2 or 500ms. Default: 2.' },
  },
  heads: ({ frames: { unit } }) => [
    'load, % of\nline rate',
    `offered\n${unit}`,
    `forwarded\n${unit}`,
    'lost\nframes',
    'loss',
  ],
  plan(line) {
    const step = line.read('steps', parseStep) ?? 0.1;
    const seconds = line.read('seconds', parseLength) ?? 2;
    let fellShort = false;
    return {
      about: (ways) => `${ways}, ${seconds} s a load`,
      async *measure({ bench, units, size, name, run, progress, remark }) {
        let lossless = 0;
        for (const load of lossLoads(step)) {
          const percent = `at ${(100 * load).toFixed(1)} % of line rate`;
          progress(`${name} ${percent}`);
          const asked = load * bench.maxLoad(size);
          const trial = await run({ load: asked, seconds });
          const loss = lossOf(trial);
          const mpps = { offered_mpps: trial.offered / trial.seconds / 1e6, mpps: trial.rate / 1e6 };
          const short = shortOffer(asked, trial);
          if (short !== undefined) remark(` ${percent}: ${short}.`);
          fellShort ||= short !== undefined;
          yield {
            cell: { load },
            metrics: { ...mpps, loss, lost_frames: trial.lost, ...costMetrics(trial) },
            trial,
            notes: [short],
            texts: [
              (100 * load).toFixed(1),
              units.frames.text(trial.offered / trial.seconds),
              units.frames.text(trial.rate),
              String(trial.lost),
              formatShare(loss),
            ],
            said: `${name} ${percent}: ${short === undefined ? '' : `${short}, `}${formatShare(loss)} lost`,
          };
          lossless = trial.lost === 0 ? lossless + 1 : 0;
          if (lossless === 2) return;
        }
      },
      end: (trials) => [
        ...(fellShort
          ? ['What was lost there was lost at the load that was offered, not at the one that was asked for.']
          : []),
        ...benchRemarks(trials),
      ],
    };
  },
});

function parseStep(text: string): number {
  const step = parsePercent(text);
  if (step >= 0.001) return step;
  throw new UsageError(`'${text}': expected 0.1% or more, such as 10%`);
}
