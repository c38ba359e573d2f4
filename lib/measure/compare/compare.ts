import { UsageError } from '../../text/errors.js';
import { commonSettings, without } from '../results/cells.js';
import { formatShare } from '../../text/format.js';
import { metricOf, primaryMetric } from '../results/metrics.js';
import { type Cell, cellKey, type Metric, type ResultKind, type ResultLine } from '../results/result.js';
import {
  differenceEffect,
  fewestValues,
  holm,
  mannWhitney,
  mean,
  median,
  ratioEffect,
  smallestP,
  stratifiedTest,
  type Effect,
} from '../../stats/rank.js';

export type Verdict = 'better' | 'worse' | 'no difference shown' | 'too few repeats' | 'too noisy to tell';

export interface CompareOptions {
  /** Metrics to judge. Default: of each cell the one that its kind is about (docs/results.md). */
  metrics?: readonly string[];
  /** Settings that cells are not told apart by, such as the one that was changed between the files. */
  ignore?: readonly string[];
  /** Chance of calling any difference where there is none, over all cells together. Default 0.05. */
  alpha?: number;
  /** An interval (or a spread, where there are too few repeats for one) wider than this share is too noisy. Default 0.5. */
  noise?: number;
}

export interface Side {
  lines: ResultLine[];
  values: number[];
  median: number;
  mean: number;
}

export interface Comparison {
  kind: ResultKind;
  cell: Cell;
  metric: string;
  about: Metric & { label: string };
  before: Side;
  after: Side;
  /** True when the values are readings within single runs, which cannot show how runs differ. */
  withinRuns: boolean;
  scale: 'ratio' | 'difference';
  /** After over before, or after minus before, with its confidence interval of 1 - alpha (for this cell alone). */
  effect: Effect;
  /** The change as a share of before: -0.19 is 19 % less. */
  change: number;
  changeLower: number;
  changeUpper: number;
  /** Two-sided p-value of the rank test, and the same corrected for the number of comparisons (Holm). */
  p: number;
  corrected: number;
  exact: boolean;
  verdict: Verdict;
  /** Why, where the verdict needs a word. */
  reason?: string;
}

/** Cells that were not compared, and why (only one side has them, their metric cannot be judged), or what to know of those that were. */
export interface Notice {
  about: string;
  cells: Pick<Comparison, 'kind' | 'cell'>[];
}

/** All cells of one metric, judged together: what few repeats of each cannot show, all of them may. */
export interface Overall {
  kind: ResultKind;
  metric: string;
  about: Metric & { label: string };
  cells: number;
  /** Median of the cells' changes. */
  change: number;
  /** Two-sided p-value of the stratified rank test, corrected for the number of metrics (Holm). */
  p: number;
  verdict: 'better' | 'worse' | 'no difference shown';
}

/** What a notice is about where a cell is on one side alone. */
export const ONLY_BEFORE = 'only in BEFORE';
export const ONLY_AFTER = 'only in AFTER';

export interface CompareResult {
  comparisons: Comparison[];
  overall: Overall[];
  notices: Notice[];
  /** Settings that have one value in all of before and another in all of after. */
  apart: string[];
  alpha: number;
  noise: number;
  /** How many comparisons the correction is for. */
  family: number;
}

/** Chance of calling any difference where there is none. */
export const DEFAULT_ALPHA = 0.05;

/** Fewer runs than this on a side, and readings within runs are used where there are any. */
const FEW_RUNS = 4;

type Judged = Omit<Comparison, 'corrected' | 'verdict' | 'reason'>;

interface Cells {
  kind: ResultKind;
  cell: Cell;
  lines: ResultLine[];
}

function byCell(lines: readonly ResultLine[], ignore: readonly string[]): Map<string, Cells> {
  const cells = new Map<string, Cells>();
  for (const line of lines) {
    const { kind, cell: whole } = line.result;
    const cell = without(whole, ignore);
    const key = `${kind} ${cellKey(cell)}`;
    const same = cells.get(key);
    if (!same) cells.set(key, { kind, cell, lines: [line] });
    else if (cellKey(whole) === cellKey(same.lines[0].result.cell)) same.lines.push(line);
    else {
      const [file, other] = [line, same.lines[0]].map((one) => `${one.file}:${one.line}`);
      throw new UsageError(
        `--ignore ${ignore.join()}: ${other} and ${file} would be taken for repeats of one cell; leave out fewer`,
      );
    }
  }
  return cells;
}

