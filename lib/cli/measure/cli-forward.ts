import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { formatRate, formatTime, lineRate, parseShare, WIRE_OVERHEAD_BYTES } from '../../text/units.js';
import { helped, type Output } from './measure-cli.js';
import { cpuMetrics } from '../../measure/trial/cpu.js';
import { Emitter, numberColumns } from './output-lines.js';
import { parseSeconds, placeOf, readSetup, SETUP_OPTIONS, setupCell, trialOptions } from './setup.js';
import { runTrial, type TrialResult } from '../../measure/trial/trial.js';

const OPTIONS = {
  ...SETUP_OPTIONS,
  load: { value: 'SHARE', help: 'Offered load as a share of the line rate. Default: 100%.' },
  seconds: { value: 'N', help: 'Length of each trial. Default: 2.' },
} as const satisfies OptionTable;

export const HELP = `Usage: measure [options]
       measure throughput …   the highest load without loss (NDR), and with at most 0.5 % (PDR)
       measure latency …      how long frames take at a share of that
       measure loss …         how much is lost at which load
       measure burst …        the longest burst at line rate that loses nothing
       measure matrix …       all of it for every combination of settings that a file names
       measure compare …      whether two result files differ, or only by noise
       measure report …       a page of results, for the screen and for paper
Each has a --help of its own. Without any of them:

Forwards between two simulated 10G ports with one thread and prints Mpps per frame size. Every frame is stamped when it
arrives and checked when it leaves: loss, duplicates, reordering and corruption are counted.

${optionsHelp(OPTIONS)}

Columns: offered and forwarded are sums of both directions in 10⁶ frames a second; on the wire counts the 20 bytes of
preamble and gap that every frame costs; busy is the share of one core's time that moved frames. Lost are frames that
arrived at one port and never left the other. A port that was too full says missed of them (no free rx slot when a frame
arrived), the port where they should have left says lost (their sequence numbers never came): the same frames, counted at
both ends, and the table has them once.
`;

const COLUMNS = numberColumns(
  'size\nbytes',
  'offered\nMpps',
  'forwarded\nMpps',
  '% of\nline rate',
  'lost\nframes',
  'loss',
  'dupli-\ncates',
  're-\nordered',
  'corrupt\nframes',
  'Gbit/s on\nthe wire',
  'busy\n%',
  'longest\ngap',
);

/** One size's figures: sums of the directions. */
interface Row {
  size: number;
  offeredMpps: number;
  forwardedMpps: number;
  lineRateShare: number;
  lost: number;
  loss: number;
  duplicates: number;
  reordered: number;
  corrupt: number;
  unexplained: number;
  wireGbps: number;
  busyShare: number;
  longestGapNs: number;
}

function rowOf(size: number, rate: number, trial: TrialResult): Row {
  const sum = (key: keyof TrialResult['directions'][number]): number =>
    trial.directions.reduce((total, direction) => total + direction[key], 0);
  const perSecond = sum('forwardedInTime') / trial.seconds;
  return {
    size,
    offeredMpps: sum('offered') / trial.seconds / 1e6,
    forwardedMpps: perSecond / 1e6,
    lineRateShare: perSecond / (lineRate(rate, size) * trial.directions.length),
    lost: sum('lost'),
    loss: sum('offered') === 0 ? 0 : sum('lost') / sum('offered'),
    duplicates: sum('duplicates'),
    reordered: sum('reordered'),
    corrupt: sum('corrupt'),
    unexplained: sum('unexplained'),
    wireGbps: (perSecond * (size + WIRE_OVERHEAD_BYTES) * 8) / 1e9,
    busyShare: trial.busyShare,
    longestGapNs: trial.longestGapNs,
  };
}

function cells(row: Row): string[] {
  return [
    String(row.size),
    row.offeredMpps.toFixed(3),
    row.forwardedMpps.toFixed(3),
    row.lineRateShare === 0 ? '–' : (100 * row.lineRateShare).toFixed(1),
    String(row.lost),
    row.lost === 0 ? '0' : `${(100 * row.loss).toPrecision(2)} %`,
    String(row.duplicates),
    String(row.reordered),
    String(row.corrupt),
    row.wireGbps.toFixed(3),
    (100 * row.busyShare).toFixed(0),
    formatTime(row.longestGapNs),
  ];
}

