import { UsageError } from '../../text/errors.js';
import { commonSettings } from '../results/cells.js';
import { formatNumber, formatShare } from '../../text/format.js';
import { metricOf, primaryMetric, untoldUnit } from '../results/metrics.js';
import type { Cell, Metric, ResultKind, ResultLine } from '../results/result.js';
import { byCell, sidesOf, type Cells, type Side } from './runs.js';
import { unevenness, type Uneven } from './uneven.js';
import {
  differenceEffect,
  fewestValues,
  holm,
  median,
  ratioEffect,
  smallestP,
  stratifiedTest,
  type Effect,
  type Pair,
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

export interface Comparison {
  kind: ResultKind;
  cell: Cell;
  metric: string;
  about: Metric & { label: string };
  before: Side;
  after: Side;
  /** The values, in the groups within which they are ranked. */
  pairs: readonly Pair[];
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
  /** The file that is compared with the first. */
  file: string;
  cells: number;
  /** Median of the cells' changes. */
  change: number;
  /** Two-sided p-value of the stratified rank test, corrected for the number of metrics (Holm). */
  p: number;
  verdict: 'better' | 'worse' | 'no difference shown';
}

/** What a notice begins with where a cell is on one side alone. */
export const ONLY_IN = 'only in ';

export interface CompareResult {
  comparisons: Comparison[];
  overall: Overall[];
  notices: Notice[];
  /** What says that the machine was busier on one side. */
  uneven: Uneven[];
  /** Settings that have one value in all of before and another in all of after. */
  apart: string[];
  alpha: number;
  noise: number;
  /** How many comparisons the correction is for. */
  family: number;
}

/** Chance of calling any difference where there is none. */
export const DEFAULT_ALPHA = 0.05;

type Judged = Omit<Comparison, 'corrected' | 'verdict' | 'reason'>;

function judge({ kind, cell, lines }: Cells, after: ResultLine[], metric: string, alpha: number): Judged | undefined {
  const sides = sidesOf(lines, after, metric);
  if (!sides) return undefined;
  const { before: was, after: is, pairs } = sides;
  const about = metricOf(metric, lines[0].result.units);
  const negative = [...was.values, ...is.values].some((value) => value < 0);
  const scale = negative ? 'difference' : (about.scale ?? 'ratio');
  const effect = (scale === 'ratio' ? ratioEffect : differenceEffect)(pairs, alpha);
  const base = Math.max(Math.abs(was.median), about.matters ?? 0);
  const share = (value: number): number => (scale === 'ratio' ? value - 1 : value === 0 ? 0 : value / base);
  const { p, exact } = stratifiedTest(pairs);
  return {
    kind,
    cell,
    metric,
    about,
    before: was,
    after: is,
    pairs,
    scale,
    effect,
    p,
    exact,
    change: share(effect.estimate),
    changeLower: share(effect.lower),
    changeUpper: share(effect.upper),
  };
}

/** How far apart the values of one side are: as a share of their median, or in the metric's unit. */
function spread({ scale }: Judged, { values, median: middle }: Side): number {
  const range = Math.max(...values) - Math.min(...values);
  return range === 0 || scale === 'difference' ? range : range / Math.abs(middle);
}

/** How wide the interval is: the share by which its upper end exceeds its lower one (1.5 over 1 is 50 %), or in the metric's unit. */
function width({ scale, effect: { lower, upper } }: Judged): number {
  if (scale === 'difference') return upper - lower;
  return upper === lower ? 0 : upper / lower - 1;
}

/** What is too wide for {@link width} and {@link spread}; where zero is an everyday value, never what is not worth telling either way. */
function widest({ scale, before, about }: Judged, noise: number): number {
  return scale === 'ratio' ? noise : Math.max(noise * Math.abs(before.median), 2 * (about.matters ?? 0));
}

function wideText({ scale, metric, about }: Judged, wide: number): string {
  return scale === 'ratio' ? formatShare(wide) : `${formatNumber(wide, 2)} ${untoldUnit(metric, about)}`.trimEnd();
}

const sizesOf = ({ pairs }: Judged): [number, number][] => pairs.map(([was, is]) => [was.length, is.length]);

/** Whether there are runs enough for a verdict, as many on either side as two equal sides would need. */
function testable(judged: Judged, alpha: number): boolean {
  const fewest = Math.min(judged.before.values.length, judged.after.values.length);
  return fewest >= fewestValues(alpha) && smallestP(...sizesOf(judged)) <= alpha;
}

/** Whether a change that is certain is too small to be of any use, by what is known of its metric. */
function slight({ scale, effect, about }: Judged): boolean {
  return scale === 'difference' && Math.abs(effect.estimate) < (about.matters ?? 0);
}

function decide(
  judged: Judged,
  corrected: number,
  options: { alpha: number; noise: number; family: number },
): [Verdict, string?] {
  const { alpha, noise, family } = options;
  const { before, after, about, metric, p, pairs } = judged;
  const [n, m] = [before.values.length, after.values.length];
  const limit = widest(judged, noise);
  if (!testable(judged, alpha)) {
    const apart = Math.max(spread(judged, before), spread(judged, after));
    if (apart > limit) return ['too noisy to tell', `values of one side are ${wideText(judged, apart)} apart`];
    return ['too few repeats', `${n} and ${m}; ${fewestValues(alpha)} each are needed`];
  }
  if (corrected <= alpha && slight(judged)) {
    const least = `${formatNumber(about.matters!)} ${untoldUnit(metric, about)}`.trimEnd();
    return ['no difference shown', `what differs is less than ${least}, the least worth telling`];
  }
  if (corrected <= alpha) {
    // The ranks decide the direction: with many ties the estimate can be no change at all.
    const up = stratifiedTest(pairs).u > middleOf(pairs);
    return [up === (about.better === 'higher') ? 'better' : 'worse'];
  }
  if (p <= alpha && smallestP(...sizesOf(judged)) * family > alpha) {
    const enough = fewestValues(alpha / family);
    return ['too few repeats', `${n} and ${m}; among ${family} comparisons ${enough} each are needed`];
  }
  const wide = width(judged);
  if (wide > limit) return ['too noisy to tell', `the interval is ${wideText(judged, wide)} wide`];
  return ['no difference shown'];
}

/** What the rank test's U is where nothing differs. */
const middleOf = (pairs: readonly Pair[]): number =>
  pairs.reduce((sum, [was, is]) => sum + (was.length * is.length) / 2, 0);

/**
 * Sets the cells of result files against those of the first. Runs are ranked (Mann–Whitney, exact up to 50 values; those
 * of `measure ab` within their rounds), the change is estimated with its interval (Hodges–Lehmann), and the p-values of all
 * comparisons are corrected together (Holm): no normal distribution is assumed anywhere.
 */
export function compareFiles(
  [before, ...afters]: readonly (readonly ResultLine[])[],
  options: CompareOptions = {},
): CompareResult {
  const { alpha = DEFAULT_ALPHA, noise = 0.5, ignore = [] } = options;
  checkNames([...before, ...afters.flat()], options);
  const left = byCell(before, ignore);
  const rights = afters.map((lines) => byCell(lines, ignore));
  const { judged, matched, notices } = matchedCells(left, rights, options);
  // Comparisons that could not come out significant whatever was measured take no share of alpha from the others.
  const able = judged.filter((one) => testable(one, alpha));
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
    notices,
    uneven: unevenness(matched, alpha),
    apart: [...new Set(rights.flatMap((right) => apart(left, right)))],
    alpha,
    noise,
    family,
  };
}

