/** The options that the subcommands which run trials have in common, and what they say. */
import { DEFAULT_BURST } from '../../forward/bridge.js';
import type { CommandLine, OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { formatPortSpec, parsePortSpec, type SimSpec } from '../../names/portspec.js';
import {
  BURST,
  CPU,
  parseDuration,
  parseRate,
  parseSizes,
  within,
  type Range,
  frameSizeOf,
  type FrameSize,
} from '../../text/units.js';
import { DEFAULT_PORTS, DEFAULT_RATE, DEFAULT_WAIT, type Setup, type SimSetup } from '../../measure/trial/setup.js';

/** RFC 2544 section 9.1 for Ethernet, the sizes every report uses. */
const SIZES = '64,128,256,512,1024,1280,1518';
export const SETUP_OPTIONS = {
  interface: {
    short: 'i',
    value: 'PORT',
    repeat: true,
    help: `A port; give two. Default: ${DEFAULT_PORTS.join(' and ')}, at 10 Gbit/s.`,
  },
  size: { value: 'LIST', help: `Frame sizes in bytes, FCS included, and mixes: 64,imix,64*7+1518. Default: ${SIZES}.` },
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
  strict: {
    help: 'Make a trial again whose forwarding thread waited for a CPU more than 5% of the time; fail when five did.',
  },
  json: { help: 'One JSON object a line, as in result files (docs/results.md).' },
  csv: { help: 'Comma-separated values.' },
  out: { value: 'FILE', help: 'Append the results to FILE, for measure compare and measure report.' },
  help: { short: 'h', help: 'This text.' },
} as const satisfies OptionTable;

/** Bits per second: no link is slower, so that a number below it lacks its unit. */
const LEAST_RATE = 1000;

/** Speed of a link as `--rate` gives it: {@link parseRate}, but not `10` where 10G is meant. @throws UsageError */
function parseLinkRate(text: string): number {
  const rate = parseRate(text);
  if (rate >= LEAST_RATE || /[a-z]/i.test(text)) return rate;
  throw new UsageError(`'${text}' has no unit, and ${text} bit/s is no link's speed; write ${text}G`);
}

/** Where results go. */
export interface Destination {
  format: 'table' | 'json' | 'csv';
  /** A file that they are appended to. */
  out: string | undefined;
}

/** @throws UsageError */
export function readDestination(line: CommandLine<'json' | 'csv' | 'out'>): Destination {
  if (line.has('json') && line.has('csv')) throw new UsageError('--json and --csv: only one of them at a time');
  return { format: line.has('json') ? 'json' : line.has('csv') ? 'csv' : 'table', out: line.read('out', String) };
}

/** Reads {@link SETUP_OPTIONS} but for the ports. @throws UsageError */
export function readCommon(line: CommandLine<keyof typeof SETUP_OPTIONS>): Setup {
  if (line.positionals.length > 0)
    throw new UsageError(`'${line.positionals[0]}' is not expected here; ports are named with -i PORT`);
  if (line.has('size') && line.has('sizes')) throw new UsageError('--size and --sizes are the same; give one of them');
  return {
    sizes: line.read('size', parseSizes) ?? line.read('sizes', parseSizes) ?? parseSizes(SIZES),
    rate: line.read('rate', parseLinkRate) ?? DEFAULT_RATE,
    oneWay: line.has('one-way'),
    burst: line.read('burst', within(BURST)) ?? DEFAULT_BURST,
    copy: line.has('copy'),
    wait: line.word('wait', ['busy', 'poll']) ?? DEFAULT_WAIT,
    cpu: line.read('cpu', within(CPU)),
  };
}

/** Reads {@link SETUP_OPTIONS}. @throws UsageError */
export function readSetup(line: CommandLine<keyof typeof SETUP_OPTIONS>): SimSetup {
  const common = readCommon(line);
  const names = line.has('interface') ? line.all('interface') : DEFAULT_PORTS;
  if (names.length !== 2)
    throw new UsageError(`-i: two ports are needed, ${names.length} given; example: -i sim:a -i sim:b@itr=124us`);
  const rate = line.read('rate', parseLinkRate);
  const specs = [withRate(names[0], rate), withRate(names[1], rate)] as const;
  const sizes = withNamedSizes(line, names, specs) ?? common.sizes;
  return { ...common, sizes, names: [formatPortSpec(specs[0]), formatPortSpec(specs[1])], specs, rate: specs[0].rate };
}

/** The size that a port's name says is measured, and no other. @throws UsageError where sizes contradict each other */
function withNamedSizes(
  line: CommandLine<'size' | 'sizes'>,
  names: readonly string[],
  specs: readonly SimSpec[],
): FrameSize[] | undefined {
  const given = line.read('size', parseSizes) ?? line.read('sizes', parseSizes);
  const named = new Set(names.flatMap((name, i) => (/[@,]size=/.test(name) ? [frameSizeOf(specs[i].size)] : [])));
  const all = new Set([...named, ...(given ?? [])]);
  if (named.size > 0 && all.size > 1)
    throw new UsageError(
      `sizes ${[...all].join(' and ')}: a port's name and the command line say different sizes; leave size= out of the names`,
    );
  return named.size > 0 ? [...named] : undefined;
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

/** Trials of one length, or searches, of which a figure is made. */
export const TRIALS: Range = { what: 'trials', min: 1, max: 1000 };

/** The longest trial, seconds. */
const DAY = 86_400;

/** Seconds that a trial takes. @throws UsageError */
export function parseLength(text: string): number {
  const seconds = parseDuration(text);
  if (seconds <= DAY) return seconds;
  throw new UsageError(`'${text}': expected at most a day (24h)`);
}
