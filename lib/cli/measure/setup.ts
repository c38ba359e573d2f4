/** What the subcommands that run trials have in common: their options, and what these say. */
import { DEFAULT_BURST } from '../../forward/bridge.js';
import type { CommandLine, OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { formatPortSpec, parsePortSpec, type SimSpec } from '../../names/portspec.js';
import { parseCountWithin, parseRate, parseSizes } from '../../text/units.js';
import type { WaitMode } from '../../forward/wait.js';
import type { Cell } from '../../measure/results/results.js';
import type { TrialOptions } from '../../measure/trial/trial.js';

/** RFC 2544 section 9.1 for Ethernet, the sizes every report uses. */
export const SIZES = '64,128,256,512,1024,1280,1518';
/**
 * Slots of the embedded default's rings: what 10G controllers of the ix and ixl families allow at most. At line rate
 * and 64 bytes they fill in 275 µs, so that a machine with other work to do holds the loop up without losing frames.
 */
export const SLOTS = 4096;
/**
 * Its buffers, in bytes: 2,048 as everywhere and one cache line more, or the first line of every frame falls into the
 * same few sets of the caches (docs/performance.md).
 */
const BUF = 2112;
const defaultPort = (name: string): string => `sim:${name}@slots=${SLOTS},buf=${BUF}`;
/** The two ports that are measured when none is named, on the command line and in a matrix. */
export const DEFAULT_PORTS: readonly [string, string] = [defaultPort('a'), defaultPort('b')];

export const SETUP_OPTIONS = {
  interface: {
    short: 'i',
    value: 'PORT',
    repeat: true,
    help: `A port; give two. Default: ${DEFAULT_PORTS.join(' and ')}, at 10 Gbit/s.`,
  },
  size: { value: 'LIST', help: `Frame sizes in bytes, FCS included. Default: ${SIZES}.` },
  sizes: { value: 'LIST', help: 'The same as --size.' },
  rate: {
    value: 'RATE',
    help: 'Speed of the links: 10G, 25G, 40G, 100G, or max (as fast as the machine goes). Default: what the ports say.',
  },
  'one-way': { help: 'Only from the first port to the second.' },
  burst: { short: 'b', value: 'N', help: `Slots moved per ring and turn. Default: ${DEFAULT_BURST}.` },
  copy: { short: 'c', help: 'Copy frames although buffers could be exchanged.' },
  wait: { value: 'MODE', help: 'busy (spin, the default) or poll (sleep when there is nothing to do).' },
  cpu: { value: 'N', help: 'CPU the forwarding thread runs on.' },
  json: { help: 'One JSON object a line, as in result files (docs/results.md).' },
  csv: { help: 'Comma-separated values.' },
  out: { value: 'FILE', help: 'Append the results to FILE, for measure compare and measure report.' },
  help: { short: 'h', help: 'This text.' },
} as const satisfies OptionTable;

/** What is measured at, how a bridge of this process does its work, and where results go. */
export interface Common {
  sizes: number[];
  /** Speed of the link over which frames arrive, bits per second. */
  rate: number;
  oneWay: boolean;
  burst: number;
  copy: boolean;
  wait: WaitMode;
  cpu: number | undefined;
  format: 'table' | 'json' | 'csv';
  out: string | undefined;
}

/** The same for two simulated ports; frames arrive at both. */
export interface Setup extends Common {
  names: readonly [string, string];
  specs: readonly [SimSpec, SimSpec];
}

/** Speed of a link that nothing names a speed for, bits per second. */
export const DEFAULT_RATE = 1e10;
const DEFAULT_WAIT: WaitMode = 'busy';
/** Bits per second: no link is slower, so that a number below it lacks its unit. */
const LEAST_RATE = 1000;

/** Speed of a link as `--rate` gives it: {@link parseRate}, but not `10` where 10G is meant. @throws UsageError */
function parseLinkRate(text: string): number {
  const rate = parseRate(text);
  if (rate >= LEAST_RATE || /[a-z]/i.test(text)) return rate;
  throw new UsageError(`'${text}' has no unit, and ${text} bit/s is no link's speed; write ${text}G`);
}

/** Reads {@link SETUP_OPTIONS} but for the ports. @throws UsageError */
export function readCommon(line: CommandLine<keyof typeof SETUP_OPTIONS>): Common {
  if (line.positionals.length > 0)
    throw new UsageError(`'${line.positionals[0]}' is not expected here; ports are named with -i PORT`);
  if (line.has('size') && line.has('sizes')) throw new UsageError('--size and --sizes are the same; give one of them');
  if (line.has('json') && line.has('csv')) throw new UsageError('--json and --csv: only one of them at a time');
  return {
    sizes: line.read('size', parseSizes) ?? line.read('sizes', parseSizes) ?? parseSizes(SIZES),
    rate: line.read('rate', parseLinkRate) ?? DEFAULT_RATE,
    oneWay: line.has('one-way'),
    burst: line.read('burst', (text) => parseCountWithin(text, 1, 65_536)) ?? DEFAULT_BURST,
    copy: line.has('copy'),
    wait: line.word('wait', ['busy', 'poll']) ?? DEFAULT_WAIT,
    cpu: line.read('cpu', (text) => parseCountWithin(text, 0, 1023)),
    format: line.has('json') ? 'json' : line.has('csv') ? 'csv' : 'table',
    out: line.read('out', String),
  };
}

/** Reads {@link SETUP_OPTIONS}. @throws UsageError */
export function readSetup(line: CommandLine<keyof typeof SETUP_OPTIONS>): Setup {
  const common = readCommon(line);
  const names = line.has('interface') ? line.all('interface') : DEFAULT_PORTS;
  if (names.length !== 2)
    throw new UsageError(`-i: two ports are needed, ${names.length} given; example: -i sim:a -i sim:b@itr=124us`);
  const rate = line.read('rate', parseLinkRate);
  const specs = [withRate(names[0], rate), withRate(names[1], rate)] as const;
  return { ...common, names: [formatPortSpec(specs[0]), formatPortSpec(specs[1])], specs, rate: specs[0].rate };
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

/** Seconds as the options give them. @throws UsageError */
export function parseSeconds(text: string): number {
  const seconds = /^\d+(\.\d+)?$/.test(text) ? Number(text) : NaN;
  if (seconds > 0 && seconds <= 86_400) return seconds;
  throw new UsageError(`'${text}': expected seconds, more than 0 and at most 86400, such as 2 or 0.5`);
}

/** A size and its place among the others, for progress: "64 bytes (1 of 7)". */
export function placeOf(size: number, { sizes }: Common): string {
  return sizes.length === 1 ? `${size} bytes` : `${size} bytes (${sizes.indexOf(size) + 1} of ${sizes.length})`;
}

/** What a trial of this setup is always told. */
export function trialOptions(setup: Setup, size: number): Omit<TrialOptions, 'seconds'> {
  const { names, oneWay, burst, copy, wait, cpu } = setup;
  return { names, size, oneWay, burst, copy, wait, ...(cpu === undefined ? {} : { cpu }) };
}

/** The settings that results of this setup are told apart by. */
export function setupCell(setup: Setup, size: number): Cell {
  const { names, oneWay, burst, copy } = setup;
  return { size, a: names[0], b: names[1], oneWay, burst, ...(copy && { copy }), ...waitCell(setup) };
}

/** A setting at its default is in no cell: results from before it was told still compare. */
export function waitCell({ wait }: Common): Cell {
  return wait === DEFAULT_WAIT ? {} : { wait };
}
