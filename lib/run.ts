import { inspect } from 'node:util';
import { Worker } from 'node:worker_threads';
import { DEFAULT_BURST } from './bridge.js';
import { Control } from './control.js';
import { deferred, type Deferred } from './deferred.js';
import { PortError, UsageError } from './errors.js';
import type { EndReason } from './loop.js';
import { parsePortSpec } from './portspec.js';
import { WAIT_MODES, type WaitMode } from './wait.js';
import type { WorkerJob, WorkerMessage } from './worker.js';

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

/** What was opened. */
export type Opened = Omit<Extract<WorkerMessage, { type: 'open' }>, 'type'>;

export interface Ended {
  reason: EndReason;
  /** Each port's own statistics, in the order in which they were opened. */
  stats: Record<string, number>[];
  /** What was wrong with a source when it ended, such as a truncated capture file; a sentence each. */
  problems: string[];
}

/** A bridge that runs in a thread of its own. */
export interface RunningBridge {
  /** Counters, readable at any time while the thread runs and after. */
  readonly control: Control;
  /** The ports are open. Rejects with UsageError or PortError. */
  readonly opened: Promise<Opened>;
  /** Links are awaited and frames flow. */
  readonly running: Promise<undefined>;
  /** The bridge ended by itself or because stop() was called. Rejects when it failed. */
  readonly ended: Promise<Ended>;
  /** Each port's own statistics now. Resolves with the final ones when the bridge ends meanwhile. */
  stats(): Promise<Record<string, number>[]>;
  /** Sends what is in the tx rings, closes the ports and ends. */
  stop(): void;
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
  const job: WorkerJob = {
    shared: control.shared,
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
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: job, name: 'forward' });
  const opened = deferred<Opened>();
  const running = deferred<undefined>();
  const ended = deferred<Ended>();
  let asked: Deferred<Record<string, number>[]>[] = [];

  const answer = (stats: Record<string, number>[]): void => {
    for (const question of asked) question.resolve(stats);
    asked = [];
  };
  const fail = (error: Error): void => {
    for (const promise of [opened, running, ended, ...asked]) promise.reject(error);
    asked = [];
  };
  worker.on('message', (message: WorkerMessage) => {
    switch (message.type) {
      case 'open':
        opened.resolve(message);
        break;
      case 'running':
        running.resolve(undefined);
        break;
      case 'say':
        options.onSay?.(message.sentence);
        break;
      case 'stats':
        answer(message.stats);
        break;
      case 'end':
        ended.resolve(message);
        answer(message.stats);
        break;
      case 'fail':
        fail(
          message.usage
            ? new UsageError(message.message)
            : new PortError(message.message, message.port, message.code === undefined ? {} : { code: message.code }),
        );
    }
  });
  worker.on('error', fail);
  worker.on('exit', (code) => {
    fail(new Error(`the forwarding thread ended with code ${code}`)); // after 'end' or 'fail' this finds all settled
  });

  return {
    control,
    opened: opened.promise,
    running: running.promise,
    ended: ended.promise,
    stats() {
      const question = deferred<Record<string, number>[]>();
      asked.push(question);
      control.askReport();
      return Promise.race([question.promise, ended.promise.then(({ stats }) => stats)]);
    },
    stop() {
      control.stop();
    },
  };
}
