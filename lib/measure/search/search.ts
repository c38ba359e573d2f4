/**
 * Multiple Loss Ratio Search: RFC 9971 (draft-ietf-bmwg-mlrsearch), "MLRsearch". It looks for several loss ratios at
 * once, spends short trials on coming close, and only then full-length trials on the bounds themselves. What a load's
 * trials say about a goal follows the RFC's load classification; which load to try next is left open there and is ours.
 */

import { fellShort } from '../trial/offer.js';

/** What is looked for: the highest load whose loss ratio stays within `lossRatio`. */
export interface SearchGoal {
  name: string;
  /** Largest loss ratio allowed, 0 to 1 (0.005 is 0.5 %). */
  lossRatio: number;
  /** Width of the final interval, as a share of its upper end: 0.005 is 0.5 %. */
  width: number;
  /** Length of the trials that decide, in seconds. */
  finalSeconds: number;
  /** Seconds of full-length trials wanted at a load before it is decided; `finalSeconds` means that one trial decides. */
  sumSeconds: number;
  /** Share of the trials (by time) at a load that may lose more than allowed, 0 to below 1; 0 means none. */
  exceedRatio: number;
}

export interface SearchOptions {
  goals: readonly SearchGoal[];
  /** Lowest and highest load in frames/s. */
  minLoad: number;
  maxLoad: number;
}

/** One trial to run: offer `load` frames/s for `seconds`. */
export interface TrialRequest {
  load: number;
  seconds: number;
}

export interface TrialCounts {
  /** Frames that the generator really sent. */
  offered: number;
  /** Of those, frames that did not come back. */
  lost: number;
}

export interface SearchTrial extends TrialRequest, TrialCounts {
  /** Loss ratio held against the goals; see `lossRatio`. */
  ratio: number;
}

export interface GoalResult {
  goal: SearchGoal;
  /** Relevant lower bound in frames/s; absent when even the lowest load lost too much. */
  lower?: number;
  /** Relevant upper bound in frames/s; absent when the highest load was carried. */
  upper?: number;
  /** Frames/s forwarded at the lower bound in its worst admissible trial; 0 without a lower bound. */
  conditionalThroughput: number;
}

export interface SearchResult {
  goals: GoalResult[];
  trials: SearchTrial[];
  trialSeconds: number;
  /** False when the search was ended early: bounds are then missing or wider apart than asked. */
  complete: boolean;
  /** True when the generator fell short of a load and so, not the device, may have set an upper bound. */
  generatorLimited: boolean;
}

/** Zero-loss (NDR) and 0.5 % (PDR) goals as RFC 2544 wants them: the one long trial at a load decides. */
export function ndrPdrGoals(finalSeconds: number, width = 0.005): SearchGoal[] {
  const common = { width, finalSeconds, sumSeconds: finalSeconds, exceedRatio: 0 };
  return [
    { name: 'NDR', lossRatio: 0, ...common },
    { name: 'PDR', lossRatio: 0.005, ...common },
  ];
}

/**
 * The same goals for a device or machine whose trials are disturbed now and then: a load is decided by the majority of
 * `trials` trials (an exceed ratio of one half, as ETSI GS NFV-TST 009's search with loss verification).
 */
export function steadyGoals(finalSeconds: number, trials = 3, width = 0.005): SearchGoal[] {
  return ndrPdrGoals(finalSeconds, width).map((goal) => ({
    ...goal,
    sumSeconds: finalSeconds * trials,
    exceedRatio: 0.5,
  }));
}

/** The loss ratio to hold against a load: frames that a generator failed to offer count as lost beyond its tolerance. */
export function lossRatio(request: TrialRequest, counts: TrialCounts): number {
  if (counts.offered === 0) return 1;
  if (fellShort(request.load * request.seconds, counts.offered))
    return 1 - (counts.offered - counts.lost) / (request.load * request.seconds);
  return counts.lost / counts.offered;
}

/**
 * Frames that a trial needs before its loss ratio says something of a goal: so many that at the goal's ratio 100 are lost,
 * a number whose standard deviation is a tenth of it. Of fewer, a handful lost by chance would be a bound. One lost frame
 * is enough where none may be.
 */