function side(lines: ResultLine[], values: number[]): Side {
  return { lines, values, median: median(values), mean: mean(values) };
}

/** The values of a metric on both sides: one a run, or, with few runs, all readings within them. */
function valuesOf(before: ResultLine[], after: ResultLine[], metric: string): [Side, Side, boolean] | undefined {
  const withMetric = (lines: ResultLine[]): ResultLine[] => lines.filter(({ result }) => metric in result.metrics);
  const withSamples = (lines: ResultLine[]): ResultLine[] =>
    lines.filter(({ result }) => (result.samples?.[metric] ?? []).length > 0);
  const readings = [withSamples(before), withSamples(after)] as const;
  const runs = [withMetric(before), withMetric(after)] as const;
  const pick = (lines: ResultLine[]): Side =>
    side(
      lines,
      lines.flatMap(({ result }) => result.samples![metric]),
    );
  const few = Math.min(runs[0].length, runs[1].length) < FEW_RUNS;
  if (few && readings.every((lines) => lines.length > 0)) return [pick(readings[0]), pick(readings[1]), true];
  if (runs.some((lines) => lines.length === 0)) return undefined;
  const one = (lines: ResultLine[]): Side =>
    side(
      lines,
      lines.map(({ result }) => result.metrics[metric]),
    );
  return [one(runs[0]), one(runs[1]), false];
}

function judge({ kind, cell, lines }: Cells, after: ResultLine[], metric: string, alpha: number): Judged | undefined {
  const sides = valuesOf(lines, after, metric);
  if (!sides) return undefined;
  const [was, is, withinRuns] = sides;
  const about = metricOf(metric, lines[0].result.units);
  const negative = [...was.values, ...is.values].some((value) => value < 0);
  const scale = negative ? 'difference' : (about.scale ?? 'ratio');
  const effect = (scale === 'ratio' ? ratioEffect : differenceEffect)(was.values, is.values, alpha);
  const base = Math.max(Math.abs(was.median), about.matters ?? 0);
  const share = (value: number): number => (scale === 'ratio' ? value - 1 : value === 0 ? 0 : value / base);
  const { p, exact } = mannWhitney(was.values, is.values);
  return {
    kind,
    cell,
    metric,
    about,
    before: was,
    after: is,
    withinRuns,
    scale,
    effect,
    p,
    exact,
    change: share(effect.estimate),
    changeLower: share(effect.lower),
    changeUpper: share(effect.upper),
  };
}

/** How far apart the values of one side are, as a share of their median. */
function spread({ values, median: middle }: Side, matters = 0): number {
  const range = Math.max(...values) - Math.min(...values);
  return range === 0 ? 0 : range / Math.max(Math.abs(middle), matters);
}

/** How wide the interval is: the share by which its upper end exceeds its lower one (1.5 over 1 is 50 %). */
function width({ scale, changeLower, changeUpper }: Judged): number {
  if (scale === 'difference') return changeUpper - changeLower;
  return changeUpper === changeLower ? 0 : (1 + changeUpper) / (1 + changeLower) - 1;
}

function decide(
  judged: Judged,
  corrected: number,
  options: { alpha: number; noise: number; family: number },
): [Verdict, string?] {
  const { alpha, noise, family } = options;
  const { before, after, about, p } = judged;
  const [n, m] = [before.values.length, after.values.length];
  const attainable = smallestP(n, m);
  if (attainable > alpha) {
    const widest = Math.max(spread(before, about.matters), spread(after, about.matters));
    if (widest > noise) return ['too noisy to tell', `values of one side are ${formatShare(widest)} apart`];
    return ['too few repeats', `${n} and ${m}; ${fewestValues(alpha)} each are needed`];
  }
  if (corrected <= alpha) {
    // The ranks decide the direction: with many ties the estimate can be no change at all.
    const up = mannWhitney(before.values, after.values).u > (n * m) / 2;
    return [up === (about.better === 'higher') ? 'better' : 'worse'];
  }
  if (p <= alpha && attainable * family > alpha) {
    const enough = fewestValues(alpha / family);
    return ['too few repeats', `${n} and ${m}; among ${family} comparisons ${enough} each are needed`];
  }
  const wide = width(judged);
  if (wide > noise) return ['too noisy to tell', `the interval is ${formatShare(wide)} wide`];
  return ['no difference shown'];
}

