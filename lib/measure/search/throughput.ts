/** The throughput of a bench, NDR and PDR, and what it says as a result. */
import type { FrameSize } from '../../text/units.js';
import { UsageError } from '../../text/errors.js';
import { costMetrics, type Bench, type BenchTrial } from '../trial/bench.js';
import { wholeTrial } from './whole-trial.js';
import {
  firstSeconds,
  lossRatio,
  ndrPdrGoals,
  runSearch,
  searchSteps,
  steadyGoals,
  type GoalResult,
  type SearchResult,
} from './search.js';

/** Loads below this share of the line rate are not looked at. */
const LEAST_SHARE = 1e-4;

interface ThroughputOptions {
  seconds: number;
  /** Full-length trials at a load, of which the majority decides. */
  trials: number;
  /** Width of the intervals as a share of their upper end. */
  width: number;
  onTrial?: (trial: { load: number; seconds: number; trialSeconds: number }) => void;
  /** Ends the search with what it has. */
  stop?: AbortSignal;
}

interface Throughput {
  search: SearchResult;
  ndr: GoalResult;
  pdr: GoalResult;
  /** The worst full-length trial at NDR's lower bound; absent when no load was carried without loss. */
  atNdr?: BenchTrial;
  trials: BenchTrial[];
}

/** Searches a bench for NDR and PDR at one frame size. @throws UsageError when the trials are too short for the link */
export async function findThroughput(bench: Bench, size: FrameSize, options: ThroughputOptions): Promise<Throughput> {
  const { seconds, trials: repeats, width, onTrial, stop } = options;
  const goals = repeats === 1 ? ndrPdrGoals(seconds, width) : steadyGoals(seconds, repeats, width);
  const maxLoad = bench.maxLoad(size);
  // The shortest trial still offers a frame in each direction.
  const minLoad = Math.max(maxLoad * LEAST_SHARE, bench.directions / firstSeconds(seconds));
  if (minLoad >= maxLoad)
    throw new UsageError(
      `${size} bytes: in ${firstSeconds(seconds)} s, the shortest trial, this link carries no more than one frame; ` +
        'write a larger --seconds',
    );
  const trials: { load: number; asked: number; ratio: number; trial: BenchTrial }[] = [];
  let trialSeconds = 0;
  const search = await runSearch(searchSteps({ goals, minLoad, maxLoad }), async (request) => {
    onTrial?.({ ...request, trialSeconds });
    const trial = await wholeTrial(bench, { size, ...request, ...(stop && { signal: stop }) });
    if (trial === undefined) return undefined;
    trialSeconds += request.seconds;
    trials.push({ load: request.load, asked: request.seconds, ratio: lossRatio(request, trial), trial });
    return { offered: trial.offered, lost: trial.lost };
  });
  const [ndr, pdr] = search.goals;
  const [atNdr] = trials
    .filter(({ load, asked }) => load === ndr.lower && asked >= seconds)
    .sort((x, y) => y.ratio - x.ratio);
  return {
    search,
    ndr,
    pdr,
    trials: trials.map(({ trial }) => trial),
    ...((atNdr as typeof atNdr | undefined) && { atNdr: atNdr.trial }),
  };
}

/** Its figures, as result files name them; of a search that was ended early the throughput is none of them. */
export function throughputMetrics({ search, ndr, pdr, atNdr }: Throughput): Record<string, number> {
  const bounds = (name: string, { lower, upper }: GoalResult): Record<string, number> => ({
    ...(lower === undefined ? {} : { [`${name}_lower_mpps`]: lower / 1e6 }),
    ...(upper === undefined ? {} : { [`${name}_upper_mpps`]: upper / 1e6 }),
  });
  return {
    ...(search.complete && { ndr_mpps: (ndr.lower ?? 0) / 1e6, pdr_mpps: (pdr.lower ?? 0) / 1e6 }),
    ...bounds('ndr', ndr),
    ...bounds('pdr', pdr),
    trial_s: search.trialSeconds,
    ...(atNdr?.busyShare === undefined ? {} : { busy_share: atNdr.busyShare }),
    ...costMetrics(atNdr),
  };
}
