import type { WaitMode } from '../../forward/wait.js';
import type { SimSpec } from '../../names/portspec.js';
import { formatShare } from '../../text/format.js';
import { formatTime, lineRate, type FrameSize } from '../../text/units.js';
import type { Cell, CoreShares } from '../results/result.js';
import { cpuMetrics } from './cpu.js';
import { setupCell, trialOptions, type SimSetup } from './setup.js';
import { runTrial } from './trial.js';
import type { DirectionResult, LatencySample, TrialResult } from './trial-job.js';

/** One trial to run on a bench. */
export interface BenchLoad {
  size: FrameSize;
  /** Frames/s, all directions together. Default: what the names of simulated ports say. */
  load?: number;
  seconds: number;
  /** Frames each way, in one burst; then silence. Default: no end. */
  frames?: number;
  /** Measure latency; see TrialOptions. */
  latencyEvery?: number;
  /** Ends the trial early: it has counted until then, or rejects with Interrupted where nothing was counted. */
  signal?: AbortSignal;
}

/** What a trial counted, sums of the directions. */
export interface BenchTrial {
  /** Length as it really was, seconds. */
  seconds: number;
  /** Frames that were due while frames were offered, had the generator kept to its load. */
  due: number;
  offered: number;
  forwarded: number;
  lost: number;
  /** Frames/s that came back within the trial's time. */
  rate: number;
  duplicates: number;
  reordered: number;
  corrupt: number;
  /** Lost frames that no counter accounts for: 0, or a fault. */
  unexplained: number;
  cores: CoreShares[];
  /** CPU time of the forwarding thread, ns; absent when that is not ours. */
  threadNs?: number;
  /** Cycles of its core for that; absent where they cannot be read. */
  threadCycles?: number;
  /** Its time in turns that moved frames, ns, and as a share of the trial, 0..1; absent when it sleeps between them. */
  busyNs?: number;
  busyShare?: number;
  /** Share of the trial for which it could have run and had no CPU, 0..1; absent where the system does not tell. */
  waitShare?: number;
  /** Longest time the machine held the forwarding loop up, ns. */
  longestGapNs?: number;
  latency?: LatencySample;
}

/** Something that can be put under load: what is between a generator and a sink. */
export interface Bench {
  /** For people: what is measured. */
  readonly title: string;
  /** 1, or 2 when frames go both ways at once. */
  readonly directions: number;
  /** The highest load of that frame size, frames/s, all directions together. */
  maxLoad(size: FrameSize): number;
  run(load: BenchLoad): Promise<BenchTrial>;
  /** What results of this bench are told apart by. */
  cell(size: FrameSize): Cell;
  close(): Promise<void>;
}

/** Two simulated ports, bridged by this process. */
export function simBench(setup: SimSetup): Bench {
  const directions = setup.oneWay ? 1 : 2;
  const maxLoad = (size: FrameSize): number => lineRate(setup.rate, size) * directions;
  return {
    title: setup.names.join(setup.oneWay ? ' → ' : ' ⇄ '),
    directions,
    maxLoad,
    cell: (size) => setupCell(setup, size),
    close: () => Promise.resolve(),
    async run({ size, load, ...rest }) {
      const share = load === undefined ? {} : { load: Math.min(1, load / maxLoad(size)) };
      const trial = await runTrial({ ...trialOptions(setup, size), ...rest, ...share });
      const counts = benchTrial([trial], setup.specs[0].clock, setup.wait);
      // A trial that was ended early kept to its load until then, as simulated ports do.
      if (load === undefined || rest.signal?.aborted === true) return counts;
      return { ...counts, due: rest.frames === undefined ? load * rest.seconds : rest.frames * directions };
    },
  };
}

/**
 * What trials that ran at the same time counted, the generator having kept to its load.
 * @param clock on the virtual one, what the threads did says nothing
 * @param wait  of a thread that sleeps between turns, the share that moved frames is not known
 */
export function benchTrial(trials: readonly TrialResult[], clock: SimSpec['clock'], wait: WaitMode): BenchTrial {
  const sum = (of: (trial: TrialResult) => number): number => trials.reduce((total, trial) => total + of(trial), 0);
  const count = (key: keyof DirectionResult): number =>
    sum(({ directions }) => directions.reduce((total, direction) => total + direction[key], 0));
  const [{ seconds, cores, latency }] = trials;
  const cpuNs = ({ userNs, systemNs }: TrialResult): number => userNs + systemNs;
  const threadNs = sum(cpuNs);
  const threadCycles = sum(({ cycles }) => cycles);
  return {
    seconds,
    due: count('offered'),
    offered: count('offered'),
    forwarded: count('forwarded'),
    lost: count('lost'),
    // Each over its own time.
    rate: sum((trial) => trial.directions.reduce((all, one) => all + countedInTime(one), 0) / trial.seconds),
    duplicates: count('duplicates'),
    reordered: count('reordered'),
    corrupt: count('corrupt'),
    unexplained: count('unexplained'),
    cores,
    ...(clock === 'real' && {
      longestGapNs: Math.max(...trials.map(({ longestGapNs }) => longestGapNs)),
      ...(threadNs > 0 && { threadNs }),
      ...(threadCycles > 0 && { threadCycles }),
      ...threadTimes(
        wait === 'busy' ? sum((one) => one.busyNs ?? NaN) : NaN,
        sum((one) => one.waitedNs),
        sum((one) => one.seconds * 1e9),
      ),
    }),
    ...(latency !== undefined && { latency }),
  };
}

