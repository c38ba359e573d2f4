import { inspect } from 'node:util';
import { DEFAULT_BURST } from './bridge.js';
import { Control } from '../threads/control.js';
import { UsageError } from '../text/errors.js';
import { parsePortSpec } from '../names/portspec.js';
import { WAIT_MODES, type WaitMode } from './wait.js';
import { startThread, type Running } from '../threads/thread.js';
import type { Ended, Opened, PortCounters, WorkerJob } from './bridge-worker.js';

/** What startBridge() may be told; every field has the default of the `bridge` tool. */
export interface StartOptions {
  /** Slots moved per pair of rings and turn, 1 or more. Default 1024. */
  burst?: number;
  /** Copy although buffers could be exchanged. */
  copy?: boolean;
  /** Only from the first port to the second. */
  oneWay?: boolean;
  /** With one port: send what it receives back out of it. */
  loop?: boolean;
  /** Promiscuous mode for interfaces. Default true. */
  promisc?: boolean;
  /** Seconds to wait for links to come up. Default 4 for ports that have a link. */
  linkWait?: number;
  /** `busy` (default) spins on the syncs; `poll` sleeps when there is nothing to do. */
  wait?: WaitMode;
  /** Frames, both directions together, after which the bridge ends; 0 or absent: none. */
  frames?: number;
  /** Seconds after which the bridge ends; 0 or absent: none. */
  seconds?: number;
  /** CPU the forwarding thread runs on. Default: any. */
  cpu?: number;
  /** Called with what a person should know while the bridge runs. */
  onSay?: (sentence: string) => void;
}

/** A bridge that runs in a thread of its own. */
export interface RunningBridge extends Omit<Running<Opened, PortCounters[], Ended>, 'report'> {
  /** Counters, readable at any time while the thread runs and after. */
  readonly control: Control;
  /** Each port's own statistics now. Resolves with the final ones when the bridge ends meanwhile. */
  stats(): Promise<PortCounters[]>;
}

/** What a number may be, by the option's name: the least, and whether it must be whole. */
const NUMBERS = {
  burst: { least: 1, whole: true },
  frames: { least: 0, whole: true },
  cpu: { least: -1, whole: true },
  seconds: { least: 0, whole: false },
  linkWait: { least: 0, whole: false },
} as const;

function checkOptions(options: StartOptions): void {
  for (const name of Object.keys(NUMBERS) as (keyof typeof NUMBERS)[]) {
    const value: unknown = options[name];
    const { least, whole } = NUMBERS[name];
    if (
      value === undefined ||
      ((whole ? Number.isSafeInteger(value) : Number.isFinite(value)) && (value as number) >= least)
    )
      continue;
    throw new UsageError(
      `${name}: expected a ${whole ? 'whole' : 'finite'} number from ${least} up, not ${inspect(value)}`,
    );
  }
  const { wait } = options;
  if (wait !== undefined && !WAIT_MODES.includes(wait))
    throw new UsageError(`wait: expected one of ${WAIT_MODES.join(', ')}, not ${inspect(wait)}`);
}

/**
 * Bridges two ports, or one port and its host stack, in a worker thread.
 * @throws UsageError when a port name says nothing, or an option is not what StartOptions says
 */
export function startBridge(names: readonly string[], options: StartOptions = {}): RunningBridge {
  if (names.length < 1 || names.length > 2)
    throw new UsageError(`a bridge joins one or two ports; ${names.length} given`);
  for (const name of names) parsePortSpec(name);
  checkOptions(options);
  const control = new Control();
  const job: Omit<WorkerJob, 'shared'> = {
    names,
    loop: options.loop ?? false,
    burst: options.burst ?? DEFAULT_BURST,
    copy: options.copy ?? false,
    oneWay: options.oneWay ?? false,
    promisc: options.promisc ?? true,
    linkWait: options.linkWait,
    wait: options.wait ?? 'busy',
    frames: options.frames ?? 0,
    seconds: options.seconds ?? 0,
    cpu: options.cpu ?? -1,
  };
  const { report, ...thread } = startThread<Opened, PortCounters[], Ended>({
    url: new URL('./bridge-worker.js', import.meta.url),
    name: 'forward',
    job,
    control,
    onSay: (sentence) => options.onSay?.(sentence),
    last: ({ stats }) => stats,
  });
  return { ...thread, control, stats: report };
}
