/** One trial on two simulated ports. */
import { Bridge, nicSide } from '../../forward/bridge.js';
import { busyNs, Control, WAITED_NS } from '../../threads/control.js';
import { notForwarded } from '../../forward/counters.js';
import { UsageError } from '../../text/errors.js';
import { turning } from '../../forward/loop.js';
import { spin, type Turning } from '../../threads/loop.js';
import { now } from '../../shim/native.js';
import { ThreadUsage } from '../../shim/thread-usage.js';
import { openPorts } from '../../ports/open.js';
import { closeAll, orClose, pin, type Served } from '../../threads/serve.js';
import type { DepartureTimes } from '../../ports/sim/sim-latency.js';
import { SimPort, type SimStats } from '../../ports/sim/sim-port.js';
import { coreShares, readCores } from './cpu.js';
import { Histogram } from '../../stats/histogram.js';
import type { DirectionResult, TrialJob, TrialResult } from './trial-job.js';

/** ns that frames in the rings are given to leave once nothing arrives any more. */
const DRAIN_NS = 1e9;

/** ns beyond its own length that a burst is given: links may go down meanwhile (`flap=`). */
const BURST_GRACE_NS = 10e9;

interface Snapshot {
  a: SimStats;
  b: SimStats;
  refused: readonly [number, number];
}

/** Opens the ports of a trial. @throws UsageError when they cannot be measured, PortError when one fails */
export function openTrial(job: TrialJob): Served<undefined, undefined, undefined, TrialResult | undefined> {
  if (!job.virtual) pin(job.cpu);
  const ports = openPorts(job.names);
  const close = (): void => {
    closeAll(ports);
  };
  return orClose(ports, () => {
    const [a, b] = ports;
    if (!(a instanceof SimPort && b instanceof SimPort))
      throw new UsageError(`${job.names.join(', ')}: a trial needs simulated ports (sim:NAME@…) on both sides`);
    return { opened: undefined, close, run: (_, control) => ({ ended: new Trial(a, b, job, control).run() }) };
  });
}

/** Runs a trial in the thread that calls. @throws as openTrial() */
export function runTrialHere(job: TrialJob): TrialResult {
  const { run, close } = openTrial(job);
  const nothing = (): void => undefined;
  try {
    // Nobody has its control block, so that nobody can end it early.
    return run(undefined, new Control(), { running: nothing, say: nothing, report: nothing }).ended!;
  } finally {
    close();
  }
}

class Trial {
  readonly #bridge: Bridge;
  readonly #turning: Turning;
  readonly #latency: DepartureTimes[] = [];

