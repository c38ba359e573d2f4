import type { FrameSize } from '../../text/units.js';
import type { Bench, BenchTrial } from '../trial/bench.js';
import { wholeTrial } from './whole-trial.js';

/** What a burst of back-to-back frames came to. */
interface BurstTrial {
  frames: number;
  lost: number;
}

export interface BurstResult {
  /** The longest burst that came through without loss, frames; 0 when none did. */
  longest: number;
  /** The shortest burst above it that lost frames; absent when the longest possible burst came through. */
  shortestLossy?: number;
  trials: BurstTrial[];
}

/** Guesses in a row before a plain halving: losses that do not grow evenly must not hold the search up. */
const GUESSES = 4;

/**
 * Back-to-back frames of RFC 2544 section 26.4 and RFC 9004: looks for the longest burst at full rate without loss, as a
 * generator that yields the length of each burst to send and is sent how many of its frames were lost. A device that
 * drains its buffer evenly loses in proportion to what a burst exceeds it by, so two bursts that were too long tell
 * where to look; where that does not hold, the interval is halved.
 * @param most  longest burst, frames
 * @param width of the last interval as a share of its upper end; it never is below one frame
 */
export function* burstSteps(most: number, width: number): Generator<number, BurstResult, number> {
  const trials: BurstTrial[] = [];
  let lower = 0;
  let upper = Infinity;
  let guesses = 0;
  let frames = most;
  for (;;) {
    const lost = yield frames;
    trials.push({ frames, lost });
    if (lost > 0) upper = frames;
    else lower = frames;
    if (upper === Infinity) return { longest: lower, trials };
    if (upper - lower <= Math.max(1, upper * width)) return { longest: lower, shortestLossy: upper, trials };
    const guess = guesses < GUESSES ? guessBetween(trials, width, lower, upper) : undefined;
    guesses = guess === undefined ? 0 : guesses + 1;
    frames = guess ?? Math.max(lower + 1, Math.floor(Math.sqrt(Math.max(1, lower) * upper)));
  }
}

/** A burst just below, else just above, the length at which the two shortest lossy bursts say that loss begins. */
function guessBetween(trials: readonly BurstTrial[], width: number, lower: number, upper: number): number | undefined {
  const [near, far] = trials.filter(({ lost }) => lost > 0).sort((x, y) => x.frames - y.frames) as [
    BurstTrial,
    BurstTrial?,
  ];
  if (far === undefined || far.lost <= near.lost) return undefined;
  const begins = near.frames - (near.lost * (far.frames - near.frames)) / (far.lost - near.lost);
  const places = [Math.floor(begins * (1 - width / 3)), Math.ceil(begins * (1 + width / 3))];
  return places.find((place) => place > lower && place < upper);
}

/**
 * Searches the longest burst without loss once; nothing where `stop` came first. `atLongest` is the trial of that burst;
 * absent when even one frame was lost.
 */
export async function findBurst(
  bench: Bench,
  size: FrameSize,
  options: { seconds: number; width: number; onBurst?: (frames: number) => void; stop?: AbortSignal },
): Promise<(BurstResult & { benchTrials: BenchTrial[]; atLongest?: BenchTrial }) | undefined> {
  const { stop } = options;
  const rate = bench.maxLoad(size) / bench.directions;
  const benchTrials: BenchTrial[] = [];
  const steps = burstSteps(Math.max(1, Math.round(rate * options.seconds)), options.width);
  let step = steps.next();
  while (!step.done) {
    const frames = step.value;
    options.onBurst?.(frames);
    const load = { size, load: bench.maxLoad(size), seconds: frames / rate, frames };
    const trial = await wholeTrial(bench, { ...load, ...(stop && { signal: stop }) });
    if (trial === undefined) return undefined;
    benchTrials.push(trial);
    step = steps.next(trial.lost);
  }
  const found = step.value;
  const at = found.trials.findIndex(({ frames }) => frames === found.longest);
  return { ...found, benchTrials, ...(at >= 0 && { atLongest: benchTrials[at] }) };
}
