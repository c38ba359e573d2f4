import { UsageError } from '../../text/errors.js';
import { DEFAULTS, settingsOf, type BridgeSettings } from '../../forward/settings.js';
import { BURST, CPU, FRAMES, parseDuration, parseSeconds, rangeText, within } from '../../text/units.js';
import { WAIT_MODES } from '../../forward/wait.js';
import { ON_ERROR } from '../../programs/failure.js';
import { CommandLine, optionsHelp, type OptionTable } from '../options.js';

const OPTIONS = {
  interface: { short: 'i', value: 'PORT', repeat: true, help: 'A port to join; give it twice.' },
  burst: {
    short: 'b',
    value: 'SLOTS',
    help: `Slots moved at once from each rx ring, ${rangeText(BURST)}. Default ${DEFAULTS.burst}.`,
  },
  copy: { short: 'c', help: 'Copy the frames although their buffers could be exchanged.' },
  loop: { short: 'L', help: 'Loop one port back: what it receives goes out of it again.' },
  'wait-link': {
    short: 'w',
    value: 'SECONDS',
    help: 'Wait so long at most for the links to come up. Default 4 for interfaces, 0 for ports that have no link.',
  },
  frames: {
    short: 'n',
    value: 'FRAMES',
    help: 'End after so many frames, both directions together; 10k and 1M are understood.',
  },
  time: { short: 't', value: 'SECONDS', help: 'End after so long; 10, .5, 500ms, 1m and 1h are understood.' },
  wait: {
    value: 'busy|poll',
    help: 'What to do when no frame is there: busy (default) looks again at once and takes a whole core, poll sleeps until a port has work.',
  },
  cpu: { value: 'CPU', help: 'Run the forwarding thread on this CPU, numbered from 0.' },
  program: {
    value: 'PROGRAM',
    repeat: true,
    help: 'Run a program on every frame: a ready one (filter:EXPRESSION in tcpdump’s words, vlan, rewrite, limit, sample, flows, respond) or a file of your own, ./mine.ts or ./mine.js. Several run one behind the other. See docs/programs.md.',
  },
  'on-error': {
    value: 'stop|drop|forward',
    help: 'What becomes of a frame at which a program throws: stop (default) ends the bridge, drop and forward go on and say so.',
  },
  third: { value: 'PORT', help: 'A third port, to which programs may send frames. What it receives is not read.' },
  'no-promisc': { help: 'Leave interfaces out of promiscuous mode.' },
  stats: { value: 'SECONDS', help: 'Print a line for each direction every so often, with the rates since the last.' },
  json: {
    help: 'Print one JSON object a line: {"type":"open"|"say"|"stats"|"summary"|"error", …}. Numbers are numbers; their units are in their names.',
  },
  verbose: { short: 'v', repeat: true, help: 'Say more: which ring goes to which, and counters that are zero.' },
  help: { short: 'h', help: 'Print this.' },
  version: { help: 'Print the version.' },
} as const satisfies OptionTable;

