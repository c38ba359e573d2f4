/** A comparison in words: for terminals, and for the table of a report. */
import { cellNamer } from './cells.js';
import { ONLY_AFTER, ONLY_BEFORE, type Comparison, type CompareResult, type Notice, type Side } from './compare.js';
import { formatChange, formatDifference, formatNumber, formatP } from './format.js';
import { metricHead } from './metrics.js';
import { fewestValues } from './rank.js';

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

/** Cells that are named before the rest are counted. */
const NAMED = 3;

/** What could not be compared, a line for each reason. */
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

/** Why nothing was compared, and what helps. */
export function nothingText({ notices, apart }: CompareResult): string {
  const oneSided = notices.every(({ about }) => about === ONLY_BEFORE || about === ONLY_AFTER);
  const cause = oneSided ? 'no cell is in both files' : 'no cell that both files have can be judged';
  const remedy =
    apart.length === 0
      ? ''
      : `; they differ in ${apart.join(', ')}: --ignore ${apart.join()} compares them all the same`;
  return `nothing to compare: ${cause}${remedy}`;
}
