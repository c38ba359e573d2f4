import { UsageError, printable } from '../../text/errors.js';
import { checkSize, leastSizes, type Flow } from '../../gen/headers.js';
import { parseEndpoint, parseMacRange, type Endpoint } from '../../gen/range.js';
import type { GenMode, GenSettings } from '../../gen/job.js';
import {
  BURST,
  CPU,
  FRAMES,
  IMIX,
  MAX_FRAME_SIZE,
  MIN_FRAME_SIZE,
  mixSequence,
  parseCountWithin,
  parseDuration,
  parseMilliseconds,
  parsePace,
  parseWirePace,
  parseSeconds,
  rangeText,
  within,
  type Range,
} from '../../text/units.js';
import { CommandLine, optionsHelp, type OptionTable } from '../options.js';

/** As pkt-gen's: frames put into a ring at once. */
const DEFAULT_BURST = 512;
const THREADS: Range = { what: 'threads', min: 1, max: 256 };
const RINGS: Range = { what: 'rings', min: 1, max: 256 };
const LOOPS: Range = { what: 'count', min: 1, max: 1e9 };
const DEFAULT_PORT = 1234;
/** Addresses set aside for benchmarks: 198.18.0.0/15 (RFC 2544, C.2.2) and 2001:2::/48 (RFC 5180, 8). */
const ADDRESSES = { 4: ['198.18.0.1', '198.19.0.1'], 6: ['2001:2::1', '2001:2:0:1::1'] } as const;
/** Sizes that -Z repeats: many, and prime, so that they do not fall into step with rings. */
const RANDOM_SIZES = 4093;

const OPTIONS = {
  interface: { short: 'i', value: 'PORT', help: 'The port to send and receive on.' },
  function: {
    short: 'f',
    value: 'MODE',
    help: 'tx sends, rx (default) counts what arrives, ping sends and times what comes back, pong sends back what a tx or ping sent.',
  },
  frames: { short: 'n', value: 'FRAMES', help: 'End after so many frames; 10k and 1M are understood.' },
  time: { short: 't', value: 'SECONDS', help: 'End after so long; 10, .5, 500ms, 1m and 1h are understood.' },
  size: {
    short: 'l',
    value: 'SIZE',
    help: 'Frame size in bytes with the 4-byte FCS: -l 64 puts 60 bytes into the slot. Default 64, or what headers and tag take if that is more.',
  },
  'random-size': { short: 'Z', value: 'SIZE', help: 'Sizes at random, from -l up to this one.' },
  imix: { help: 'Sizes 64, 594 and 1518 in the proportion 7 : 4 : 1.' },
  rate: {
    short: 'R',
    value: 'RATE',
    help: 'Frames a second (1M, 14.88M, 100k), or bits a second on the wire where the unit says bits (10Gbps, 2.5Gbit/s: each frame counts 20 bytes more, preamble and gap). Default: as fast as the port takes them; ping: each as soon as the one before was answered.',
  },
  burst: {
    short: 'b',
    value: 'FRAMES',
    help: `Frames put into a ring at once, and frames that a held-up sender catches up by; what it is further behind is given up and reported. ${rangeText(BURST)}, default ${DEFAULT_BURST}.`,
  },
  source: {
    short: 's',
    value: 'ADDRESS',
    help: 'Source address and UDP port, or a range: 10.0.0.1, 10.0.0.1:2000-10.0.1.255:2050, [fd00::1]:2000. Default 198.18.0.1:1234 or [2001:2::1]:1234. Ranges step with each frame like an odometer: source port, source address, destination port, destination address.',
  },
  destination: {
    short: 'd',
    value: 'ADDRESS',
    help: 'Destination address and UDP port, or a range. Default 198.19.0.1:1234 or [2001:2:0:1::1]:1234.',
  },
  'source-mac': {
    short: 'S',
    value: 'MAC',
    help: "Source MAC address, or a range 02:00:00:00:00:01-02:00:00:00:00:ff. Default: the interface's own.",
  },
  'destination-mac': {
    short: 'D',
    value: 'MAC',
    help: 'Destination MAC address, or a range. Default ff:ff:ff:ff:ff:ff. MAC ranges step with each frame, each on its own.',
  },
  ipv4: { short: '4', help: 'UDP over IPv4. The default.' },
  ipv6: { short: '6', help: 'UDP over IPv6.' },
  vlan: { value: 'ID[:ID]', help: 'A VLAN tag (802.1Q), or two (802.1ad outside).' },
  'random-payload': { short: 'z', help: 'Payloads of random bytes, different from frame to frame.' },
  'no-tag': { help: 'Leave the tag out of the payload: rx then counts frames and bytes only.' },
  replay: {
    short: 'P',
    value: 'FILE',
    help: 'Send the frames of a capture (pcap, pcapng) as they are, at their own timing.',
  },
  speed: { value: 'FACTOR|max', help: 'With -P: so many times as fast as captured, or as fast as possible.' },
  loops: { value: 'TIMES', help: 'With -P: send the capture so often. Default 1.' },
  'wait-link': {
    short: 'w',
    value: 'SECONDS',
    help: 'Wait so long at most for the link to come up. Default 4 for interfaces, 0 for ports that have no link.',
  },
  rings: {
    short: 'p',
    value: 'RINGS',
    help: 'Send on so many tx rings, in turn, each a stream of its own; with -c, all threads together. Default: all.',
  },
  threads: {
    short: 'c',
    value: 'THREADS',
    help: "Share the port's rings and the rate out among so many threads. An interface needs a ring (queue) for each, a simulated port rings= in its name. Default 1.",
  },
  cpu: {
    short: 'a',
    value: 'CPU',
    help: 'Run the thread on this CPU, numbered from 0; several threads on this one and those that follow.',
  },
  wait: {
    value: 'busy|poll',
    help: 'What to do when no frame arrives: busy (default) looks again at once and takes a whole core, poll sleeps until the port has work, which adds to latencies.',
  },
  'no-promisc': { help: 'Leave the interface out of promiscuous mode.' },
  interval: {
    short: 'T',
    value: 'MS',
    help: 'Print a line every so many milliseconds, or 500ms, 10s, 1m. Default 1000; 0: none.',
  },
  raw: { short: 'N', help: 'Print plain numbers: frames and bits a second instead of Mpps and Gbit/s.' },
  json: {
    help: 'Print one JSON object a line: {"type":"open"|"say"|"stats"|"summary"|"error", …}. Numbers are numbers; their units are in their names.',
  },
  out: { value: 'FILE', help: 'Add the result to a result file, for measure report and measure compare.' },
  help: { short: 'h', help: 'Print this.' },
  version: { help: 'Print the version.' },
} as const satisfies OptionTable;

