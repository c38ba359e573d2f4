/** Rank statistics for two samples: no distribution is assumed, only that runs are independent. */

/** Above this many values together the normal approximation serves; up to it every p-value is exact. */
const EXACT_LIMIT = 50;
/** The same for several pairs at once. */
const EXACT_TOTAL = 200;

export function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const half = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
}

export function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}

/** Twice the midranks (so that they are whole), in the order of `values`, and the sizes of the groups of equal values. */
function doubledRanks(values: readonly number[]): { ranks: number[]; ties: number[] } {
  const order = [...values.keys()].sort((a, b) => values[a] - values[b]);
  const ranks = new Array<number>(values.length);
  const ties: number[] = [];
  for (let start = 0; start < order.length;) {
    let end = start + 1;
    while (end < order.length && values[order[end]] === values[order[start]]) end++;
    for (let i = start; i < end; i++) ranks[order[i]] = start + end + 1;
    ties.push(end - start);
    start = end;
  }
  return { ranks, ties };
}

/** How many ways there are to choose `size` of `ranks` for each sum: index is the sum. */
function sumCounts(ranks: readonly number[], size: number): Float64Array {
  const largest = ranks.toSorted((a, b) => b - a).slice(0, size);
  const width = largest.reduce((sum, rank) => sum + rank, 0) + 1;
  const ways = Array.from({ length: size + 1 }, () => new Float64Array(width));
  ways[0][0] = 1;
  for (const rank of ranks) {
    for (let taken = size; taken > 0; taken--) {
      const from = ways[taken - 1];
      const to = ways[taken];
      for (let sum = width - 1; sum >= rank; sum--) to[sum] += from[sum - rank];
    }
  }
  return ways[size];
}

/** Number of ways to choose k of n. */
export function choose(n: number, k: number): number {
  let ways = 1;
  for (let i = 1; i <= Math.min(k, n - k); i++) ways = (ways * (n - Math.min(k, n - k) + i)) / i;
  return ways;
}

/** Upper tail of the standard normal distribution: Marsaglia's series (J. Stat. Software 11(4), 2004), Mills' ratio far out. */
function normalTail(z: number): number {
  const density = Math.exp((-z * z) / 2) / Math.sqrt(2 * Math.PI);
  if (z > 5) {
    let fraction = z;
    for (let i = 60; i > 0; i--) fraction = z + i / fraction;
    return density / fraction;
  }
  let [sum, term] = [z, z];
  for (let i = 3; Math.abs(term) > 1e-17 * Math.abs(sum); i += 2) sum += term *= (z * z) / i;
  return 0.5 - density * sum;
}

/** Where the upper tail of the standard normal distribution is `tail`, at most one half. */
export function normalQuantile(tail: number): number {
  let [low, high] = [0, 40];
  for (let i = 0; i < 80; i++) {
    const middle = (low + high) / 2;
    if (normalTail(middle) > tail) low = middle;
    else high = middle;
  }
  return high;
}

interface RankTest {
  /** Pairs in which the value after is the larger one; a tie counts one half. */
  u: number;
  /** Two-sided p-value. */
  p: number;
  exact: boolean;
}

/** Two samples of one thing. */
export type Pair = readonly [before: readonly number[], after: readonly number[]];

/**
 * Mann–Whitney (Wilcoxon) rank-sum test of two samples (Ann. Math. Statist. 18, 1947). Up to 50 values together p is exact
 * by the permutation distribution of the midranks, so ties are exact too; beyond, the normal approximation with correction
 * for ties and continuity.
 */
export function mannWhitney(before: readonly number[], after: readonly number[]): RankTest {
  return stratifiedTest([[before, after]]);
}

/**
 * The same test of several pairs of samples at once: ranks are taken within each pair, and their sums are added, so that
 * pairs need not be alike but for the direction in which they move (a stratified rank-sum test, van Elteren 1960 with equal
 * weights). Exact up to 50 values a pair and 200 in all.
 */
export function stratifiedTest(pairs: readonly Pair[]): RankTest {
  const totals = pairs.map(([before, after]) => before.length + after.length);
  const ranked = pairs.map(([before, after]) => doubledRanks([...before, ...after]));
  // Sums of doubled ranks of the values after.
  const sums = pairs.map(([before], i) => ranked[i].ranks.slice(before.length).reduce((sum, rank) => sum + rank, 0));
  const add = (of: (pair: Pair, i: number) => number): number => pairs.reduce((sum, pair, i) => sum + of(pair, i), 0);
  const u = add(([, { length: m }], i) => sums[i] / 2 - (m * (m + 1)) / 2);
  if (Math.max(...totals) <= EXACT_LIMIT && add((_, i) => totals[i]) <= EXACT_TOTAL) {
    const expected = add(([, after], i) => after.length * (totals[i] + 1));
    const distance = Math.abs(add((_, i) => sums[i]) - expected);
    const ways = pairs.map(([before, after], i) => afterSums(ranked[i].ranks, before.length, after.length));
    const all = pairs.reduce((product, [, after], i) => product * choose(totals[i], after.length), 1);
    let extreme = 0;
    ways.reduce(convolved).forEach((count, at) => {
      if (Math.abs(at - expected) >= distance) extreme += count;
    });
    return { u, p: Math.min(1, extreme / all), exact: true };
  }
  const variance = add(([before, after], i) => {
    const tied = ranked[i].ties.reduce((sum, size) => sum + size ** 3 - size, 0);
    const total = totals[i];
    return ((before.length * after.length) / 12) * (total + 1 - tied / (total * (total - 1)));
  });
  const middle = add(([before, after]) => (before.length * after.length) / 2);
  const distance = Math.max(0, Math.abs(u - middle) - 0.5);
  return { u, p: variance === 0 ? 1 : Math.min(1, 2 * normalTail(distance / Math.sqrt(variance))), exact: false };
}