export const BRIDGE_HELP = `usage: bridge [options] -i PORT -i PORT
       bridge [options] PORT PORT [BURST]

Joins two ports: every frame that one receives is sent by the other, both ways, byte for byte. Buffers are exchanged
where both ports have the same memory; where they have not, frames are copied, and that is said. One port alone, or
the same port twice, joins a netmap interface to its host's network stack.

ports
  netmap:ix0                the interface ix0 by the kernel's netmap. More forms: netmap:ix0-2 one ring pair,
                            netmap:ix0^ its host rings, netmap:ix0{1 and netmap:ix0}1 the ends of a netmap pipe,
                            vale0:a a port of a VALE switch
  xdp:eth0                  the Linux interface eth0 by AF_XDP, no module needed; xdp:eth0-1 its queue 1 alone
  ix0                       netmap where /dev/netmap answers for ix0, else AF_XDP on Linux; says which
  pipe:lab{1  pipe:lab}1    two ends of a pipe in shared memory, for two processes on this machine
  pcap:FILE  pcap:@out=FILE a capture file or FIFO: read (pcap, pcapng, gzip), written (as it is called), or both
                            (pcap:IN@out=OUT); files end the bridge. - is standard input or output: with out=- all
                            that is said goes to stderr. Options: @follow a file that grows; @format=pcap|pcapng;
                            @short=drop|pad|cut frames captured short: by default kept from capture to capture,
                            else left out
  sim:a                     a simulated port at 10 Gbit/s; sim:a@rate=40G,size=64,slots=2048,…

options
${optionsHelp(OPTIONS)}

Frames, bytes and rates: bytes are without FCS; Gbit/s is on the wire, with 24 bytes a frame more (FCS 4, preamble 8,
gap 12); Mpps is 10^6 frames a second. A frame counts as forwarded when it has left.

SIGINT (Ctrl-C), SIGTERM and SIGHUP stop the bridge: what is in its tx rings is sent, the ports are closed, a summary is
printed. A second signal, more than a second later, ends it at once. When stdout is closed (bridge … | head), forwarding
goes on, and the summary is on stderr.

exit code: 0 done, 1 the run failed or a capture file was damaged, 2 wrong usage, 128 + signal after a second signal

examples
  FreeBSD   bridge -i netmap:ix0 -i netmap:ix1          two 10G ports
            bridge --stats 1 --cpu 2 ix0 ix1            the same, with rates every second, on CPU 2
            bridge -i netmap:ix0                        ix0 and its own host stack
            bridge -i netmap:ix0 -i vale0:vm1           a port and a virtual machine's switch
  Linux     bridge -i xdp:eth1 -i xdp:eth2              two interfaces, no kernel module
            bridge -i xdp:eth1 -i pcap:@out=eth1.pcap   capture what eth1 receives
  either    bridge -i sim:a -i sim:b -t 5               no hardware: 10 Gbit/s of 64-byte frames both ways
            bridge -i pcap:in.pcap -i pcap:@out=out.pcap
            bridge -i xdp:eth1 -i xdp:eth2 --program 'filter:not (udp and port 53)'
            tcpdump -i eth0 -U -w - | bridge -i pcap:- -i sim:b
`;

/** What the command line of `bridge` asks for. */
export interface BridgeCommand {
  action: 'run' | 'help' | 'version';
  ports: readonly string[];
  settings: BridgeSettings;
  json: boolean;
  /** Seconds between statistics; undefined: none. */
  statsSeconds: number | undefined;
  verbose: number;
}

/** @throws UsageError */
export function parseBridge(args: readonly string[]): BridgeCommand {
  const line = new CommandLine(OPTIONS, args);
  const named = line.all('interface');
  const ports = named.length > 0 ? named : line.positionals.slice(0, 2);
  const [burst, ...tooMany] = (named.length > 0 ? [] : line.positionals.slice(2)) as [string?, ...string[]];
  const action = line.has('help') ? 'help' : line.has('version') ? 'version' : 'run';
  if (action === 'run') checkPorts(ports, named.length > 0 ? line.positionals : tooMany, line.has('loop'));
  if (burst !== undefined && line.has('burst'))
    throw new UsageError(`the burst is given twice, as -b and as '${burst}'; write it once`);
  const readBurst = within(BURST);
  return {
    action,
    ports,
    settings: settingsOf({
      burst: line.read('burst', readBurst) ?? (burst === undefined || action !== 'run' ? undefined : readBurst(burst)),
      copy: line.has('copy'),
      loop: line.has('loop'),
      promisc: !line.has('no-promisc'),
      linkWait: line.read('wait-link', parseSeconds),
      wait: line.word('wait', WAIT_MODES),
      frames: line.read('frames', within(FRAMES)),
      seconds: line.read('time', parseDuration),
      cpu: line.read('cpu', within(CPU)),
      programs: action === 'run' ? line.all('program') : [],
      onError: line.word('on-error', ON_ERROR),
      third: line.read('third', (text) => text),
    }),
    json: line.has('json'),
    statsSeconds: line.read('stats', parseDuration),
    verbose: line.count('verbose'),
  };
}

function checkPorts(ports: readonly string[], surplus: readonly string[], loop: boolean): void {
  if (ports.length === 0)
    throw new UsageError('no port is named; write bridge -i PORT -i PORT, for example -i sim:a -i sim:b');
  if (ports.length > 2)
    throw new UsageError(`${ports.length} ports are named (${ports.join(', ')}); a bridge joins two`);
  if (surplus.length > 0)
    throw new UsageError(
      `'${surplus[0]}' is too much: the ports are ${ports.join(' and ')}; write bridge -i PORT -i PORT, or bridge PORT PORT [BURST]`,
    );
  if (loop && ports.length === 2)
    throw new UsageError(`-L loops one port back, two are named (${ports.join(', ')}); leave one out`);
}
