import { DEFAULT_BURST } from '../../forward/bridge.js';
import { PortError, UsageError } from '../../text/errors.js';
import { newWorker } from '../../threads/new-thread.js';
import { formatPortSpec, parsePortSpec } from '../../names/portspec.js';
import type { SimSpec } from '../../names/portspec.js';
import type { WaitMode } from '../../forward/wait.js';
import type { CoreShares } from '../results/result.js';
import type { HistogramJson } from '../../stats/histogram.js';
import { runJob } from './trial-run.js';

/** One trial: two simulated ports, one bridge, a length. */
export interface TrialOptions {
  /** Names of the two ports; `size` and `load` below override what they say. */
  names: readonly [string, string];
  /** Frame size in bytes with FCS. Default: what the names say. */
  size?: number;
  /** Offered load as a share of the line rate, 0..1. Default: what the names say. */
  load?: number;
  /** Length of the trial in seconds; of link time where the ports have a virtual clock. */
  seconds: number;
  /**
   * Frames that arrive at each port, in one burst at the offered load; then it is silent and the trial ends. `seconds` is
   * how long that should take. Default: no end.
   */
  frames?: number;
  /** Seconds of forwarding before it, not counted. Default 0.5; none on the virtual clock. */
  warmupSeconds?: number;
  /** Only from the first port to the second. */
  oneWay?: boolean;
  burst?: number;
  copy?: boolean;
  wait?: WaitMode;
  /** CPU the forwarding thread runs on. Default: any. */
  cpu?: number;
  /** Measure the latency of every so many-th frame, a power of two. Default: of none. */
  latencyEvery?: number;
  /** Ends the trial early: it then rejects. */
  signal?: AbortSignal;
}

/** What a trial's thread is given; plain data. */
export interface TrialJob {
  names: readonly [string, string];
  seconds: number;
  warmupSeconds: number;
  oneWay: boolean;
  burst: number;
  copy: boolean;
  wait: WaitMode;
  cpu: number;
  checked: boolean;
  virtual: boolean;
  /** Infinity: no end. */
  frames: number;
  /** 0: no latency. */
  latencyEvery: number;
}

/** One direction of a trial, in frames. */
export interface DirectionResult {
  /** Arrived at the port during the trial. */
  offered: number;
  /** Of these, left the other port, those that were still on the way when the trial's time was over included. */
  forwarded: number;
  /** offered − forwarded. */
  lost: number;
  /** Lost frames that no counter accounts for, or that loss counters and sequence numbers disagree on. 0, or a fault. */
  unexplained: number;
  duplicates: number;
  reordered: number;
  /** Frames whose contents were not what was stamped into them. */
  corrupt: number;
  /** Left the other port within the trial's time: what rates are made from. */
  forwardedInTime: number;
  /** Bytes forwarded, without FCS. */
  bytes: number;
}

export interface TrialResult {
  /** Length of the trial as it really was, seconds. */
  seconds: number;
  /** a→b, and b→a unless it was one-way. */
  directions: DirectionResult[];
  /** Share of the forwarding thread's time spent in turns that moved frames, 0..1. */
  busyShare: number;
  /** Longest time between two syncs, ns: how long the machine held the loop up. */
  longestGapNs: number;
  /** CPU time of the forwarding thread during the trial, ns. */
  userNs: number;
  systemNs: number;
  /** Cycles of its core for that; NaN where they cannot be read. */
  cycles: number;
  /** What the machine's cores did meanwhile, everything that ran on them included. */
  cores: CoreShares[];
  /** Of both directions together. */
  latency?: LatencySample;
}

/** Latencies from last bit in to last bit out, on the simulated links' clock. */
export interface LatencySample {
  histogram: HistogramJson;
  /** One frame of so many was looked at. */
  every: number;
  /** Sampled frames whose arrival was forgotten: with heavy loss only. */
  unmatched: number;
}

/** Until the compiler has optimised the loop; measured: the last deoptimisation comes within 0.3 s. */
const WARMUP_SECONDS = 0.5;

function simName(name: string, { size, load }: TrialOptions): SimSpec {
  const spec = parsePortSpec(name);
  if (spec.kind !== 'sim')
    throw new UsageError(`${name}: a trial without --tx and --rx needs simulated ports (sim:NAME@…) on both sides`);
  return {
    ...spec,
    ...(size === undefined ? {} : { size: [{ size, weight: 1 }] }),
    ...(load === undefined ? {} : { load }),
  };
}

/**
 * Runs one trial in a thread of its own, so that each begins with a fresh compiler and no garbage; on the virtual clock
 * in the thread that calls.
 * @throws UsageError when the ports cannot be measured, PortError when one fails
 */
export async function runTrial(options: TrialOptions): Promise<TrialResult> {
  const specs = options.names.map((name) => simName(name, options));
  const oneWay = options.oneWay ?? false;
  const [a, b] = specs;
  const virtual = a.clock === 'virtual';
  if (a.clock !== b.clock || (virtual && a.step !== b.step))
    throw new UsageError(`${options.names.join(', ')}: the ports of a trial need the same clock= and step=`);
  const job: TrialJob = {
    names: [formatPortSpec(a), formatPortSpec(oneWay ? { ...b, load: 0 } : b)],
    seconds: options.seconds,
    warmupSeconds: options.warmupSeconds ?? (virtual ? 0 : WARMUP_SECONDS),
    oneWay,
    burst: options.burst ?? DEFAULT_BURST,
    copy: options.copy ?? false,
    wait: options.wait ?? 'busy',
    cpu: options.cpu ?? -1,
    checked: specs.every((spec) => spec.check),
    virtual,
    frames: options.frames ?? Infinity,
    latencyEvery: options.latencyEvery ?? 0,
  };
  // Nothing on the virtual clock depends on how fast the thread is, so a new one has no use, but to be ended early.
  if (virtual && options.signal === undefined) return runJob(job);
  const worker = newWorker(new URL('./trial-worker.js', import.meta.url), job, 'trial');
  const abort = (): void => {
    void worker.terminate();
  };
  options.signal?.addEventListener('abort', abort, { once: true });
  return new Promise((resolve, reject) => {
    worker.once('message', (message: { result: TrialResult } | { usage: boolean; message: string }) => {
      if ('result' in message) resolve(message.result);
      else reject(message.usage ? new UsageError(message.message) : new PortError(message.message, ''));
    });
    worker.once('error', reject);
    worker.once('exit', (code) => {
      options.signal?.removeEventListener('abort', abort);
      reject(new Error(`the trial's thread ended with code ${code} and no result`));
    });
  });
}
