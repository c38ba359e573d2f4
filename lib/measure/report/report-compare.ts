/** Before and after: the change of each cell with its interval. */
import type { Comparison, CompareResult, Verdict } from '../compare/compare.js';
import {
  changeText,
  compareHeads,
  compareRow,
  methodText,
  naming,
  noticeTexts,
  overallTexts,
  type Naming,
} from '../compare/compare-text.js';
import type { Figure } from './figure.js';
import { formatChange } from '../../text/format.js';
import { whereAll } from './report-lines.js';
import type { Table } from './report-table.js';
import { linearAxis } from './scale.js';
import { forestChart, type Forest } from './svg.js';

/** Marker and colour of each verdict, and its sign in text; what has changed comes first. */
const VERDICTS: Record<Verdict, { style: number; sign: string }> = {
  worse: { style: 1, sign: '✗' },
  better: { style: 2, sign: '✓' },
  'no difference shown': { style: 0, sign: '=' },
  'too noisy to tell': { style: 4, sign: '≈' },
  'too few repeats': { style: 3, sign: '…' },
};
const ORDER = Object.keys(VERDICTS) as Verdict[];

/** Intervals that fit on a page of paper, below the heading. */
const MOST_DRAWN = 30;

const signed = (verdict: Verdict): string => `${VERDICTS[verdict].sign} ${verdict}`;
const whereBoth = ({ before, after }: Comparison): string => `${whereAll(before.lines)} → ${whereAll(after.lines)}`;

export function compareFigures(result: CompareResult): Figure[] {
  const comparisons = result.comparisons.toSorted((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  if (comparisons.length === 0) return [];
  const names = naming(comparisons);
  const drawable = comparisons.filter((one) => Number.isFinite(one.changeLower) && Number.isFinite(one.changeUpper));
  const plotted = drawable.slice(0, MOST_DRAWN);
  const forest = forestOf(plotted, forestNamer(comparisons, names));
  const table: Table = {
    ...(names.common !== '' && { common: names.common }),
    head: [...compareHeads(result).toSpliced(2, 0, 'verdict'), 'why', 'source'],
    numeric: [false, false, false, true, true, true, true, true, false, false],
    rows: comparisons.map((one) => [
      ...compareRow(one, names).toSpliced(2, 0, signed(one.verdict)),
      one.reason ?? '',
      whereBoth(one),
    ]),
  };
  const caption = [
    ...methodText(result),
    ...overallTexts(result).map((text) => `${text}.`),
    forest.rows.some(({ low, high }) => forest.x.place(low) < 0 || forest.x.place(high) > 1)
      ? 'An arrow means that the interval goes on.'
      : '',
    drawable.length < comparisons.length
      ? `Where there are too few repeats for an interval (${comparisons.length - drawable.length} of ${comparisons.length}), the table alone has the cell.`
      : '',
    plotted.length < drawable.length
      ? `The plot shows the first ${plotted.length} of ${drawable.length} intervals, the table all.`
      : '',
    ...noticeTexts(result.notices).map((text) => `${text}.`),
  ];
  return [
    {
      id: 'compare',
      title: 'Before and after',
      caption: caption.filter(Boolean).join(' '),
      ...(plotted.length > 0 && { draw: (width: number) => forestChart(forest, width) }),
      tables: [table],
    },
  ];
}

/** Names with the metric where a cell was compared by several. */
function forestNamer(all: readonly Comparison[], { nameOf }: Naming): (one: Comparison) => string {
  const several = new Set(all.map(nameOf)).size < all.length;
  return (one) => {
    const name = nameOf(one);
    return [name, several || name === '' ? one.about.label : ''].filter(Boolean).join(', ');
  };
}

/** Changes in percent with their intervals, on an axis from −100 to 200 % at most. */
function forestOf(plotted: readonly Comparison[], nameOf: (one: Comparison) => string): Forest {
  const ends = plotted
    .flatMap((one) => [one.change, one.changeLower, one.changeUpper])
    .filter((value) => Number.isFinite(value))
    .map((value) => Math.min(2, Math.max(-1, value)) * 100);
  const percent = (value: number): string => formatChange(value / 100).replace(/\.0 %$| %$/, '');
  const verdicts = ORDER.filter((verdict) => plotted.some((one) => one.verdict === verdict));
  return {
    label: 'Change of each cell with its interval',
    x: linearAxis('change in %', Math.min(-5, ...ends), Math.max(5, ...ends), percent, 6),
    rows: plotted.map((one) => ({
      name: nameOf(one),
      text: `${changeText(one)[0]}  ${signed(one.verdict)}`,
      at: one.change * 100,
      low: one.changeLower * 100,
      high: one.changeUpper * 100,
      style: VERDICTS[one.verdict].style,
      title: whereBoth(one),
    })),
    legend: verdicts.map((verdict) => ({ name: signed(verdict), style: VERDICTS[verdict].style })),
  };
}