/** How many ways there are to each sum of the `m` ranks of the values after: those of the smaller sample are counted. */
function afterSums(ranks: readonly number[], n: number, m: number): Float64Array {
  if (m <= n) return sumCounts(ranks, m);
  const counts = sumCounts(ranks, n);
  const whole = ranks.reduce((sum, rank) => sum + rank, 0);
  const ways = new Float64Array(whole + 1);
  counts.forEach((count, at) => (ways[whole - at] = count));
  return ways;
}

/** How many ways there are to each sum of two numbers. */
function convolved(one: Float64Array, other: Float64Array): Float64Array {
  const ways = new Float64Array(one.length + other.length - 1);
  one.forEach((count, at) => {
    if (count > 0) other.forEach((more, offset) => (ways[at + offset] += count * more));
  });
  return ways;
}

/** The smallest two-sided p-value that pairs of samples of these sizes can give, all together. */
export function smallestP(...sizes: readonly (readonly [n: number, m: number])[]): number {
  return Math.min(1, 2 / sizes.reduce((ways, [n, m]) => ways * choose(n + m, n), 1));
}

/** How many values each of two samples must have for a two-sided p-value of `alpha` or less to be possible. */
export function fewestValues(alpha: number): number {
  let n = 1;
  while (smallestP([n, n]) > alpha) n++;
  return n;
}

/** How many of the n × m ordered values two by two stand where the sum of ranks is: untied, index from its least. */
function untiedCounts([{ length: n }, { length: m }]: Pair): Float64Array {
  const size = Math.min(n, m);
  const ranks = Array.from({ length: n + m }, (_, i) => i + 1);
  return sumCounts(ranks, size).slice((size * (size + 1)) / 2);
}

/**
 * How many of all values two by two to leave out at each end for a confidence interval of at least 1 - alpha that inverts the
 * rank test (Hodges and Lehmann, 1963; Moses). 0 when the samples are too small for any interval.
 */
function twosOutside(pairs: readonly Pair[], alpha: number): number {
  const totals = pairs.map(([before, after]) => before.length + after.length);
  const total = totals.reduce((sum, one) => sum + one, 0);
  if (Math.max(...totals) > EXACT_LIMIT || total > EXACT_TOTAL) {
    const twos = pairs.map(([before, after]) => before.length * after.length);
    const middle = twos.reduce((sum, one) => sum + one, 0) / 2;
    const variance = twos.reduce((sum, one, i) => sum + (one * (totals[i] + 1)) / 12, 0);
    return Math.max(0, Math.floor(middle - normalQuantile(alpha / 2) * Math.sqrt(variance)));
  }
  const ways = pairs.map(untiedCounts).reduce(convolved);
  const all = ways.reduce((sum, count) => sum + count);
  let cumulated = 0;
  return ways.findIndex((count) => (cumulated += count) > (alpha / 2) * all);
}

/** The change from one sample to another: a Hodges–Lehmann estimate with its confidence interval. */
export interface Effect {
  estimate: number;
  lower: number;
  upper: number;
}

/** One number for every two values of a pair, one before and one after. */
const twoByTwo = (pairs: readonly Pair[], of: (x: number, y: number) => number): number[] =>
  pairs.flatMap(([before, after]) => before.flatMap((x) => after.map((y) => of(x, y))));

function effect(points: number[], lows: number[], highs: number[], pairs: readonly Pair[], alpha: number): Effect {
  const outside = twosOutside(pairs, alpha);
  const ascending = (values: number[]): number[] => values.sort((a, b) => a - b);
  return {
    estimate: median(points),
    lower: outside === 0 ? -Infinity : ascending(lows)[outside - 1],
    upper: outside === 0 ? Infinity : ascending(highs)[points.length - outside],
  };
}

/** After minus before: the median of all differences within pairs, with an interval of at least 1 - alpha. */
export function differenceEffect(pairs: readonly Pair[], alpha: number): Effect {
  const twos = twoByTwo(pairs, (x, y) => y - x);
  return effect(twos, [...twos], [...twos], pairs, alpha);
}

/**
 * After over before: the median of all ratios within pairs, with an interval of at least 1 - alpha. It is the shift estimate
 * on logarithms without taking any, so that readings of zero keep their place: 0 over something is 0, something over 0 is
 * infinite, and 0 over 0, which may be any ratio, counts as the lowest for the lower end, the highest for the upper end
 * and as 1 for the estimate. Values must not be negative.
 */
export function ratioEffect(pairs: readonly Pair[], alpha: number): Effect {
  if (pairs.flat(2).every((value) => value === 0)) return { estimate: 1, lower: 1, upper: 1 };
  const ratios = (unknown: number): number[] => twoByTwo(pairs, (x, y) => (x === 0 && y === 0 ? unknown : y / x));
  const { estimate, lower, upper } = effect(ratios(1), ratios(0), ratios(Infinity), pairs, alpha);
  return { estimate, lower: Math.max(0, lower), upper };
}

/** p-values corrected for their number (Holm, Scand. J. Statist. 6, 1979), in the order given. */
export function holm(pValues: readonly number[]): number[] {
  const order = [...pValues.keys()].sort((a, b) => pValues[a] - pValues[b]);
  const corrected = new Array<number>(pValues.length);
  let floor = 0;
  order.forEach((at, rank) => {
    floor = Math.min(1, Math.max(floor, pValues[at] * (pValues.length - rank)));
    corrected[at] = floor;
  });
  return corrected;
}
