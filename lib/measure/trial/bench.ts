import { UsageError } from '../../text/errors.js';
import { formatTime, lineRate } from '../../text/units.js';
import type { CoreShares } from './cpu.js';
import type { Cell } from '../results/results.js';
import { fellShort } from '../search/search.js';
import { formatNumber } from '../../text/format.js';
import { setupCell, trialOptions, type Setup } from '../../cli/measure/setup.js';
import { runTrial, type LatencySample, type TrialResult } from './trial.js';

/** One trial to run on a bench: `load` in frames/s, all directions together. */
export interface BenchLoad {
  size: number;
  load: number;
  seconds: number;
  /** Frames each way, in one burst; then silence. Default: no end. */
  frames?: number;
  /** Measure latency; see TrialOptions. */
  latencyEvery?: number;
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
  /** Share of its time in turns that moved frames, 0..1; absent when it sleeps between them. */
  busyShare?: number;
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
  maxLoad(size: number): number;
  run(load: BenchLoad): Promise<BenchTrial>;
  /** What results of this bench are told apart by. */
  cell(size: number): Cell;
  close(): Promise<void>;
}

/** Two simulated ports, bridged by this process. @throws UsageError for links without a line rate */
export function simBench(setup: Setup): Bench {
  const directions = setup.oneWay ? 1 : 2;
  if (setup.rate === Infinity)
    throw new UsageError(
      'rate=max: a link without a speed has no load to search for; give a rate such as --rate 10G, ' +
        'or run measure --rate max, which shows what the machine can do',
    );
  const maxLoad = (size: number): number => lineRate(setup.rate, size) * directions;
  return {
    title: setup.names.join(setup.oneWay ? ' → ' : ' ⇄ '),
    directions,
    maxLoad,
    cell: (size) => setupCell(setup, size),
    close: () => Promise.resolve(),
    async run({ size, load, ...rest }) {
      const trial = await runTrial({ ...trialOptions(setup, size), ...rest, load: Math.min(1, load / maxLoad(size)) });
      const due = rest.frames === undefined ? load * rest.seconds : rest.frames * directions;
      return summed(trial, due, setup.specs[0].clock === 'real', setup.wait === 'busy');
    },
  };
}

/** @param real whether the trial went by the machine's time: on the virtual clock, what the thread did says nothing */
function summed(trial: TrialResult, due: number, real: boolean, spins: boolean): BenchTrial {
  const sum = (key: keyof TrialResult['directions'][number]): number =>
    trial.directions.reduce((total, direction) => total + direction[key], 0);
  const { seconds, cores, userNs, systemNs, cycles, busyShare, longestGapNs, latency } = trial;
  return {
    seconds,
    due,
    offered: sum('offered'),
    forwarded: sum('forwarded'),
    lost: sum('lost'),
    rate: sum('forwardedInTime') / seconds,
    duplicates: sum('duplicates'),
    reordered: sum('reordered'),
    corrupt: sum('corrupt'),
    unexplained: sum('unexplained'),
    cores,
    ...(real ? { threadNs: userNs + systemNs, longestGapNs } : {}),
    ...(real && Number.isFinite(cycles) ? { threadCycles: cycles } : {}),
    ...(real && spins ? { busyShare } : {}),
    ...(latency === undefined ? {} : { latency }),
  };
}

/**
 * CPU time of the forwarding thread a frame, ns. Of a thread that spins, only turns that moved frames count: idle ones cost
 * no frame anything.
 */
export function frameNs({ threadNs, busyShare = 1, forwarded }: BenchTrial): number | undefined {
  return threadNs === undefined || forwarded === 0 ? undefined : (threadNs * busyShare) / forwarded;
}

/** What a frame cost, as metrics: `frame_ns`, and `frame_cycles` where cycles can be read. */
export function costMetrics(trial: BenchTrial | undefined): Record<string, number> {
  const ns = trial && frameNs(trial);
  if (ns === undefined) return {};
  const { threadCycles, busyShare = 1, forwarded } = trial!;
  return { frame_ns: ns, ...(threadCycles !== undefined && { frame_cycles: (threadCycles * busyShare) / forwarded }) };
}

/**
 * Where the generator fell short of `load` (frames/s; by the rule of the throughput search): "the generator offered 0.1 of
 * 14.88 Mpps". Undefined where it did not.
 */
export function shortOffer(load: number, { due, offered, seconds }: BenchTrial): string | undefined {
  if (!fellShort(due, offered)) return undefined;
  return `the generator offered ${formatNumber(offered / seconds / 1e6, 4)} of ${formatNumber(load / 1e6, 4)} Mpps`;
}

/** Said of a search in which the generator fell short. */
export const GENERATOR_LIMITED = 'the generator, not what was measured, may have been the limit';

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
  const sum = (key: 'duplicates' | 'reordered' | 'corrupt' | 'unexplained'): number =>
    trials.reduce((total, trial) => total + trial[key], 0);
  const wrong = sum('duplicates') + sum('reordered') + sum('corrupt');
  if (wrong > 0)
    remarks.push(`${sum('duplicates')} duplicate, ${sum('reordered')} reordered, ${sum('corrupt')} corrupt frames.`);
  if (sum('unexplained') > 0)
    remarks.push(`${sum('unexplained')} lost frames are in no counter: this is a fault, please report it.`);
  return remarks;
}