/**
 * Frames of which a direction's rate is made. Where nothing was lost, frames on their way when the time was over are no
 * sign of a limit: they left after it as others would have before it, had the rings not been empty at the start.
 */
function countedInTime({ lost, forwarded, forwardedInTime }: DirectionResult): number {
  return lost === 0 ? forwarded : forwardedInTime;
}

/**
 * What threads did with `ns` of their time, as far as it is known.
 * @param busy   in turns that moved frames, ns; NaN: not known
 * @param waited for a CPU, ns; NaN: not known
 */
export function threadTimes(
  busy: number,
  waited: number,
  ns: number,
): Pick<BenchTrial, 'busyNs' | 'busyShare' | 'waitShare'> {
  return {
    ...(Number.isFinite(busy) && { busyNs: busy, busyShare: Math.min(1, busy / ns) }),
    ...(Number.isFinite(waited) && { waitShare: waited / ns }),
  };
}

/** Lost frames as a share of those offered. */
export function lossOf({ offered, lost }: BenchTrial): number {
  return offered === 0 ? 0 : lost / offered;
}

/**
 * What a frame cost, as metrics: `frame_ns`, and `frame_cycles` where cycles can be read. Of a thread that spins, only turns
 * that moved frames count, for idle ones cost no frame anything; of one that sleeps, all that it did.
 */
export function costMetrics(trial: BenchTrial | undefined): Record<string, number> {
  if (trial?.threadNs === undefined || trial.forwarded === 0) return {};
  const { threadNs, threadCycles, busyNs = threadNs, forwarded } = trial;
  return {
    frame_ns: busyNs / forwarded,
    ...(threadCycles !== undefined && { frame_cycles: (threadCycles * Math.min(1, busyNs / threadNs)) / forwarded }),
  };
}

/** Beside a frame's cost, what is known of how the forwarding thread spent its time, as metrics. */
export function threadMetrics({ busyShare, longestGapNs }: BenchTrial): Record<string, number> {
  return {
    ...(busyShare !== undefined && { busy_share: busyShare }),
    ...(longestGapNs !== undefined && { longest_gap_us: longestGapNs / 1e3 }),
  };
}

/** What the machine did during a trial, as metrics: its cores, and for how long they kept the forwarding thread waiting. */
export function machineMetrics({ cores, waitShare }: BenchTrial): Record<string, number> {
  return { ...cpuMetrics(cores), ...(waitShare !== undefined && { cpu_wait_share: waitShare }) };
}

/** A forwarding thread that waited for a CPU for more than this share of a trial has shown less than it can do. */
const WAIT_LIMIT = 0.05;

/** Says so of a trial whose thread was kept from running. Undefined where it was not, or where the system does not tell. */
export function waitNote({ waitShare = 0 }: BenchTrial): string | undefined {
  if (waitShare <= WAIT_LIMIT) return undefined;
  return `the forwarding thread waited for a CPU ${formatShare(waitShare)} of the time, more than ${formatShare(WAIT_LIMIT)}`;
}

/** The field `note` of a result: none where there is nothing to say. */
export function noteOf(...said: readonly (string | undefined)[]): { note?: string } {
  const notes = said.filter((text) => text !== undefined);
  return notes.length === 0 ? {} : { note: notes.join('; ') };
}

/** Sentences about trials whose figures say less than they seem to. */
export function benchRemarks(trials: readonly BenchTrial[]): string[] {
  const remarks: string[] = [];
  const gap = Math.max(0, ...trials.filter(({ lost }) => lost > 0).map(({ longestGapNs = 0 }) => longestGapNs));
  if (gap > 0)
    remarks.push(
      `Frames are lost where they find no free slot: the machine held the forwarding loop up for ${formatTime(gap)} ` +
        'at most. With --cpu, on a core of its own, gaps are shorter.',
    );
  const sum = (key: 'duplicates' | 'reordered' | 'corrupt'): number =>
    trials.reduce((total, trial) => total + trial[key], 0);
  const wrong = sum('duplicates') + sum('reordered') + sum('corrupt');
  if (wrong > 0)
    remarks.push(`${sum('duplicates')} duplicate, ${sum('reordered')} reordered, ${sum('corrupt')} corrupt frames.`);
  return [...remarks, ...unexplainedRemarks(trials)];
}

export function unexplainedRemarks(trials: readonly BenchTrial[]): string[] {
  const unexplained = trials.reduce((sum, trial) => sum + trial.unexplained, 0);
  return unexplained > 0 ? [`${unexplained} lost frames are in no counter: this is a fault, please report it.`] : [];
}
