import { parseArgs } from 'node:util';
import { DEFAULT_BURST } from '../bridge.js';
import { UsageError } from '../errors.js';
import { formatPortSpec, parsePortSpec, type SimSpec } from '../portspec.js';
import { table, type Column } from '../table.js';
import {
  formatRate,
  formatTime,
  lineRate,
  parseCountWithin,
  parseRate,
  parseShare,
  parseSizes,
  WIRE_OVERHEAD_BYTES,
} from '../units.js';
import type { WaitMode } from '../wait.js';
import type { Output } from './cli.js';
import { appendResults, RESULT_VERSION, type Result } from './results.js';
import { describeSurroundings } from './surroundings.js';
import { runTrial, type TrialResult } from './trial.js';

/** RFC 2544 section 9.1 for Ethernet (64, 128, 256, 512, 1024, 1280, 1518), the sizes every report uses. */
const SIZES = '64,128,256,512,1024,1280,1518';
/**
 * Slots of the embedded default's rings: what 10G controllers of the ix and ixl families allow at most. At line rate
 * and 64 bytes they fill in 275 µs, so that a machine with other work to do holds the loop up without losing frames.
 */
const SLOTS = 4096;

export const HELP = `Usage: measure [options]

Forwards between two simulated 10G ports with one thread and prints Mpps per frame size. Every frame is stamped when it
arrives and checked when it leaves: loss, duplicates, reordering and corruption are counted.

  -i PORT          a port; give two. Default: sim:a@slots=${SLOTS} and sim:b@slots=${SLOTS}
      --size LIST  frame sizes in bytes, FCS included. Default: ${SIZES}
      --rate RATE  speed of the links: 10G, 25G, 40G, 100G, or max (as fast as the machine goes). Default: what the ports say
      --load SHARE offered load as a share of the line rate. Default: 100%
      --one-way    only from the first port to the second
      --seconds N  length of each trial. Default: 2
  -b, --burst N    slots moved per ring and turn. Default: ${DEFAULT_BURST}
  -c, --copy       copy frames although buffers could be exchanged
      --wait MODE  busy (spin, the default) or poll (sleep when there is nothing to do)
      --cpu N      CPU the forwarding thread runs on
      --json       one JSON object a line, as in result files (docs/results.md)
      --csv        comma-separated values
      --out FILE   append the results to FILE, for measure compare and measure report
  -h, --help       this text

Columns: offered and forwarded are sums of both directions in 10⁶ frames a second; on the wire counts the 20 bytes of
preamble and gap that every frame costs; busy is the share of one core's time that moved frames.
`;

interface Options {
  names: [string, string];
  sizes: number[];
  seconds: number;
  load: number | undefined;
  oneWay: boolean;
  burst: number;
  copy: boolean;
  wait: WaitMode;
  cpu: number | undefined;
  format: 'table' | 'json' | 'csv';
  out: string | undefined;
}