function enoughFrames({ lossRatio: allowed }: SearchGoal): number {
  return allowed === 0 ? 0 : 100 / allowed;
}

type Verdict = 'lower' | 'upper' | 'undecided';

/**
 * RFC 9971's load classification: would the load be a lower (upper) bound even if all trials still missing from the
 * wanted sum came out bad (good)? Shorter trials weigh in only when their bad ones outnumber what is allowed.
 */
function classify(trials: readonly SearchTrial[], goal: SearchGoal, stage: Stage): Verdict {
  const [fullSeconds, sumSeconds, least] = [stage.seconds(goal), stage.sumSeconds(goal), stage.leastFrames(goal)];
  let [fullBad, fullGood, shortBad, shortGood] = [0, 0, 0, 0];
  for (const { load, seconds, ratio } of trials) {
    if (load * seconds < least * (1 - 1e-9)) continue;
    const bad = ratio > goal.lossRatio;
    if (seconds >= fullSeconds) {
      if (bad) fullBad += seconds;
      else fullGood += seconds;
    } else if (bad) shortBad += seconds;
    else shortGood += seconds;
  }
  const balance = (shortGood * goal.exceedRatio) / (1 - goal.exceedRatio);
  const bad = fullBad + Math.max(0, shortBad - balance);
  const whole = Math.max(bad + fullGood, sumSeconds);
  const allowed = whole * goal.exceedRatio;
  if (bad > allowed) return 'upper';
  return whole - fullGood <= allowed ? 'lower' : 'undecided';
}

interface Bounds {
  lower?: number;
  upper?: number;
}

/** All trials, by load. */
class Evidence {
  readonly trials: SearchTrial[] = [];
  readonly #byLoad = new Map<number, SearchTrial[]>();
  seconds = 0;
  generatorLimited = false;

  add(request: TrialRequest, counts: TrialCounts): void {
    const trial = { ...request, ...counts, ratio: lossRatio(request, counts) };
    if (fellShort(request.load * request.seconds, counts.offered)) this.generatorLimited = true;
    this.trials.push(trial);
    this.seconds += request.seconds;
    const same = this.#byLoad.get(request.load);
    if (same) same.push(trial);
    else this.#byLoad.set(request.load, [trial]);
  }

  at(load: number): readonly SearchTrial[] {
    return this.#byLoad.get(load) ?? [];
  }

  /** The lowest upper bound, and the highest lower bound below it. */
  bounds(goal: SearchGoal, stage: Stage): Bounds {
    const bounds: Bounds = {};
    const loads = [...this.#byLoad.keys()].sort((a, b) => a - b);
    for (const load of loads) {
      const verdict = classify(this.at(load), goal, stage);
      if (verdict === 'lower') bounds.lower = load;
      if (verdict === 'upper') return { ...bounds, upper: load };
    }
    return bounds;
  }
}

/** One pass over all goals with trials of one length; the last is at full length. */
class Stage {
  constructor(
    /** 0 for the first trials, 1 for the final ones: lengths in between grow geometrically. */
    readonly progress: number,
    readonly initialSeconds: number,
    readonly maxLoad: number,
  ) {}

  seconds(goal: SearchGoal): number {
    if (this.progress === 1) return goal.finalSeconds;
    return Math.min(
      goal.finalSeconds,
      this.initialSeconds * (goal.finalSeconds / this.initialSeconds) ** this.progress,
    );
  }

  /** Only final trials are repeated: before that, a wrong turn costs less than certainty would. */
  sumSeconds(goal: SearchGoal): number {
    return this.progress === 1 ? goal.sumSeconds : this.seconds(goal);
  }

