/** Tables of a report: a row a line of a result file, and only what differs between them. */
import { formatNumber } from '../../text/format.js';
import { isCpuShare, metricHead, metricOf, primaryMetric } from '../results/metrics.js';
import { groupBy, where } from './report-lines.js';
import type { Result, ResultLine } from '../results/result.js';

export interface Table {
  /** What the rows are, where a figure has several tables. */
  title?: string;
  /** What is the same in every row, as text; the columns have the rest. */
  common?: string;
  head: string[];
  /** Columns that hold numbers, which are set flush right. */
  numeric: boolean[];
  rows: string[][];
}

/** A figure that is not a metric of the line but follows from it. */
export type Computed = [head: string, of: (line: ResultLine) => string];

interface Column {
  head: string;
  /** A setting, not what came out. */
  setting: boolean;
  numeric: boolean;
  texts: string[];
}

/** Significant digits of what was measured: enough to tell 14.880 Mpps from line rate. */
export const DIGITS = 5;

/** A row for each line: its settings, its repeat, all its metrics (or what is `computed` instead), and where it stands. */
export function linesTable(lines: readonly ResultLine[], computed: readonly Computed[] = []): Table {
  const names = (of: (line: ResultLine) => object): string[] => [
    ...new Set(lines.flatMap((line) => Object.keys(of(line)))),
  ];
  const metrics =
    computed.length > 0
      ? []
      : inOrder(
          names(({ result }) => result.metrics),
          lines,
        );
  const unitsOf = (metric: string): Result['units'] =>
    lines.find(({ result }) => metric in result.metrics)?.result.units;
  // A count is exact.
  const number = (value: number | undefined): string =>
    value === undefined ? '' : formatNumber(value, Number.isInteger(value) ? 9 : DIGITS);
  const columns: Column[] = [
    ...names(({ result }) => result.cell).map((axis) => ({
      head: axis,
      setting: true,
      numeric: lines.every(({ result }) => typeof result.cell[axis] === 'number'),
      texts: lines.map(({ result }) => String(result.cell[axis] ?? '')),
    })),
    { head: 'repeat', setting: true, numeric: true, texts: lines.map(({ result }) => String(result.repeat)) },
    ...metrics.map((metric) => ({
      head: metricHead(metric, metricOf(metric, unitsOf(metric))),
      setting: false,
      numeric: true,
      texts: lines.map(({ result }) => number(result.metrics[metric])),
    })),
    ...computed.map(([head, of]) => ({ head, setting: false, numeric: true, texts: lines.map(of) })),
  ];
  const common = commonColumns(columns);
  const shown = columns.filter((column) => !common.includes(column));
  return {
    ...(common.length > 0 && { common: common.map(({ head, texts }) => `${head}=${texts[0]}`).join(' ') }),
    head: [...shown.map(({ head }) => head), 'source'],
    numeric: [...shown.map(({ numeric }) => numeric), false],
    rows: lines.map((line, i) => [...shown.map(({ texts }) => texts[i]), where(line)]),
  };
}

/** What a result is judged by first, what its processors did meanwhile last. */
function inOrder(metrics: string[], lines: readonly ResultLine[]): string[] {
  const judged = new Set(lines.map(({ result }) => primaryMetric(result)));
  const place = (metric: string): number => (judged.has(metric) ? 0 : isCpuShare(metric) ? 2 : 1);
  return metrics.sort((a, b) => place(a) - place(b));
}

/** The columns that say the same in every row. One setting stays, and what came out of a single line. */
function commonColumns(columns: readonly Column[]): Column[] {
  const common = columns.filter(
    ({ setting, texts }) => (setting || texts.length > 1) && texts.every((text) => text === texts[0]),
  );
  const settings = columns.filter(({ setting }) => setting);
  return settings.every((column) => common.includes(column))
    ? common.filter((column) => column !== settings[0])
    : common;
}

/** A table for each kind of result, so that no column is for another kind only. */
export function kindTables(lines: readonly ResultLine[]): Table[] {
  return [...groupBy(lines, ({ result }) => result.kind)].map(([kind, group], _, kinds) => ({
    ...linesTable(group),
    ...(kinds.length > 1 && { title: kind }),
  }));
}
