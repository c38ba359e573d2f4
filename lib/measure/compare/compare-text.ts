/** A comparison in words: for terminals, and for the table of a report. */
import { cellNamer } from '../results/cells.js';
import {
  DEFAULT_ALPHA,
  fileOf,
  ONLY_IN,
  repeatsNeeded,
  unjudged,
  type Comparison,
  type CompareResult,
  type Notice,
} from './compare.js';
import type { Side } from './runs.js';
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

/** What is named by its kind and cell, and by its file where there are several. */
type Named = Pick<Comparison, 'kind' | 'cell'> & Partial<Pick<Comparison, 'after'>>;

/** How comparisons are named where all stand together: by what differs between them. */
export interface Naming {
  /** What all have in common, as text; '' when that is nothing. */
  common: string;
  nameOf: (one: Named) => string;
}

export function naming(all: readonly Named[]): Naming {
  const withFile = ({ after }: Named): string => (after === undefined ? '' : `with ${fileOf({ after })}`);
  const [kinds, files] = [new Set(all.map(({ kind }) => kind)), new Set(all.map(withFile))];
  const { common, nameOf } = cellNamer(all.map(({ cell }) => cell));
  return {
    common: [kinds.size === 1 ? `kind=${[...kinds][0]}` : '', common].filter(Boolean).join(' '),
    nameOf: (one) =>
      [kinds.size > 1 ? one.kind : '', nameOf(one.cell), files.size > 1 ? withFile(one) : ''].filter(Boolean).join(' '),
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
  const said = ['Before and after are medians of runs (n); the change is Hodges–Lehmann’s estimate.', test];
  if (comparisons.some(({ pairs }) => pairs.length > 1))
    said.push('Runs are ranked within the round they were drawn in.');
  if (comparisons.some(({ verdict }) => verdict === 'too noisy to tell'))
    said.push(
      `Too noisy: an interval wider than ${formatNumber(noise * 100)} %, or, of what is compared by difference, than is worth telling.`,
    );
  return said;
}

/** What all cells of a metric together show: a line for each metric that has several. */
export function overallTexts({ overall }: CompareResult): string[] {
  const several = new Set(overall.map(({ file }) => file)).size > 1;
  return overall.map(
    ({ metric, file, cells, change, p, verdict }) =>
      `All ${cells} cells of ${metric}${several ? ` with ${file}` : ''} together (stratified rank test): ${verdict}, p ${formatP(p)}; ` +
      `the median of their changes is ${formatChange(change)}`,
  );
}

/** What is said before any verdict where the machine was busier on one side; '' where it was not. */
export function unevenText({ uneven }: Pick<CompareResult, 'uneven'>): string {
  if (uneven.length === 0) return '';
  const said = uneven.map(({ what, unit, before, after }) => {
    const [was, is] = [before, after].map((value) => `${formatNumber(value, 3)} ${unit}`.trimEnd());
    return `${what}: ${was} before, ${is} after`;
  });
  return (
    `Not under the same load: ${said.join('; ')}. What differs may be other programs and not what was changed: ` +
    'measure ab takes both sides in turn, so that load meets both.'
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
  const oneSided = notices.every(({ about }) => about.startsWith(ONLY_IN));
  const cause = oneSided ? 'no cell is in both files' : 'no cell that both files have can be judged';
  const differ = `they differ in ${apart.join(', ')}: --ignore ${apart.join()} compares them all the same`;
  const other = oneSided
    ? 'measure both with the same settings, or --ignore those that differ'
    : 'name another metric with --metric';
  return `nothing to compare: ${cause}; ${apart.length > 0 ? differ : other}`;
}