export const PKT_GEN_HELP = `usage: pkt-gen [options] -i PORT -f tx|rx|ping|pong

Sends, counts, and times frames on any kind of port: UDP over IPv4 or IPv6, with right checksums. Each frame carries a
tag in its payload: stream, sequence number and time of sending. rx tells from it loss, duplication, reordering and, on
one machine, latency.

options
${optionsHelp(OPTIONS)}

Sizes are those of frames with their 4-byte FCS, as RFC 2544 counts them; pkt-gen of netmap counts without. The tag
takes 18 bytes: frames have room for it from 64 bytes on with IPv4, 84 with IPv6, and 4 more for each VLAN tag. Smaller
ones are sent without, and that is said.

The summary's rates are of the time from the first frame to the last; each line before it is of its own interval.

Latency and jitter: times are CLOCK_MONOTONIC of this machine, read once a turn of the loop. Sender and receiver must
be on one machine; times that another clock wrote are counted apart. Jitter is how the time from one frame to the next
differs from the one asked for, at the moment a frame is handed to the port.

SIGINT (Ctrl-C), SIGTERM and SIGHUP stop it: what is in the tx rings is sent, the port is closed, a summary is printed.
Frames count as sent when they have left. A second signal, more than a second later, ends it at once, a third even while
it waits for a FIFO that nobody else opens.

exit code: 0 done, 1 the run failed or a capture was damaged, 2 wrong usage, 128 + signal after a second signal

examples
  pkt-gen -i netmap:ix0 -f tx -l 64                        64-byte frames as fast as ix0 takes them
  pkt-gen -i xdp:eth1 -f tx -R 100k -d 10.0.0.1:2000-10.0.0.255:2000
  pkt-gen -i ix1 -f rx                                     count what arrives at ix1
  pkt-gen -i pipe:lab{1 -f ping -n 1000                    round trips; at the other end:
  pkt-gen -i pipe:lab}1 -f pong
  pkt-gen -i pcap:@out=x.pcap -f tx -n 100 --imix -6       frames into a file, for tshark
  pkt-gen -i xdp:eth1 -f tx -P trace.pcapng --speed 2
`;

