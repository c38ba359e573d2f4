/** A comparison in words: for terminals, and for the table of a report. */
import { cellNamer } from '../results/cells.js';
import {
  DEFAULT_ALPHA,
  ONLY_AFTER,
  ONLY_BEFORE,
  repeatsNeeded,
  unjudged,
  type Comparison,
  type CompareResult,
  type Notice,
  type Side,
} from './compare.js';
import { countText, formatChange, formatDifference, formatNumber, formatP, formatShare } from '../../text/format.js';
import { metricHead } from '../results/metrics.js';
import { fewestValues } from '../../stats/rank.js';
import { cellKey } from '../results/result.js';

/** The change and its interval, in percent or, for metrics compared by difference, in their own unit. */
export function changeText({ scale, effect, change, changeLower, changeUpper }: Comparison): [string, string] {
  const [share, lower, upper] =
    scale === 'ratio'
      ? [change, changeLower, changeUpper].map(formatChange)
      : [effect.estimate, effect.lower, effect.upper].map(formatDifference);
  // Too few values for any interval leave it without ends.
  return [share, Number.isFinite(changeLower) && Number.isFinite(changeUpper) ? `${lower} to ${upper}` : 'none'];
}

/** How comparisons are named where all stand together: by what differs between them. */
export interface Naming {
  /** What all have in common, as text; '' when that is nothing. */
  common: string;
  nameOf: (one: Pick<Comparison, 'kind' | 'cell'>) => string;
}

export function naming(all: readonly Pick<Comparison, 'kind' | 'cell'>[]): Naming {
  const kinds = new Set(all.map(({ kind }) => kind));
  const { common, nameOf } = cellNamer(all.map(({ cell }) => cell));
  return {
    common: [kinds.size === 1 ? `kind=${[...kinds][0]}` : '', common].filter(Boolean).join(' '),
    nameOf: ({ kind, cell }) => [kinds.size > 1 ? kind : '', nameOf(cell)].filter(Boolean).join(' '),
  };
}

/** Columns that say what was compared and what came out; the first is empty where there is but one cell. */
export function compareHeads({ alpha }: CompareResult): string[] {
  const level = formatNumber((1 - alpha) * 100);
  return ['cell', 'metric', 'before (n)', 'after (n)', 'change', `${level} % interval`, 'p'];
}

/** The row of {@link compareHeads}. */
export function compareRow(one: Comparison, { nameOf }: Naming): string[] {
  const side = ({ values, median }: Side): string => `${formatNumber(median)} (${values.length})`;
  return [
    nameOf(one),
    metricHead(one.metric, one.about),
    side(one.before),
    side(one.after),
    ...changeText(one),
    formatP(one.corrected),
  ];
}

/** How it was judged, in sentences. */
export function methodText({ comparisons, alpha, noise, family }: CompareResult): string[] {
  const level = `${formatNumber(alpha * 100)} %`;
  const test =
    family === 0
      ? `No cell has values enough for a rank test at ${level}: ${fewestValues(alpha)} on each side are the least.`
      : `p is of Mann–Whitney's rank test, judged at ${level}` +
        (family === 1 ? '.' : `, corrected by Holm for ${family} comparisons.`);
  const said = ['Before and after are medians; the change is Hodges–Lehmann’s estimate.', test];
  if (comparisons.some(({ verdict }) => verdict === 'too noisy to tell'))
    said.push(`Too noisy: an interval wider than ${formatNumber(noise * 100)} %.`);
  if (comparisons.some((one) => one.withinRuns))
    said.push('Some values are readings within one run: they show how steady that run was, not how runs differ.');
  return said;
}

/** What all cells of a metric together show: a line for each metric that has several. */
export function overallTexts({ overall }: CompareResult): string[] {
  return overall.map(
    ({ metric, cells, change, p, verdict }) =>
      `All ${cells} cells of ${metric} together (stratified rank test): ${verdict}, p ${formatP(p)}; ` +
      `the median of their changes is ${formatChange(change)}`,
  );
}

/** What is said before measuring where there are too few repeats; '' where there are enough. */
export function repeatsText(cells: number, repeats: number): string {
  const needed = repeatsNeeded(cells);
  if (repeats >= needed) return '';
  return (
    `measure compare judges ${countText(cells, 'cell')} at ${formatShare(DEFAULT_ALPHA)} from ${needed} repeats of each on, ` +
    `before and after; here are ${repeats}`
  );
}

/** Cells that are named before the rest are counted. */
const NAMED = 3;

/** What could not be compared, and what to know of what was: a line for each reason. */
export function noticeTexts(notices: readonly Notice[]): string[] {
  return notices.map(({ about, cells }) => {
    const { common, nameOf } = naming(cells);
    const names = cells.map(nameOf).filter((name) => name !== '');
    const more = names.length - NAMED;
    const some = more > 1 ? [...names.slice(0, NAMED), `and ${more} more`] : names;
    const list = some.join('; ');
    const many = cells.length === 1 ? '' : `, ${cells.length} cells`;
    return `${about}${many}: ${[common, list].filter(Boolean).join(': ')}`;
  });
}

/** How many comparisons came to no verdict, and why; '' when all did. */
export function unjudgedText(result: CompareResult): string {
  const counts = new Map<string, number>();
  for (const { verdict } of unjudged(result)) counts.set(verdict, (counts.get(verdict) ?? 0) + 1);
  if (counts.size === 0) return '';
  const many = [...counts.values()].reduce((sum, count) => sum + count);
  const cells = new Set(result.comparisons.map(({ kind, cell }) => `${kind} ${cellKey(cell)}`)).size;
  // With several metrics a cell is compared more than once.
  const what = cells === result.comparisons.length ? 'cell' : 'comparison';
  const why = [...counts].map(([verdict, count]) => (counts.size === 1 ? verdict : `${count} ${verdict}`));
  return `${countText(many, what)} could not be judged: ${why.join(', ')}`;
}

/** Why nothing was compared, and what helps. */
export function nothingText({ notices, apart }: CompareResult): string {
  const oneSided = notices.every(({ about }) => about === ONLY_BEFORE || about === ONLY_AFTER);
  const cause = oneSided ? 'no cell is in both files' : 'no cell that both files have can be judged';
  const differ = `they differ in ${apart.join(', ')}: --ignore ${apart.join()} compares them all the same`;
  const other = oneSided
    ? 'measure both with the same settings, or --ignore those that differ'
    : 'name another metric with --metric';
  return `nothing to compare: ${cause}; ${apart.length > 0 ? differ : other}`;
}