  constructor(
    readonly a: SimPort,
    readonly b: SimPort,
    readonly job: TrialJob,
    readonly control: Control,
  ) {
    this.#bridge = new Bridge(nicSide(a), nicSide(b), { burst: job.burst, copy: job.copy, oneWay: job.oneWay });
    const work = turning(this.#bridge, job.wait);
    // On the virtual clock nothing depends on how fast the machine is, nor may where a trial ends.
    this.#turning = job.virtual ? { ...work, turns: 1, rest: () => false } : work;
    if (job.latencyEvery > 0) {
      this.#latency.push(b.watchLatency(a, job.latencyEvery));
      if (!job.oneWay) this.#latency.push(a.watchLatency(b, job.latencyEvery));
    }
  }

  /** What was counted, until now where the trial is to be ended early; nothing where it had not begun to count. */
  run(): TrialResult | undefined {
    // The compiler needs a while to see what is hot; frames missed meanwhile are not the trial's.
    this.#turnFor(this.job.warmupSeconds * 1e9);
    this.#quiet();
    if (this.control.stopping) return undefined;
    const before = this.#snapshot();
    for (const latency of this.#latency) latency.reset();
    const run = new Float64Array(16);
    const cores = readCores();
    const usage = new ThreadUsage();
    this.a.resume(this.job.frames);
    this.b.resume(this.job.frames);
    const started = this.#now();
    if (this.job.frames === Infinity) this.#turnFor(this.job.seconds * 1e9, run);
    else this.#turnUntilSent(run);
    const seconds = (this.#now() - started) / 1e9;
    usage.read();
    usage.close();
    const coresEnd = readCores();
    const sent = [this.b.stats().sent - before.b.sent, this.a.stats().sent - before.a.sent] as const;
    const longestGapNs = Math.max(...[this.a, this.b].map((port) => port.stats().longestGapNs ?? 0));
    this.#quiet();
    const after = this.#snapshot();
    const result = (from: 'a' | 'b', to: 'a' | 'b', direction: 0 | 1): DirectionResult => {
      const of = (side: 'a' | 'b', key: keyof SimStats): number => after[side][key] - before[side][key];
      const refused = after.refused[direction] - before.refused[direction];
      const missed = of(from, 'missed') + of(from, 'dropped');
      const lost = of(from, 'offered') - of(to, 'sent');
      const uncounted = lost - missed - refused;
      // A port that wedges keeps what is in its rings, and has others keep theirs: slots, of which a frame takes one or more.
      const kept = this[from].rx.reduce((slots, ring) => slots + ring.space, 0) + this[to].txPending();
      return {
        offered: of(from, 'offered'),
        forwarded: of(to, 'sent'),
        lost,
        unexplained:
          uncounted - Math.min(Math.max(0, uncounted), kept) + (this.job.checked ? Math.abs(of(to, 'lost') - lost) : 0),
        duplicates: of(to, 'duplicates'),
        reordered: of(to, 'reordered'),
        corrupt: of(to, 'corrupt') + of(to, 'foreign'),
        forwardedInTime: sent[direction],
        bytes: of(to, 'sentBytes'),
      };
    };

    return {
      seconds,
      directions: this.job.oneWay ? [result('a', 'b', 0)] : [result('a', 'b', 0), result('b', 'a', 1)],
      busyNs: busyNs(run),
      waitedNs: run[WAITED_NS],
      longestGapNs,
      userNs: usage.userNs,
      systemNs: usage.systemNs,
      cycles: usage.cycles,
      cores: coreShares(cores, coresEnd),
      ...this.#latencyResult(),
    };
  }

  /** Time by which the trial goes: the machine's, or the links' own where they have a virtual clock. */
  #now(): number {
    return this.job.virtual ? this.a.linkTime : now();
  }

  #turnUntil(over: () => boolean, run: Float64Array = new Float64Array(16)): void {
    spin(this.#turning, run, () => over() || undefined);
  }

  #turnFor(ns: number, run?: Float64Array): void {
    const end = this.#now() + ns;
    this.#turnUntil(() => this.control.stopping || this.#now() >= end, run);
  }

  /** Until the frames of the burst have all arrived at the ports, but no longer than a link can be held up. */
  #turnUntilSent(run: Float64Array): void {
    const sources = this.job.oneWay ? [this.a] : [this.a, this.b];
    const deadline = this.#now() + this.job.seconds * 1e9 + BURST_GRACE_NS;
    const over = (): boolean => sources.every((port) => port.ended()) || this.#now() > deadline;
    this.#turnUntil(() => this.control.stopping || over(), run);
  }

  #latencyResult(): Pick<TrialResult, 'latency'> {
    if (this.#latency.length === 0) return {};
    const all = new Histogram();
    for (const { histogram } of this.#latency) all.merge(histogram);
    const unmatched = this.#latency.reduce((sum, latency) => sum + latency.unmatched, 0);
    return { latency: { histogram: all.toJSON(), every: this.job.latencyEvery, unmatched } };
  }

  /** Stops arrivals and turns until the rings are empty; then every frame is where it will stay. */
  #quiet(): void {
    this.a.pause();
    this.b.pause();
    const deadline = this.#now() + DRAIN_NS;
    const empty = (): boolean =>
      !this.a.hiding() &&
      !this.b.hiding() &&
      [...this.a.rx, ...this.b.rx].every((ring) => ring.space === 0) &&
      this.a.txPending() + this.b.txPending() === 0;
    this.#turnUntil(() => empty() || this.#now() > deadline);
    this.b.settle(this.a);
    this.a.settle(this.b);
  }

  #snapshot(): Snapshot {
    const [forth, back] = this.#bridge.counters;
    return { a: this.a.stats(), b: this.b.stats(), refused: [notForwarded(forth), notForwarded(back)] };
  }
}