/** {@link compareFiles} of two. */
export function compare(
  before: readonly ResultLine[],
  after: readonly ResultLine[],
  options: CompareOptions = {},
): CompareResult {
  return compareFiles([before, after], options);
}

/** @throws UsageError for a setting or a metric that no result has */
function checkNames(lines: readonly ResultLine[], { ignore = [], metrics }: CompareOptions): void {
  const axes = new Set(lines.flatMap(({ result }) => Object.keys(result.cell)));
  const unknown = ignore.find((axis) => !axes.has(axis));
  if (unknown !== undefined)
    throw new UsageError(`--ignore ${unknown}: no cell has this setting; there are ${[...axes].join(', ')}`);
  const names = new Set(lines.flatMap(({ result }) => [result.metrics, result.samples ?? {}].flatMap(Object.keys)));
  const unmeasured = metrics?.find((metric) => !names.has(metric));
  if (unmeasured !== undefined)
    throw new UsageError(`--metric ${unmeasured}: no result has it; there are ${[...names].sort().join(', ')}`);
}

/** The cells that both sides have, each metric of theirs judged by itself, and what is told of the others. */
function matchedCells(
  left: ReadonlyMap<string, Cells>,
  rights: readonly ReadonlyMap<string, Cells>[],
  { metrics: named, alpha = DEFAULT_ALPHA }: CompareOptions,
): { judged: Judged[]; matched: [ResultLine[], ResultLine[]][]; notices: Notice[] } {
  const notices = new Map<string, Notice>();
  const tell = (about: string, { kind, cell }: Cells, key = about): void => {
    const notice = notices.get(key) ?? { about, cells: [] };
    notice.cells.push({ kind, cell });
    notices.set(key, notice);
  };
  const judged: Judged[] = [];
  const matched: [ResultLine[], ResultLine[]][] = [];
  for (const [key, was] of left) {
    const all = rights.flatMap((right) => right.get(key) ?? []);
    if (all.length === 0) tell(`${ONLY_IN}BEFORE`, was);
    for (const is of all) {
      matched.push([was.lines, is.lines]);
      const matrices = [was.lines, is.lines].map(matricesOf);
      // Told once for all cells of the two, as of the first.
      if (!matrices.includes('') && matrices[0] !== matrices[1])
        tell(matricesText(was.lines, is.lines), was, matrices.join(' to '));
      const [{ result }] = was.lines;
      const primary = primaryMetric(result);
      const metrics = named ?? (primary === undefined ? [] : [primary]);
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
  }
  for (const right of rights)
    for (const [key, is] of right)
      if (!left.has(key)) tell(`${ONLY_IN}${rights.length === 1 ? 'AFTER' : is.lines[0].file}`, is);
  return { judged, matched, notices: [...notices.values()] };
}

/** The file that a comparison is with. */
export const fileOf = ({ after }: Pick<Comparison, 'after'>): string => after.lines[0].file;

/** Metrics of which there are several cells, each file by itself. */
function overallOf(comparisons: readonly Comparison[], alpha: number): Overall[] {
  const groups = new Map<string, Comparison[]>();
  for (const one of comparisons) {
    const key = `${one.kind} ${one.metric} ${fileOf(one)}`;
    groups.set(key, [...(groups.get(key) ?? []), one]);
  }
  const several = [...groups.values()].filter((cells) => cells.length > 1);
  const tests = several.map((cells) => stratifiedTest(cells.flatMap(({ pairs }) => pairs)));
  const corrected = holm(tests.map(({ p }) => p));
  return several.map((cells, i): Overall => {
    const [first] = cells;
    const { kind, metric, about } = first;
    const good = tests[i].u > middleOf(cells.flatMap(({ pairs }) => pairs)) === (about.better === 'higher');
    const estimate = median(cells.map(({ effect }) => effect.estimate));
    const none = corrected[i] > alpha || slight({ ...first, effect: { ...first.effect, estimate } });
    return {
      kind,
      metric,
      about,
      file: fileOf(first),
      cells: cells.length,
      change: median(cells.map(({ change }) => change)),
      p: corrected[i],
      verdict: none ? 'no difference shown' : good ? 'better' : 'worse',
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

/** The settings that have one value in all of before and another in all of after. */
export function apartSettings(before: readonly ResultLine[], after: readonly ResultLine[]): string[] {
  return apart(byCell(before, []), byCell(after, []));
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
