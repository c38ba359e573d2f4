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
} from '../compare/compare-text.js';
import type { Figure } from './figure.js';
import { formatChange } from '../../text/format.js';
import { whereAll } from './report-lines.js';
import type { Table } from './report-table.js';
import { linearAxis, type Axis } from './scale.js';
import { forestChart } from './svg.js';

const VERDICT_STYLE: Record<Verdict, number> = {
  worse: 1,
  better: 2,
  'no difference shown': 0,
  'too noisy to tell': 4,
  'too few repeats': 3,
};
const VERDICT_SIGN: Record<Verdict, string> = {
  better: '✓',
  worse: '✗',
  'no difference shown': '=',
  'too noisy to tell': '≈',
  'too few repeats': '…',
};

/** Intervals that fit on a page of paper, below the heading. */
const MOST_DRAWN = 30;

export function compareFigures(result: CompareResult): Figure[] {
  const { comparisons: all } = result;
  if (all.length === 0) return [];
  // What has changed comes first.
  const order = Object.keys(VERDICT_STYLE);
  const comparisons = all.toSorted((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  const drawable = comparisons.filter((one) => Number.isFinite(one.changeLower) && Number.isFinite(one.changeUpper));
  const plotted = drawable.slice(0, MOST_DRAWN);
  const names = naming(comparisons);
  const several = new Set(comparisons.map(names.nameOf)).size < comparisons.length;
  const nameOf = (one: Comparison): string => {
    const name = names.nameOf(one);
    return [name, several || name === '' ? one.about.label : ''].filter(Boolean).join(', ');
  };
  const ends = plotted
    .flatMap((one) => [one.change, one.changeLower, one.changeUpper])
    .filter((value) => Number.isFinite(value))
    .map((value) => Math.min(2, Math.max(-1, value)) * 100);
  const x: Axis = linearAxis(
    'change in %',
    Math.min(-5, ...ends),
    Math.max(5, ...ends),
    (value) => formatChange(value / 100).replace(/\.0 %$| %$/, ''),
    6,
  );
  const rows = plotted.map((one) => ({
    name: nameOf(one),
    text: `${changeText(one)[0]}  ${VERDICT_SIGN[one.verdict]} ${one.verdict}`,
    at: one.change * 100,
    low: one.changeLower * 100,
    high: one.changeUpper * 100,
    style: VERDICT_STYLE[one.verdict],
    title: `${whereAll(one.before.lines)} → ${whereAll(one.after.lines)}`,
  }));
  const verdicts = (Object.keys(VERDICT_STYLE) as Verdict[]).filter((verdict) =>
    plotted.some((one) => one.verdict === verdict),
  );
  const legend = verdicts.map((verdict) => ({
    name: `${VERDICT_SIGN[verdict]} ${verdict}`,
    style: VERDICT_STYLE[verdict],
  }));
  const table: Table = {
    ...(names.common !== '' && { common: names.common }),
    head: [...compareHeads(result).toSpliced(2, 0, 'verdict'), 'why', 'source'],
    numeric: [false, false, false, true, true, true, true, true, false, false],
    rows: comparisons.map((one) => [
      ...compareRow(one, names).toSpliced(2, 0, `${VERDICT_SIGN[one.verdict]} ${one.verdict}`),
      one.reason ?? '',
      `${whereAll(one.before.lines)} → ${whereAll(one.after.lines)}`,
    ]),
  };
  const caption = [
    ...methodText(result),
    ...overallTexts(result).map((text) => `${text}.`),
    rows.some(({ low, high }) => x.place(low) < 0 || x.place(high) > 1)
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
      ...(plotted.length > 0 && {
        draw: (width: number) =>
          forestChart({ label: 'Change of each cell with its interval', x, rows, legend }, width),
      }),
      tables: [table],
    },
  ];
}