/**
 * Sets the cells of two result files against each other. Each cell's values are ranked (Mann–Whitney, exact up to 50
 * values), the change is estimated with its interval (Hodges–Lehmann), and the p-values of all cells are corrected
 * together (Holm): no normal distribution is assumed anywhere.
 */
export function compare(
  before: readonly ResultLine[],
  after: readonly ResultLine[],
  options: CompareOptions = {},
): CompareResult {
  const { alpha = DEFAULT_ALPHA, noise = 0.5, ignore = [] } = options;
  const axes = new Set([...before, ...after].flatMap(({ result }) => Object.keys(result.cell)));
  const unknown = ignore.find((axis) => !axes.has(axis));
  if (unknown !== undefined)
    throw new UsageError(`--ignore ${unknown}: no cell has this setting; there are ${[...axes].join(', ')}`);
  const metricNames = new Set(
    [...before, ...after].flatMap(({ result }) => [result.metrics, result.samples ?? {}].flatMap(Object.keys)),
  );
  const unmeasured = options.metrics?.find((metric) => !metricNames.has(metric));
  if (unmeasured !== undefined)
    throw new UsageError(`--metric ${unmeasured}: no result has it; there are ${[...metricNames].sort().join(', ')}`);
  const [left, right] = [byCell(before, ignore), byCell(after, ignore)];
  const notices = new Map<string, Notice>();
  const tell = (about: string, { kind, cell }: Cells, key = about): void => {
    const notice = notices.get(key) ?? { about, cells: [] };
    notice.cells.push({ kind, cell });
    notices.set(key, notice);
  };
  const judged: Judged[] = [];
  for (const [key, was] of left) {
    const is = right.get(key);
    if (!is) {
      tell(ONLY_BEFORE, was);
      continue;
    }
    const matrices = [was.lines, is.lines].map(matricesOf);
    // Told once for all cells of the two, as of the first.
    if (!matrices.includes('') && matrices[0] !== matrices[1])
      tell(matricesText(was.lines, is.lines), was, matrices.join(' to '));
    const [{ result }] = was.lines;
    const primary = primaryMetric(result);
    const metrics = options.metrics ?? (primary === undefined ? [] : [primary]);
    if (metrics.length === 0) tell('no metric', was);
    for (const metric of metrics) {
      if (metricOf(metric, result.units).better === undefined) {
        tell(`${metric} is not judged, for which way is good is not known ("units" in a result can tell)`, was);
        continue;
      }
      const comparison = judge(was, is.lines, metric, alpha);
      if (comparison) judged.push(comparison);
      else tell(`${metric} is not on both sides`, was);
    }
  }
  for (const [key, is] of right) if (!left.has(key)) tell(ONLY_AFTER, is);

  // Comparisons that could not come out significant whatever was measured take no share of alpha from the others.
  const able = judged.filter((one) => smallestP(one.before.values.length, one.after.values.length) <= alpha);
  const corrected = new Map(holm(able.map((one) => one.p)).map((p, i) => [able[i], p]));
  const family = able.length;
  const comparisons = judged.map((one): Comparison => {
    const p = corrected.get(one) ?? 1;
    const [verdict, reason] = decide(one, p, { alpha, noise, family });
    return { ...one, corrected: p, verdict, ...(reason !== undefined && { reason }) };
  });
  return {
    comparisons,
    overall: overallOf(comparisons, alpha),
    notices: [...notices.values()],
    apart: apart(left, right),
    alpha,
    noise,
    family,
  };
}