  /** Frames without which a trial is not judged. A slow link has fewer: it is searched down to a tenth of its highest load. */
  leastFrames(goal: SearchGoal): number {
    return Math.min(enoughFrames(goal), (this.seconds(goal) * this.maxLoad) / 10);
  }
}

/**
 * The load expected to sit just below (side -1) or just above (+1) the goal's capacity, from what the device forwarded
 * when `trial` overloaded it: a device that forwards F frames/s loses the share g at a load of F / (1 - g).
 */
function predict(trial: SearchTrial, goal: SearchGoal, side: number): number {
  return ((trial.load * (1 - trial.ratio)) / (1 - goal.lossRatio)) * (1 + (side * goal.width * 0.98) / 2);
}

/** The next load to try for one goal in one stage, or undefined when the goal's interval is narrow enough. */
class Navigator {
  #pending: number | undefined;
  #downSteps = 0;
  #upSteps = 0;
  #predicted = false;

  constructor(
    readonly evidence: Evidence,
    readonly goal: SearchGoal,
    readonly stage: Stage,
    /** What the stage before found: tried first. */
    readonly hints: Bounds,
    readonly limits: { minLoad: number; maxLoad: number },
  ) {}

  next(): number | undefined {
    const { lower, upper } = this.evidence.bounds(this.goal, this.stage);
    const { maxLoad } = this.limits;
    const minLoad = Math.max(this.limits.minLoad, this.stage.leastFrames(this.goal) / this.stage.seconds(this.goal));
    const undecided = this.#pending;
    if (undecided !== undefined && undecided > (lower ?? 0) && undecided < (upper ?? Infinity)) return undecided;
    let load: number | undefined;
    if (upper === undefined) load = lower === undefined ? (this.hints.lower ?? maxLoad) : this.#above(lower);
    else if (lower === undefined) load = upper <= minLoad ? undefined : this.#below(upper);
    else load = this.#between(lower, upper);
    this.#pending = load === undefined ? undefined : Math.min(maxLoad, Math.max(minLoad, load));
    return this.#pending;
  }

  #above(lower: number): number | undefined {
    if (lower >= this.limits.maxLoad) return undefined;
    const hint = this.hints.upper;
    if (hint !== undefined && hint > lower) return hint;
    return lower / (1 - this.goal.width) ** (2 ** this.#upSteps++);
  }

