import type { CommandLine, OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { formatPortSpec, parsePortSpec } from '../../names/portspec.js';
import { simBench, type Bench } from '../../measure/trial/bench.js';
import { outerBench } from '../../measure/trial/outer-bench.js';
import { readCommon, readSetup, SETUP_OPTIONS } from './setup-options.js';
import type { Setup } from '../../measure/trial/setup.js';

export const BENCH_OPTIONS = {
  ...SETUP_OPTIONS,
  tx: {
    value: 'PORT',
    help:
      'The generator’s own port, of any kind; with --rx. What is between the two is measured: -i A -i B, bridged by this ' +
      'process at the same time, or a device outside. --rate says how fast the link is; default: 10G.',
  },
  rx: { value: 'PORT', help: 'The sink’s own port.' },
} as const satisfies OptionTable;

/** The bench that the options describe; close() it. @throws UsageError, PortError; Interrupted when `stop` comes first */
export async function openBench(
  line: CommandLine<keyof typeof BENCH_OPTIONS>,
  stop?: AbortSignal,
): Promise<{ setup: Setup; bench: Bench }> {
  const [tx, rx] = [line.read('tx', String), line.read('rx', String)];
  if (tx === undefined && rx === undefined) {
    const setup = readSetup(line);
    if (setup.rate === Infinity)
      throw new UsageError(
        'rate=max: a link without a speed has no load to search for; give a rate such as --rate 10G, ' +
          'or run measure --rate max, which shows what the machine can do',
      );
    return { setup, bench: simBench(setup) };
  }
  if (tx === undefined || rx === undefined)
    throw new UsageError('--tx and --rx go together: one port sends, the other receives');
  const device = line.all('interface');
  if (device.length !== 0 && device.length !== 2)
    throw new UsageError(`-i: two ports make a device under test, ${device.length} given; give two or none`);
  for (const [option, port] of [['--rx', rx], ...device.map((name) => ['-i', name])])
    if (samePort(tx, port)) throw samePorts('--tx', tx, option, port);
  for (const port of device) if (samePort(rx, port)) throw samePorts('--rx', rx, '-i', port);
  const setup = readCommon(line);
  if (setup.rate === Infinity) throw new UsageError('--rate max: the highest load to offer is needed, such as 10G');
  return { setup, bench: await outerBench(setup, { tx, rx, device }, stop) };
}

/** Whether two names are one port, or have AF_XDP queues in common. @throws UsageError */
function samePort(one: string, other: string): boolean {
  const [a, b] = [parsePortSpec(one), parsePortSpec(other)];
  if (a.kind !== 'xdp' || b.kind !== 'xdp') return formatPortSpec(a) === formatPortSpec(b);
  if (a.ifname !== b.ifname || a.netns !== b.netns) return false;
  if (a.queues === 'all' || b.queues === 'all') return true;
  return a.queues.first <= b.queues.last && b.queues.first <= a.queues.last;
}

function samePorts(option: string, port: string, other: string, otherPort: string): UsageError {
  return new UsageError(
    `${option} ${port} and ${other} ${otherPort} are the same port; the generator and the sink each need a port of their ` +
      'own, apart from those of what is measured',
  );
}