/** Metrics of which there are several cells. Readings within runs are no repeats, and do not count. */
function overallOf(comparisons: readonly Comparison[], alpha: number): Overall[] {
  const groups = new Map<string, Comparison[]>();
  for (const one of comparisons) {
    if (one.withinRuns) continue;
    const key = `${one.kind} ${one.metric}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const several = [...groups.values()].filter((cells) => cells.length > 1);
  const tests = several.map((cells) => stratifiedTest(cells.map(({ before, after }) => [before.values, after.values])));
  const corrected = holm(tests.map(({ p }) => p));
  return several.map((cells, i): Overall => {
    const [{ kind, metric, about }] = cells;
    const middle = cells.reduce((sum, { before, after }) => sum + (before.values.length * after.values.length) / 2, 0);
    const good = tests[i].u > middle === (about.better === 'higher');
    return {
      kind,
      metric,
      about,
      cells: cells.length,
      change: median(cells.map(({ change }) => change)),
      p: corrected[i],
      verdict: corrected[i] > alpha ? 'no difference shown' : good ? 'better' : 'worse',
    };
  });
}

/** Which matrices runs are of; '' for none. */
const matricesOf = (lines: readonly ResultLine[]): string =>
  [...new Set(lines.flatMap(({ result }) => result.matrix?.digest ?? []))].sort().join(' ');

/** What is said of a cell whose runs are of other matrices before and after: its axes are the same, all else may differ. */
function matricesText(before: readonly ResultLine[], after: readonly ResultLine[]): string {
  // Of the same repeat: a command may name it.
  const was = before[0].result;
  const is = (after.find(({ result }) => result.repeat === was.repeat) ?? after[0]).result;
  const [name, other] = [was, is].map(({ matrix }) => matrix?.name ?? 'none');
  const [ran, runs] = [was, is].map(({ matrix }) => matrix?.ran ?? []);
  const only = (words: readonly string[], others: readonly string[]): string =>
    words.filter((word) => !others.includes(word)).join(' ') || 'nothing';
  const names = name === other ? name : `${name} before, ${other} after`;
  return ran.join(' ') === runs.join(' ')
    ? `the matrices differ (${names}), though what ran is the same`
    : `the matrices differ (${names}): only before ran ${only(ran, runs)}, only after ${only(runs, ran)}`;
}

/** A setting that no cell of one side has is at its default there, which is one value. */
function apart(left: ReadonlyMap<string, Cells>, right: ReadonlyMap<string, Cells>): string[] {
  const kindsOf = (side: typeof left): Set<ResultKind> => new Set([...side.values()].map(({ kind }) => kind));
  const [before, after] = [kindsOf(left), kindsOf(right)];
  const [was, is] = [left, right].map((side) => {
    const cells = [...side.values()].flatMap(({ kind, cell }) => (before.has(kind) && after.has(kind) ? [cell] : []));
    return { common: commonSettings(cells), axes: new Set(cells.flatMap((cell) => Object.keys(cell))) };
  });
  const one = ({ common, axes }: typeof was, axis: string): boolean => Object.hasOwn(common, axis) || !axes.has(axis);
  return [...new Set([...was.axes, ...is.axes])].filter(
    (axis) => one(was, axis) && one(is, axis) && was.common[axis] !== is.common[axis],
  );
}

/** The comparisons that came to no verdict either way. */
export function unjudged({ comparisons }: CompareResult): Comparison[] {
  return comparisons.filter(({ verdict }) => verdict === 'too few repeats' || verdict === 'too noisy to tell');
}

/** What is worse by at least `threshold` (0.05 is 5 %): what `--fail-on` makes of a result, or of all cells together. */
export function failures<T extends Comparison | Overall>(judged: readonly T[], threshold: number): T[] {
  return judged.filter(({ verdict, change }) => verdict === 'worse' && Math.abs(change) >= threshold);
}

/**
 * Repeats on either side that `cells` comparisons need for each to be able to come out significant, Holm's correction
 * included: 4 for one cell at 5 %, 5 for two, 6 for seven.
 */
export function repeatsNeeded(cells: number, alpha = DEFAULT_ALPHA): number {
  return fewestValues(alpha / Math.max(1, cells));
}
