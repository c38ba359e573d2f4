import { setImmediate as nextTurn } from 'node:timers/promises';
import { DEFAULT_BURST } from '../../forward/bridge.js';
import { UsageError } from '../../text/errors.js';
import { startThread } from '../../threads/thread.js';
import { formatPortSpec, parsePortSpec } from '../../names/portspec.js';
import type { SimSpec } from '../../names/portspec.js';
import { lineRate, sizesOf, type FrameSize } from '../../text/units.js';
import type { WaitMode } from '../../forward/wait.js';
import type { TrialJob, TrialResult } from './trial-job.js';
import { runTrialHere } from './trial-run.js';

/** One trial: two simulated ports, one bridge, a length. */
export interface TrialOptions {
  /** Names of the two ports; `size` and `load` below override what they say. */
  names: readonly [string, string];
  /** Frame size, or a mix. Default: what the names say. */
  size?: FrameSize;
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
  /** Ends the trial early: it has counted until then, or rejects with Interrupted where nothing was counted. */
  signal?: AbortSignal;
}

/** A trial was to end before it had counted anything. */
export class Interrupted extends Error {}

/** Turns and frames of a trial that is over before a thread for it would have started. */
const FEW = 100_000;

/** Until the compiler has optimised the loop; measured: the last deoptimisation comes within 0.3 s. */
const WARMUP_SECONDS = 0.5;

function simName(name: string, { size, load }: TrialOptions): SimSpec {
  const spec = parsePortSpec(name);
  if (spec.kind !== 'sim')
    throw new UsageError(`${name}: a trial without --tx and --rx needs simulated ports (sim:NAME@…) on both sides`);
  return {
    ...spec,
    ...(size === undefined ? {} : { size: sizesOf(size) }),
    ...(load === undefined ? {} : { load }),
  };
}

const leastOf = (mix: SimSpec['size']): number => Math.min(...mix.map(({ size }) => size));

/**
 * Runs one trial in a thread of its own, so that each begins with a fresh compiler and no garbage; on the virtual clock
 * in the thread that calls.
 * @throws UsageError when the ports cannot be measured, PortError when one fails, Interrupted
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
  const frames = Math.max(...specs.map(({ rate, load, size }) => load * lineRate(rate, leastOf(size))));
  const few = job.seconds * Math.max(frames, 1e9 / a.step) <= FEW;
  if (virtual && (few || options.signal === undefined)) {
    // Signals are heard between two turns of the event loop.
    if (options.signal !== undefined) await nextTurn();
    if (options.signal?.aborted === true) throw new Interrupted();
    return runTrialHere(job);
  }
  if (options.signal?.aborted === true) throw new Interrupted();
  const { ended, stop } = startThread<undefined, undefined, TrialResult | undefined>({
    url: new URL('./trial-worker.js', import.meta.url),
    name: 'trial',
    job,
    last: () => undefined,
  });
  options.signal?.addEventListener('abort', stop, { once: true });
  try {
    const result = await ended;
    if (result === undefined) throw new Interrupted();
    return result;
  } finally {
    options.signal?.removeEventListener('abort', stop);
  }
}