function readOptions(args: string[]): Options | 'help' {
  const { values } = parseArgs({
    args,
    options: {
      interface: { type: 'string', short: 'i', multiple: true },
      size: { type: 'string', default: SIZES },
      rate: { type: 'string' },
      load: { type: 'string' },
      'one-way': { type: 'boolean', default: false },
      seconds: { type: 'string', default: '2' },
      burst: { type: 'string', short: 'b', default: String(DEFAULT_BURST) },
      copy: { type: 'boolean', short: 'c', default: false },
      wait: { type: 'string', default: 'busy' },
      cpu: { type: 'string' },
      json: { type: 'boolean', default: false },
      csv: { type: 'boolean', default: false },
      out: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return 'help';
  const names = values.interface ?? [`sim:a@slots=${SLOTS}`, `sim:b@slots=${SLOTS}`];
  if (names.length !== 2)
    throw new UsageError(`-i: two ports are needed, ${names.length} given; example: -i sim:a -i sim:b@itr=124us`);
  const seconds = Number(values.seconds);
  if (!(seconds > 0 && seconds <= 86_400))
    throw new UsageError(`--seconds ${values.seconds}: expected more than 0 and at most 86400, such as 2 or 0.5`);
  if (values.wait !== 'busy' && values.wait !== 'poll')
    throw new UsageError(`--wait ${values.wait}: expected busy or poll`);
  if (values.json && values.csv) throw new UsageError('--json and --csv: only one of them at a time');
  const rate = values.rate === undefined ? undefined : parseRate(values.rate);
  const specs = names.map((name) => withRate(name, rate));
  return {
    names: [formatPortSpec(specs[0]), formatPortSpec(specs[1])],
    sizes: parseSizes(values.size),
    seconds,
    load: values.load === undefined ? undefined : parseShare(values.load),
    oneWay: values['one-way'],
    burst: parseCountWithin(values.burst, 1, 65_536, 'burst'),
    copy: values.copy,
    wait: values.wait,
    cpu: values.cpu === undefined ? undefined : parseCountWithin(values.cpu, 0, 1023, 'CPU'),
    format: values.json ? 'json' : values.csv ? 'csv' : 'table',
    out: values.out,
  };
}

function withRate(name: string, rate: number | undefined): SimSpec {
  const spec = parsePortSpec(name);
  if (spec.kind !== 'sim')
    throw new UsageError(
      `-i ${name}: measure makes and checks its own frames on simulated ports (sim:NAME@…); to measure ${name}, ` +
        'name the ports of a generator and a sink: measure throughput --tx PORT --rx PORT',
    );
  return rate === undefined ? spec : { ...spec, rate };
}

const COLUMNS: readonly Column[] = [
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
].map((head) => ({ head, align: 'right' }));

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

function resultOf(options: Options, row: Row, rate: number): Result {
  return {
    v: RESULT_VERSION,
    kind: 'forward',
    cell: { size: row.size, a: options.names[0], b: options.names[1], oneWay: options.oneWay, burst: options.burst },
    repeat: 0,
    metrics: {
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
    },
    ...(rate === Infinity ? {} : { link_gbps: rate / 1e9 }),
    surroundings: describeSurroundings(),
    time: new Date().toISOString(),
  };
}

/** Runs `measure` without a subcommand. Returns the exit code. */
export async function runForward(args: string[], io: Output): Promise<number> {
  const options = readOptions(args);
  if (options === 'help') {
    io.out(HELP);
    return 0;
  }
  const { rate } = parsePortSpec(options.names[0]) as SimSpec;
  if (options.format === 'table') {
    io.out(`${options.names.join(options.oneWay ? ' → ' : ' ⇄ ')}\n`);
    const speed = rate === Infinity ? 'as fast as the machine goes' : `${formatRate(rate)} links`;
    const ways = options.oneWay ? 'one way' : 'both ways';
    io.out(
      `${speed}, ${ways}, one thread, burst ${options.burst}, ${options.seconds} s a size, every frame checked\n\n`,
    );
  }
  const rows: Row[] = [];
  for (const size of options.sizes) {
    progress(`${size} bytes: ${rows.length + 1} of ${options.sizes.length} …`);
    const trial = await runTrial({
      names: options.names,
      size,
      seconds: options.seconds,
      oneWay: options.oneWay,
      burst: options.burst,
      copy: options.copy,
      wait: options.wait,
      ...(options.load === undefined ? {} : { load: options.load }),
      ...(options.cpu === undefined ? {} : { cpu: options.cpu }),
    });
    progress('');
    const row = rowOf(size, rate, trial);
    rows.push(row);
    const result = resultOf(options, row, rate);
    if (options.out !== undefined) appendResults(options.out, [result]);
    if (options.format === 'json') io.out(`${JSON.stringify(result)}\n`);
    if (options.format === 'csv') {
      const { metrics } = result;
      if (rows.length === 1) io.out(`size,${Object.keys(metrics).join(',')}\n`);
      io.out(`${size},${Object.values(metrics).join(',')}\n`);
    }
  }
  if (options.format === 'table') io.out(`${table(COLUMNS, rows.map(cells)).join('\n')}\n${remarks(rows)}`);
  return rows.some((row) => row.unexplained > 0) ? 1 : 0;
}

/** What the figures do not say by themselves. */
function remarks(rows: readonly Row[]): string {
  const said: string[] = [];
  const worst = rows
    .filter((row) => row.lost > 0)
    .sort((x, y) => y.longestGapNs - x.longestGapNs)
    .at(0);
  if (worst !== undefined)
    said.push(
      `Frames were lost where they found no free slot: at ${worst.size} bytes the machine held the loop up for ` +
        `${formatTime(worst.longestGapNs)}. On a quiet machine, or with --cpu on a core of its own, gaps are shorter.`,
    );
  const unexplained = rows.reduce((sum, row) => sum + row.unexplained, 0);
  if (unexplained > 0) said.push(`${unexplained} lost frames are in no counter: this is a fault, please report it.`);
  return said.map((sentence) => `\n${sentence}\n`).join('');
}

/** One line on a terminal that the next one replaces; nothing where stderr is not a terminal. */
function progress(text: string): void {
  if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
}
