/** What a trial's thread is given, and what it counted. */
import type { WaitMode } from '../../forward/wait.js';
import type { HistogramJson } from '../../stats/histogram.js';
import type { CoreShares } from '../results/result.js';

/** What is to be done; plain data. */
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
  /** Time that the forwarding thread spent in turns that moved frames, ns; absent where no such turn was timed. */
  busyNs?: number | undefined;
  /** Time for which it waited for a CPU, ns; NaN where the system does not tell. */
  waitedNs: number;
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
