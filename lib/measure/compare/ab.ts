/**
 * Two set-ups measured in turn, in rounds of one random order each: how many runs they need, and what they show.
 *
 * Were the set-ups equal, each run would have given what it gave whichever side it was drawn for, and every order of a
 * round is as likely as any other. The rank test within rounds is exact by this alone, whatever the machine does meanwhile.
 * How many runs are needed is worked out from the values without their sides, so it cannot lead the verdict; the one
 * look at the sides before that is paid for with a part of alpha.
 */
import { createHash } from 'node:crypto';
import { UsageError } from '../../text/errors.js';
import { shuffled } from '../matrix/matrix-order.js';
import { normalQuantile, smallestP } from '../../stats/rank.js';
import type { AbRun, ResultLine } from '../results/result.js';
import { apartSettings, compare, DEFAULT_ALPHA, unjudged, type Comparison, type CompareResult } from './compare.js';

export type AbSide = 'before' | 'after';

/** Runs of each side in a round: the fewest of which the first look can show one cell's change. */
export const ROUND_RUNS = 5;

/** The part of alpha that the first look takes. */
const FIRST_PART = 0.2;

/** How often a change of the size that is looked for is to be found. */
export const POWER = 0.9;

/** The sides of a round's runs, one after the other. */
export function roundOrder(seed: number, round: number): AbSide[] {
  return shuffled(2 * ROUND_RUNS, seed, round).map((i) => (i < ROUND_RUNS ? 'before' : 'after'));
}

/** A name for the comparison of two commands. */
export function abDigest(before: readonly string[], after: readonly string[]): string {
  return createHash('sha256')
    .update(JSON.stringify([before, after]))
    .digest('hex');
}

export interface AbOptions {
  metrics?: readonly string[];
  /** Chance of calling any difference where there is none, over all looks and cells. */
  alpha?: number;
  /** The smallest change that is to be found, as a share (0.05 is 5 %). */
  find: number;
  /** Runs of each side at most. */
  most: number;
}

export interface AbState {
  /** Runs of each side that are done, in whole rounds. */
  runs: number;
  /** Runs of each side that a change of `find` needs to be found with {@link POWER}, by the noise so far; Infinity before the first round. */
  needed: number;
  /** The judgement, once there are runs enough. */
  result?: CompareResult;
}

/** The results of a comparison, side by side. @throws UsageError when they are of several comparisons, or of none */
export function abSides(lines: readonly ResultLine[], where: string): [ResultLine[], ResultLine[]] {
  const runs = lines.filter(({ result }) => result.ab !== undefined);
  if (runs.length === 0) throw new UsageError(`${where}: no run of measure ab in it; name two files, BEFORE and AFTER`);
  if (new Set(runs.map(({ result }) => result.ab!.digest)).size > 1)
    throw new UsageError(`${where}: runs of several comparisons; give each its own file with measure ab --out`);
  const of = (side: AbSide): ResultLine[] => runs.filter(({ result }) => result.cell.side === side);
  return [of('before'), of('after')];
}

/** Runs of both sides against each other; where they differ by what was set up, cells are told apart by the rest. */
export function compareSides(
  [before, after]: readonly [ResultLine[], ResultLine[]],
  { metrics, alpha = DEFAULT_ALPHA, noise }: { metrics?: readonly string[]; alpha?: number; noise?: number },
): CompareResult {
  const ignore = apartSettings(before, after);
  return compare(before, after, { alpha, ignore, ...(metrics && { metrics }), ...(noise !== undefined && { noise }) });
}

/** The part of alpha that is left for the judgement at the end. */
export const finalAlpha = (alpha: number): number => alpha * (1 - FIRST_PART);