function metricsOf(row: Row, { cores }: TrialResult): Record<string, number> {
  return {
    mpps: row.forwardedMpps,
    offered_mpps: row.offeredMpps,
    wire_gbps: row.wireGbps,
    lost_frames: row.lost,
    loss: row.loss,
    duplicate_frames: row.duplicates,
    reordered_frames: row.reordered,
    corrupt_frames: row.corrupt,
    busy_share: row.busyShare,
    longest_gap_us: row.longestGapNs / 1e3,
    ...cpuMetrics(cores),
  };
}

/** Runs `measure` without a subcommand. Returns the exit code. */
export async function runForward(args: string[], io: Output): Promise<number> {
  const outer = args.map((arg) => /^--[tr]x(?==|$)/.exec(arg)?.[0]).find((option) => option !== undefined);
  if (outer !== undefined)
    throw new UsageError(
      `${outer}: without a subcommand, measure forwards between simulated ports; measure throughput, latency, loss and ` +
        'burst have a generator and a sink: measure throughput --tx PORT --rx PORT',
    );
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, HELP)) return 0;
  const setup = readSetup(line);
  const load = line.read('load', parseShare);
  // What the ports' names say is told apart already.
  const ownLoad = load !== undefined && setup.specs.some((spec) => spec.load !== load);
  const seconds = line.read('seconds', parseSeconds) ?? 2;
  const emitter = new Emitter(setup, io, COLUMNS);
  const speed = setup.rate === Infinity ? 'as fast as the machine goes' : `${formatRate(setup.rate)} links`;
  emitter.say(
    `${setup.names.join(setup.oneWay ? ' → ' : ' ⇄ ')}\n${speed}, ${setup.oneWay ? 'one way' : 'both ways'}, one thread, ` +
      `burst ${setup.burst}, ${seconds} s a size, every frame checked\n\n`,
  );
  const rows: Row[] = [];
  for (const size of setup.sizes) {
    emitter.progress(`${placeOf(size, setup)} …`);
    const trial = await runTrial({
      ...trialOptions(setup, size),
      seconds,
      ...(load === undefined ? {} : { load }),
    });
    const row = rowOf(size, setup.rate, trial);
    rows.push(row);
    emitter.add(
      {
        kind: 'forward',
        cell: { ...setupCell(setup, size), ...(ownLoad && { load }) },
        metrics: metricsOf(row, trial),
        cores: trial.cores,
      },
      cells(row),
      `${placeOf(size, setup)}: ${row.forwardedMpps.toFixed(3)} Mpps forwarded, ${row.lost} frames lost`,
    );
  }
  emitter.end(remarks(rows, setup.rate, Math.min(...setup.specs.map((spec) => spec.slots))));
  return rows.some((row) => row.unexplained > 0) ? 1 : 0;
}

/** What the figures do not say by themselves. */
function remarks(rows: readonly Row[], rate: number, slots: number): string[] {
  const said: string[] = [];
  const lossy = rows.filter((row) => row.lost > 0).sort((x, y) => y.longestGapNs - x.longestGapNs);
  // The time in which a ring that nobody empties fills.
  const held = lossy.find((row) => row.longestGapNs > ((slots - 1) * ((row.size + WIRE_OVERHEAD_BYTES) * 8e9)) / rate);
  if (held !== undefined)
    said.push(
      `Frames were lost where they found no free slot: at ${held.size} bytes the machine held the loop up for ` +
        `${formatTime(held.longestGapNs)}. On a quiet machine, or with --cpu on a core of its own, gaps are shorter.`,
    );
  else if (lossy.length > 0)
    said.push(
      'Frames were lost although the loop was never held up for as long as the rings last: the ports as they are set ' +
        'cannot carry this load (itr, txtimer, budget, drop), or one core cannot.',
    );
  const unexplained = rows.reduce((sum, row) => sum + row.unexplained, 0);
  if (unexplained > 0) said.push(`${unexplained} lost frames are in no counter: this is a fault, please report it.`);
  return said;
}
