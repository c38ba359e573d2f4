import { UsageError } from '../../text/errors.js';
import {
  formatFrameRate,
  formatRate,
  formatTime,
  lineRate,
  parseShare,
  WIRE_OVERHEAD_BYTES,
  meanSize,
  type FrameSize,
} from '../../text/units.js';
import {
  costMetrics,
  lossOf,
  simBench,
  threadMetrics,
  unexplainedRemarks,
  type BenchTrial,
} from '../../measure/trial/bench.js';
import { experiment } from './experiment.js';
import type { Command } from './measure-cli.js';
import { parseLength, readSetup, SETUP_OPTIONS } from './setup-options.js';

const forward = experiment({
  kind: 'forward',
  help: [
    `Usage: measure [options]
       measure throughput …   the highest load without loss (NDR), and with at most 0.5 % (PDR)
       measure latency …      how long frames take at a share of that
       measure loss …         how much is lost at which load
       measure burst …        the longest burst at line rate that loses nothing
       measure matrix …       all of it for every combination of settings that a file names
       measure ab …           whether two set-ups differ, both measured in turn
       measure compare …      whether two result files differ, or only by noise
       measure report …       a page of results, for the screen and for paper
Each has a --help of its own. Ctrl-C, SIGTERM and SIGHUP end it with what it has measured, a second signal at once.
Without any of them:

Forwards between two simulated 10G ports with one thread and prints Mpps per frame size. Every frame is stamped when it
arrives and checked when it leaves: loss, duplicates, reordering and corruption are counted.`,
    `Columns: offered and forwarded are sums of both directions, in frames a second; on the wire counts the 20 bytes of
preamble and gap that every frame costs; busy is the share of one core's time that moved frames. Lost are frames that
arrived at one port and never left the other. A port that was too full says missed of them (no free rx slot when a frame
arrived), the port where they should have left says lost (their sequence numbers never came): the same frames, counted at
both ends, and the table has them once.`,
  ],
  options: {
    ...SETUP_OPTIONS,
    load: { value: 'SHARE', help: 'Offered load as a share of the line rate. Default: 100%.' },
    seconds: { value: 'TIME', help: 'Length of each trial, such as 2 or 500ms. Default: 2.' },
  },
  heads: ({ frames, bits }) => [
    `offered\n${frames.unit}`,
    `forwarded\n${frames.unit}`,
    '% of\nline rate',
    'lost\nframes',
    'loss',
    'dupli-\ncates',
    're-\nordered',
    'corrupt\nframes',
    `${bits.unit} on\nthe wire`,
    'busy\n%',
    'longest\ngap',
  ],
  plan(line) {
    const setup = readSetup(line);
    const { rate, specs, burst } = setup;
    const load = line.read('load', parseShare);
    // What the ports' names say is told apart already.
    const ownLoad = load !== undefined && specs.some((spec) => spec.load !== load);
    const seconds = line.read('seconds', parseLength) ?? 2;
    const speed = rate === Infinity ? 'as fast as the machine goes' : `${formatRate(rate)} links`;
    const lossy: Lossy[] = [];
    return {
      open: () => ({ setup, bench: simBench(setup) }),
      about: (ways) => `${speed}, ${ways}, one thread, burst ${burst}, ${seconds} s a size, every frame checked`,
      async *measure({ bench, units, size, name, run, progress }) {
        progress(`${name} …`);
        const trial = await run({ seconds, ...(load !== undefined && { load: load * bench.maxLoad(size) }) });
        if (trial.lost > 0) lossy.push({ size, gapNs: trial.longestGapNs ?? 0 });
        const wireBits = trial.rate * (meanSize(size) + WIRE_OVERHEAD_BYTES) * 8;
        const share = trial.rate / bench.maxLoad(size);
        const { rate: perSecond, lost, duplicates, reordered, corrupt, busyShare, longestGapNs } = trial;
        const metrics = {
          mpps: perSecond / 1e6,
          offered_mpps: trial.offered / trial.seconds / 1e6,
          wire_gbps: wireBits / 1e9,
          lost_frames: lost,
          loss: lossOf(trial),
          duplicate_frames: duplicates,
          reordered_frames: reordered,
          corrupt_frames: corrupt,
          ...costMetrics(trial),
          ...threadMetrics(trial),
        };
        yield {
          ...(ownLoad && { cell: { load } }),
          metrics,
          trial,
          texts: [
            units.frames.text(trial.offered / trial.seconds),
            units.frames.text(perSecond),
            share === 0 ? '–' : (100 * share).toFixed(1),
            String(lost),
            lost === 0 ? '0' : `${(100 * metrics.loss).toPrecision(2)} %`,
            String(duplicates),
            String(reordered),
            String(corrupt),
            units.bits.text(wireBits),
            busyShare === undefined ? '–' : (100 * busyShare).toFixed(0),
            longestGapNs === undefined ? '–' : formatTime(longestGapNs),
          ],
          said: `${name}: ${formatFrameRate(perSecond)} forwarded, ${lost} frames lost`,
        };
      },
      end: (trials) => remarks(lossy, trials, rate, Math.min(...specs.map((spec) => spec.slots))),
    };
  },
});

/** `measure` without a subcommand. @throws UsageError */
export const runForward: Command = (args, io, stop) => {
  const outer = args.map((arg) => /^--[tr]x(?==|$)/.exec(arg)?.[0]).find((option) => option !== undefined);
  if (outer !== undefined)
    throw new UsageError(
      `${outer}: without a subcommand, measure forwards between simulated ports; measure throughput, latency, loss and ` +
        'burst have a generator and a sink: measure throughput --tx PORT --rx PORT',
    );
  return forward(args, io, stop);
};

/** A size at which frames were lost, and the longest time that the machine held the loop up meanwhile. */
interface Lossy {
  size: FrameSize;
  gapNs: number;
}

/** What the figures do not say by themselves. */
function remarks(lossy: readonly Lossy[], trials: readonly BenchTrial[], rate: number, slots: number): string[] {
  const said: string[] = [];
  const worst = lossy.toSorted((x, y) => y.gapNs - x.gapNs);
  // Longer than the time in which a ring that nobody empties fills.
  const held = worst.find(({ size, gapNs }) => gapNs > ((slots - 1) * 1e9) / lineRate(rate, size));
  if (held !== undefined)
    said.push(
      `Frames were lost where they found no free slot: at ${held.size} bytes the machine held the loop up for ` +
        `${formatTime(held.gapNs)}. On a quiet machine, or with --cpu on a core of its own, gaps are shorter.`,
    );
  else if (lossy.length > 0)
    said.push(
      'Frames were lost although the loop was never held up for as long as the rings last: the ports as they are set ' +
        'cannot carry this load (itr, txtimer, budget, drop), or one core cannot.',
    );
  return [...said, ...unexplainedRemarks(trials)];
}