/** What the command line of `pkt-gen` asks for. */
export interface PktGenCommand {
  action: 'run' | 'help' | 'version';
  settings: GenSettings;
  json: boolean;
  raw: boolean;
  /** Seconds between report lines; 0: none. */
  intervalSeconds: number;
  out: string | undefined;
  /** What a person should know about the frames, a sentence each. */
  notes: string[];
}

type Line = CommandLine<keyof typeof OPTIONS>;

/** Options that only frames that are made up have, and only those of a capture. */
const MADE = [
  'size',
  'random-size',
  'imix',
  'source',
  'destination',
  'source-mac',
  'destination-mac',
  'ipv4',
  'ipv6',
] as const;
const MADE_TOO = ['vlan', 'random-payload', 'no-tag'] as const;

/** @throws UsageError */
export function parsePktGen(args: readonly string[]): PktGenCommand {
  const line = new CommandLine(OPTIONS, args);
  const action = line.has('help') ? 'help' : line.has('version') ? 'version' : 'run';
  const mode = line.word('function', ['tx', 'rx', 'ping', 'pong']) ?? 'rx';
  if (action === 'run') checkOptions(line, mode);
  const flow = parseFlow(line);
  const sizes = action === 'run' ? parseSizes(line, flow) : [];
  const made = mode === 'ping' || (mode === 'tx' && !line.has('replay'));
  const file = line.read('replay', (text) => text);
  // Each frame of a capture has a size of its own.
  const wireRate = file === undefined ? undefined : line.read('rate', parseWirePace);
  return {
    action,
    settings: {
      name: line.read('interface', (text) => text) ?? '',
      mode,
      flow,
      sizes,
      promisc: !line.has('no-promisc'),
      linkWait: line.read('wait-link', parseSeconds),
      wait: line.word('wait', ['busy', 'poll']) ?? 'busy',
      frames: line.read('frames', within(FRAMES)) ?? 0,
      seconds: line.read('time', parseDuration) ?? 0,
      threads: line.read('threads', within(THREADS)) ?? 1,
      cpu: line.read('cpu', within(CPU)) ?? -1,
      burst: line.read('burst', within(BURST)) ?? DEFAULT_BURST,
      rate: wireRate === undefined ? line.read('rate', (text) => parsePace(text, meanOf(sizes))) : undefined,
      rings: line.read('rings', within(RINGS)) ?? 0,
      randomPayload: line.has('random-payload'),
      plain: line.has('no-tag'),
      stream: Math.floor(Math.random() * 0x10000),
      replay: file === undefined ? undefined : { file, wireRate, ...parseReplay(line) },
    },
    json: line.has('json'),
    raw: line.has('raw'),
    intervalSeconds: line.read('interval', parseMilliseconds) ?? 1,
    out: line.read('out', (text) => text),
    notes: made ? tagNotes(flow, sizes, line.has('no-tag'), mode) : [],
  };
}

function checkOptions(line: Line, mode: GenMode): void {
  if (!line.has('interface')) throw new UsageError('no port is named; write pkt-gen -i PORT, for example -i sim:a');
  const [surplus] = line.positionals as readonly [string?];
  if (surplus !== undefined)
    throw new UsageError(`'${printable(surplus)}' is too much; every value follows its option, the port is -i PORT`);
  const refuse = (names: readonly (keyof typeof OPTIONS)[], why: string): void => {
    for (const name of names) if (line.has(name)) throw new UsageError(`option --${name} ${why}; leave it out`);
  };
  const sends = mode === 'tx' || mode === 'ping';
  if (!sends) refuse([...MADE, ...MADE_TOO, 'rate', 'rings'], `is about frames to send, -f ${mode} makes none`);
  if (mode !== 'tx') refuse(['replay'], `goes with -f tx, not with -f ${mode}`);
  if (mode === 'ping') refuse(['no-tag', 'rings', 'threads'], 'does not go with -f ping');
  if (line.has('replay'))
    refuse([...MADE, ...MADE_TOO, 'rings', 'threads'], 'is about frames that are made up, -P sends those of a capture');
  else refuse(['speed', 'loops'], 'goes with -P');
  if (line.has('rate') && line.has('speed')) refuse(['speed'], 'and --rate both say how fast the capture is sent');
}

