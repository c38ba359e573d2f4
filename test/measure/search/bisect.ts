import {
  lossRatio,
  type GoalResult,
  type SearchGoal,
  type SearchTrial,
  type TrialCounts,
  type TrialRequest,
} from '../../../lib/measure/search/search.js';

export interface BisectResult extends GoalResult {
  trials: SearchTrial[];
  trialSeconds: number;
}

/**
 * RFC 2544 section 26.1 throughput by plain bisection, one goal, every trial at full length: the yardstick that the
 * multiple-loss-ratio search is held against. Starts at `maxLoad`, which ends the search when it is carried.
 */
export function* bisectSteps(
  goal: SearchGoal,
  minLoad: number,
  maxLoad: number,
): Generator<TrialRequest, BisectResult, TrialCounts> {
  const trials: SearchTrial[] = [];
  const seconds = goal.finalSeconds;
  let lower = minLoad;
  let upper: number | undefined;
  let carried: SearchTrial | undefined;
  let load = maxLoad;
  while (upper === undefined || upper - lower > upper * goal.width) {
    const request = { load, seconds };
    const counts = yield request;
    const trial = { ...request, ...counts, ratio: lossRatio(request, counts) };
    trials.push(trial);
    if (trial.ratio <= goal.lossRatio) {
      lower = load;
      carried = trial;
      if (load === maxLoad) break;
    } else {
      upper = load;
    }
    load = (lower + upper!) / 2;
  }
  return {
    goal,
    ...(carried && { lower }),
    ...(upper !== undefined && { upper }),
    conditionalThroughput: carried ? carried.load * (1 - carried.ratio) : 0,
    trials,
    trialSeconds: trials.length * seconds,
  };
}