  #below(upper: number): number {
    const hint = this.hints.lower;
    if (hint !== undefined && hint < upper) return hint;
    const step = upper * (1 - this.goal.width) ** (2 ** this.#downSteps++);
    return Math.min(step, predict(this.#worstAt(upper), this.goal, -1));
  }

  #between(lower: number, upper: number): number | undefined {
    if (upper - lower <= upper * this.goal.width) return undefined;
    const hint = this.hints.upper;
    if (hint !== undefined && hint > lower && hint < upper) return hint;
    // What the upper bound's trial forwarded says where the capacity is: once, lest a bad guess be repeated.
    const below = predict(this.#worstAt(upper), this.goal, -1);
    if (!this.#predicted && below > lower && below < upper) {
      this.#predicted = true;
      return below;
    }
    const above = predict(this.#worstAt(upper), this.goal, 1);
    if (above > lower && above < upper && above - lower <= above * this.goal.width) return above;
    return Math.sqrt(lower * upper);
  }

  #worstAt(load: number): SearchTrial {
    return this.evidence.at(load).reduce((worst, trial) => (trial.ratio > worst.ratio ? trial : worst));
  }
}

/** The forwarding rate at the lower bound: of its full-length trials, the worst that the exceed ratio does not excuse. */
function conditionalThroughput(evidence: Evidence, goal: SearchGoal, lower: number): number {
  const full = evidence
    .at(lower)
    .filter((trial) => trial.seconds >= goal.finalSeconds)
    .sort((a, b) => a.ratio - b.ratio);
  const whole = Math.max(
    goal.sumSeconds,
    full.reduce((sum, trial) => sum + trial.seconds, 0),
  );
  let needed = whole * (1 - goal.exceedRatio);
  let ratio = 0;
  for (const trial of full) {
    if (needed <= 0) break;
    ratio = trial.ratio;
    needed -= trial.seconds;
  }
  return lower * (1 - ratio);
}

/** Length of the first trials, in seconds; `longest` is that of the longest final trial. */
export function firstSeconds(longest: number): number {
  return Math.min(longest, Math.max(0.1, longest / 30));
}

function checkOptions({ goals, minLoad, maxLoad }: SearchOptions): void {
  if (!(minLoad > 0 && minLoad < maxLoad && maxLoad < Infinity)) {
    throw new RangeError(
      `search: loads from ${minLoad} to ${maxLoad} frames/s: the lowest must be above 0 and below the highest`,
    );
  }
  if (goals.length === 0) throw new RangeError('search: no goal given');
  for (const { name, lossRatio: ratio, width, finalSeconds, sumSeconds, exceedRatio } of goals) {
    const good =
      ratio >= 0 && ratio < 1 && width > 0 && width < 1 && finalSeconds > 0 && sumSeconds >= finalSeconds &&
      exceedRatio >= 0 && exceedRatio < 1; // prettier-ignore
    if (!good) throw new RangeError(`search: goal ${name}: ratios must be in [0, 1), width in (0, 1), seconds above 0`);
  }
}

/**
 * The search as a generator: it yields each trial to run and is sent what that trial counted; sent nothing, it ends with
 * what it has. It never looks at a clock, so the same answers give the same search. Throws RangeError for options that
 * make no sense.
 */
export function* searchSteps(options: SearchOptions): Generator<TrialRequest, SearchResult, TrialCounts | undefined> {
  checkOptions(options);
  const { goals } = options;
  const evidence = new Evidence();
  const initialSeconds = firstSeconds(Math.max(...goals.map((goal) => goal.finalSeconds)));
  const complete = yield* gather(evidence, initialSeconds, options);

  const last = new Stage(1, initialSeconds, options.maxLoad);
  // A load that serves a stricter goal serves this one, also where it has too few frames to be judged by.
  const strictest = Math.min(...goals.map(({ lossRatio: ratio }) => ratio));
  const safe = goals
    .filter(({ lossRatio: ratio }) => ratio === strictest)
    .map((goal) => evidence.bounds(goal, last).lower);
  return {
    goals: goals.map((goal) => {
      const bounds = evidence.bounds(goal, last);
      const known = [bounds.lower, ...safe].filter((load) => load !== undefined);
      const lower = known.length === 0 ? undefined : Math.max(...known);
      const throughput = lower === undefined ? 0 : conditionalThroughput(evidence, goal, lower);
      return { goal, ...bounds, ...(lower !== undefined && { lower }), conditionalThroughput: throughput };
    }),
    trials: evidence.trials,
    trialSeconds: evidence.seconds,
    complete,
    generatorLimited: evidence.generatorLimited,
  };
}

/** Runs the trials that tell the goals' bounds. Returns false where it was sent nothing. */
function* gather(
  evidence: Evidence,
  initialSeconds: number,
  options: SearchOptions,
): Generator<TrialRequest, boolean, TrialCounts | undefined> {
  const { goals, maxLoad } = options;
  // Everything at once: what the device makes of it says where to look.
  const first = { load: maxLoad, seconds: initialSeconds };
  const all = yield first;
  if (all === undefined) return false;
  evidence.add(first, all);
  let hints: Bounds[] = goals.map(() => ({}));
  for (const progress of [0, 0.5, 1]) {
    const stage = new Stage(progress, initialSeconds, maxLoad);
    // The strictest goal first: its bounds often serve the next goal too.
    for (const [i, goal] of goals.entries()) {
      const navigator = new Navigator(evidence, goal, stage, hints[i], options);
      for (let load = navigator.next(); load !== undefined; load = navigator.next()) {
        const request = { load, seconds: stage.seconds(goal) };
        const counts = yield request;
        if (counts === undefined) return false;
        evidence.add(request, counts);
      }
    }
    hints = goals.map((goal) => evidence.bounds(goal, stage));
  }
  return true;
}

/** Runs either search's generator against a real device. */
export async function runSearch<T, Counts extends TrialCounts | undefined>(
  steps: Generator<TrialRequest, T, Counts>,
  trial: (request: TrialRequest) => Promise<Counts> | Counts,
): Promise<T> {
  let step = steps.next();
  while (!step.done) step = steps.next(await trial(step.value));
  return step.value;
}