function parseFlow(line: Line): GenSettings['flow'] {
  const ends = (['source', 'destination'] as const).map((name) =>
    line.read(name, (text) => parseEndpoint(text, DEFAULT_PORT)),
  );
  const asked = line.has('ipv6') ? 6 : line.has('ipv4') ? 4 : undefined;
  if (line.has('ipv6') && line.has('ipv4')) throw new UsageError('-4 and -6 are both given; leave one out');
  const family = asked ?? ends.find((end) => end !== undefined)?.family ?? 4;
  const [source, destination] = ends.map((end, k): Endpoint => {
    if (end !== undefined && end.family !== family)
      throw new UsageError(
        `the ${k === 0 ? 'source' : 'destination'} is an IPv${end.family} address, the frames are IPv${family}; write both ends in one version`,
      );
    return end ?? parseEndpoint(ADDRESSES[family][k], DEFAULT_PORT);
  });
  return {
    sourceMac: line.read('source-mac', parseMacRange) ?? null,
    destinationMac: line.read('destination-mac', parseMacRange) ?? parseMacRange('ff:ff:ff:ff:ff:ff'),
    vlans: line.read('vlan', parseVlans) ?? [],
    source,
    destination,
  };
}

function parseVlans(text: string): number[] {
  const ids = text.split(':');
  if (ids.length > 2)
    throw new UsageError(`'${printable(text)}' has more than two VLAN tags; write --vlan 100 or --vlan 100:200`);
  return ids.map((id) => parseCountWithin(id, 0, 4094, 'VLAN id'));
}

function parseSize(text: string): number {
  return parseCountWithin(text, MIN_FRAME_SIZE, MAX_FRAME_SIZE, 'frame size (bytes with FCS)');
}

function parseSizes(line: Line, flow: Pick<Flow, 'vlans' | 'source'>): number[] {
  const size = line.read('size', parseSize) ?? Math.max(MIN_FRAME_SIZE, leastSizes(flow).tagged);
  const most = line.read('random-size', parseSize);
  if (line.has('imix') && (line.has('size') || most !== undefined))
    throw new UsageError('--imix says the sizes; leave out -l and -Z');
  if (most !== undefined && most < size)
    throw new UsageError(`-Z ${most} is below the least size ${size}; write a larger -Z`);
  let sizes = [size];
  if (line.has('imix')) sizes = mixSequence(IMIX);
  if (most !== undefined)
    sizes = Array.from({ length: RANDOM_SIZES }, () => size + Math.floor(Math.random() * (most - size + 1)));
  // IMIX frames that the headers do not fit are as small as can be.
  if (line.has('imix')) sizes = sizes.map((each) => Math.max(each, leastSizes(flow).plain));
  for (const each of new Set(sizes)) checkSize(flow, each);
  return sizes;
}

const meanOf = (sizes: readonly number[]): number => sizes.reduce((sum, size) => sum + size, 0) / sizes.length;

function parseReplay(line: Line): { speed: number; loops: number } {
  const speed = line.read('speed', (text) => {
    if (text === 'max') return Infinity;
    if (/^\d+(\.\d+)?$/.test(text) && Number(text) > 0) return Number(text);
    throw new UsageError(`'${printable(text)}' is no factor; write a number above 0, for example 2 or 0.5, or max`);
  });
  return { speed: speed ?? 1, loops: line.read('loops', within(LOOPS)) ?? 1 };
}

function tagNotes(
  flow: Pick<Flow, 'vlans' | 'source'>,
  sizes: readonly number[],
  plain: boolean,
  mode: GenMode,
): string[] {
  const least = leastSizes(flow).tagged;
  const smallest = Math.min(...sizes);
  if (plain || smallest >= least) return [];
  if (mode === 'ping')
    throw new UsageError(`frames of ${smallest} bytes have no room for the tag that ping needs; write -l ${least}`);
  const which = Math.max(...sizes) < least ? 'the frames' : `frames below ${least} bytes`;
  return [
    `${which} have no room for the tag, which needs frames of ${least}: rx counts them, and cannot tell their loss or latency`,
  ];
}