/** Where a comparison stands after its whole rounds. */
export function abState(lines: readonly ResultLine[], options: AbOptions): AbState {
  const { alpha = DEFAULT_ALPHA, find, most, metrics } = options;
  const rounds = wholeRounds(lines);
  const runs = rounds * ROUND_RUNS;
  if (rounds === 0) return { runs, needed: Infinity };
  const sides = abSides(
    lines.filter(({ result }) => result.ab!.round < rounds),
    'the results',
  );
  const judged = (share: number): CompareResult => compareSides(sides, { alpha: share, ...(metrics && { metrics }) });
  const end = judged(finalAlpha(alpha));
  const cells = Math.max(1, end.comparisons.length);
  const needed = Math.max(
    firstLook(cells, alpha) * ROUND_RUNS,
    ...end.comparisons.map((one) => runsNeeded(one, find, finalAlpha(alpha) / cells)),
  );
  if (runs >= Math.min(needed, most)) return { runs, needed, result: end };
  if (rounds !== firstLook(cells, alpha)) return { runs, needed };
  const first = judged(FIRST_PART * alpha);
  const clear = first.comparisons.every(({ verdict }) => verdict === 'better' || verdict === 'worse');
  return { runs, needed, ...(clear && unjudged(first).length === 0 && { result: first }) };
}

/** Rounds of which all runs are there. */
function wholeRounds(lines: readonly ResultLine[]): number {
  const places = new Map<number, Set<number>>();
  for (const { round, place } of lines.map(({ result }) => result.ab!))
    places.set(round, (places.get(round) ?? new Set()).add(place));
  let rounds = 0;
  while (places.get(rounds)?.size === 2 * ROUND_RUNS) rounds++;
  return rounds;
}

/** Rounds after which the sides are looked at first: when each of so many cells can show a change. */
function firstLook(cells: number, alpha: number): number {
  let rounds = 1;
  while (smallestP(...Array<[number, number]>(rounds).fill([ROUND_RUNS, ROUND_RUNS])) > (FIRST_PART * alpha) / cells)
    rounds++;
  return rounds;
}

/** Of the normal distribution's efficiency, what the rank test has (Hodges and Lehmann, 1956). */
const RANK_EFFICIENCY = 3 / Math.PI;
/** And what is left of it where ranks are taken within rounds (van Elteren, 1960). */
const ROUND_EFFICIENCY = (2 * ROUND_RUNS) / (2 * ROUND_RUNS + 1);

/**
 * Runs of each side after which a change of `find` is found with {@link POWER}: Noether's formula (J. Amer. Statist. Assoc.
 * 82, 1987) in whole rounds. The spread is that of all runs of a round, whichever side they are of.
 */
function runsNeeded(one: Comparison, find: number, alpha: number): number {
  const ratio = one.scale === 'ratio';
  if (ratio && one.pairs.flat(2).some((value) => value <= 0)) return Infinity;
  const values = one.pairs.map((pair) => pair.flat().map((value) => (ratio ? Math.log(value) : value)));
  const step = ratio ? Math.log1p(find) : Math.max(find * Math.abs(one.before.median), one.about.matters ?? 0);
  const deviations = normalQuantile(alpha / 2) + normalQuantile(1 - POWER);
  const efficiency = RANK_EFFICIENCY * ROUND_EFFICIENCY;
  const runs = (2 * deviations ** 2 * varianceWithin(values)) / (step ** 2 * efficiency);
  return Math.ceil(runs / ROUND_RUNS) * ROUND_RUNS;
}

/** The variance of values about the mean of their group. */
function varianceWithin(groups: readonly (readonly number[])[]): number {
  const squares = groups.map((values) => {
    const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
    return values.reduce((sum, value) => sum + (value - mean) ** 2, 0);
  });
  const freedom = groups.reduce((sum, { length }) => sum + length - 1, 0);
  return squares.reduce((sum, one) => sum + one, 0) / freedom;
}

/** A run that is still to be measured. */
export interface AbNext extends Pick<AbRun, 'round' | 'place'> {
  side: AbSide;
  /** Runs of the side before it. */
  repeat: number;
}

/** The runs of a round that are not done yet, in their order. */
export function runsLeft(lines: readonly ResultLine[], seed: number, round: number): AbNext[] {
  const done = new Set(lines.flatMap(({ result: { ab } }) => (ab!.round === round ? ab!.place : [])));
  const order = roundOrder(seed, round);
  return order.flatMap((side, place) => {
    if (done.has(place)) return [];
    const earlier = order.slice(0, place).filter((one) => one === side).length;
    return { round, place, side, repeat: round * ROUND_RUNS + earlier };
  });
}
