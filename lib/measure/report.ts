import { basename } from 'node:path';
import { formatTime, lineRate } from '../units.js';
import { changeText, type Comparison, type CompareResult, type Verdict } from './compare.js';
import { formatChange, formatNumber, formatP, formatShare } from './format.js';
import { Histogram } from './histogram.js';
import { metricOf, primaryMetric } from './metrics.js';
import { median } from './rank.js';
import { cellKey, type Cell, type ResultKind, type ResultLine } from './results.js';
import { linearAxis, logAxis, percentileAxis, ratioAxis, valuesAxis, type Axis } from './scale.js';
import { forestChart, heatChart, xyChart, type Chart, type Point, type Series } from './svg.js';
import type { Surroundings } from './surroundings.js';

export interface Table {
  /** What the rows are, where a figure has several tables. */
  title?: string;
  head: string[];
  /** Columns that hold numbers, which are set flush right. */
  numeric: boolean[];
  rows: string[][];
}

/** One plot with the tables that it is drawn from; the last column of a table names file and line of each number. */
export interface Figure {
  /** Letters, digits and hyphens; unique within the report. */
  id: string;
  title: string;
  /** How to read it, and what is assumed. */
  caption: string;
  /** Draws for a width in px. Absent where a table says it better. */
  draw?: (width: number) => string;
  tables: Table[];
}

export interface Report {
  figures: Figure[];
  /** What the numbers were measured on, with the lines that each holds for. */
  surroundings: { about: Surroundings; where: string }[];
  files: string[];
  count: number;
  /** ISO 8601: first and last result. */
  from: string;
  to: string;
}

/** Where no result says how fast its link is. */
const ASSUMED_GBPS = 10;

const where = ({ file, line }: ResultLine): string => `${file}:${line}`;

/** Lines of one file in short: "a.jsonl:1-3,7". */
function whereAll(lines: readonly ResultLine[]): string {
  const byFile = new Map<string, number[]>();
  for (const { file, line } of lines) byFile.set(file, [...(byFile.get(file) ?? []), line]);
  const runs = (numbers: number[]): string => {
    const parts: [number, number][] = [];
    for (const number of [...new Set(numbers)].sort((a, b) => a - b)) {
      const last = parts.at(-1);
      if (last && last[1] === number - 1) last[1] = number;
      else parts.push([number, number]);
    }
    return parts.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(',');
  };
  return [...byFile].map(([file, numbers]) => `${file}:${runs(numbers)}`).join(' ');
}

function without(cell: Cell, axis: string): Cell {
  return Object.fromEntries(Object.entries(cell).filter(([name]) => name !== axis));
}

function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

/** Names the series of a line: its settings other than `axis`, and its file where there are several. */
function seriesNamer(lines: readonly ResultLine[], axis: string): (line: ResultLine) => string {
  const several = new Set(lines.map(({ file }) => file)).size > 1;
  return ({ file, result }) =>
    [cellKey(without(result.cell, axis)), several ? basename(file) : ''].filter(Boolean).join(', ');
}

type Column = [head: string, of: (line: ResultLine) => string];

/** A row for each line: its axes, its repeat, all its metrics (or what is `computed` instead), and where it stands. */
function linesTable(lines: readonly ResultLine[], computed: readonly Column[] = []): Table {
  const axes = [...new Set(lines.flatMap(({ result }) => Object.keys(result.cell)))];
  const metrics = computed.length > 0 ? [] : [...new Set(lines.flatMap(({ result }) => Object.keys(result.metrics)))];
  const head = (metric: string): string => {
    const { unit } = metricOf(metric, lines.find(({ result }) => metric in result.metrics)?.result.units);
    return unit === '' || metric.endsWith(`_${unit}`) ? metric : `${metric} (${unit})`;
  };
  const number = (value: number | undefined): string => (value === undefined ? '' : formatNumber(value, 6));
  return {
    head: [...axes, 'repeat', ...metrics.map(head), ...computed.map(([name]) => name), 'source'],
    numeric: [
      ...axes.map((axis) => lines.every(({ result }) => typeof result.cell[axis] === 'number')),
      ...Array<boolean>(1 + metrics.length + computed.length).fill(true),
      false,
    ],
    rows: lines.map((line) => [
      ...axes.map((axis) => String(line.result.cell[axis] ?? '')),
      String(line.result.repeat),
      ...metrics.map((metric) => number(line.result.metrics[metric])),
      ...computed.map(([, of]) => of(line)),
      where(line),
    ]),
  };
}

/** A table for each kind of result, so that no column is for another kind only. */
function kindTables(lines: readonly ResultLine[]): Table[] {
  return [...groupBy(lines, ({ result }) => result.kind)].map(([kind, group], _, kinds) => ({
    ...linesTable(group),
    ...(kinds.length > 1 && { title: kind }),
  }));
}

/** Of all repeats at one place: the median, with the range as whisker. */
function pointOf(
  x: number,
  name: string,
  unit: string,
  lines: readonly ResultLine[],
  of: (line: ResultLine) => number,
): Point {
  const values = lines.map(of);
  const y = median(values);
  const title = `${name}: ${formatNumber(y)} ${unit} (${whereAll(lines)})`;
  return { x, y, low: Math.min(...values), high: Math.max(...values), title };
}

const SPEEDS: [kind: ResultKind, metric: string, label: string, bounds?: [string, string]][] = [
  ['forward', 'mpps', 'forwarded'],
  ['throughput', 'ndr_mpps', 'NDR (no loss)', ['ndr_lower_mpps', 'ndr_upper_mpps']],
  ['throughput', 'pdr_mpps', 'PDR (0.5 % loss)', ['pdr_lower_mpps', 'pdr_upper_mpps']],
];

const sizeOf = ({ result }: ResultLine): number => result.cell.size as number;
const gbpsOf = ({ result }: ResultLine): number => result.link_gbps ?? ASSUMED_GBPS;
/** Rates of a cell that says `oneWay: false` are sums of both directions. */
const directionsOf = ({ result }: ResultLine): number => (result.cell.oneWay === false ? 2 : 1);
const mppsAt = (gbps: number, directions: number, size: number): number =>
  (directions * lineRate(gbps * 1e9, size)) / 1e6;
const lineMpps = (line: ResultLine): number => mppsAt(gbpsOf(line), directionsOf(line), sizeOf(line));

/** Speed by frame size, in `scale`d units: Mpps, or shares of line rate. */
function speedSeries(lines: readonly ResultLine[], unit: string, scale: (line: ResultLine) => number): Series[] {
  return SPEEDS.flatMap(([kind, metric, label, bounds]) => {
    const some = lines.filter(({ result }) => result.kind === kind && metric in result.metrics);
    const nameOf = seriesNamer(lines, 'size');
    return [...groupBy(some, nameOf)].map(([settings, group]): Series => {
      const points = [...groupBy(group, (line) => String(sizeOf(line)))].map(([size, here]) => {
        const point = pointOf(
          Number(size),
          `${size} B`,
          unit,
          here,
          (line) => line.result.metrics[metric] * scale(line),
        );
        const [low, high] = (bounds ?? []).map((bound) => here[0].result.metrics[bound] as number | undefined);
        if (here.length > 1 || low === undefined || high === undefined) return point;
        return { ...point, low: low * scale(here[0]), high: high * scale(here[0]) };
      });
      const name = [label, settings].filter(Boolean).join(', ');
      return { name, points: points.sort((a, b) => a.x - b.x) };
    });
  });
}

function speedFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(
    ({ result }) =>
      typeof result.cell.size === 'number' &&
      result.cell.size >= 1 &&
      SPEEDS.some(([kind, metric]) => kind === result.kind && metric in result.metrics),
  );
  if (lines.length === 0) return [];
  const sizes = [...new Set(lines.map(sizeOf))];
  const [least, most] = [Math.min(...sizes), Math.max(...sizes)];
  const links = groupBy(lines, (line) => `${gbpsOf(line)} Gbit/s${directionsOf(line) === 2 ? ' both ways' : ''}`);
  const x = valuesAxis('frame size in bytes, with FCS', sizes);
  const steps = Array.from({ length: 65 }, (_, i) => least * (most / least) ** (i / 64));
  const limits = [...links].map(([link, [one]]): Series => ({
    name: `line rate, ${link}`,
    limit: true,
    points: (least === most ? [] : steps).map((size) => ({ x: size, y: mppsAt(gbpsOf(one), directionsOf(one), size) })),
  }));
  const speeds = speedSeries(lines, 'Mpps', () => 1);
  const tops = [...speeds, ...limits].flatMap((series) => series.points.map((point) => point.high ?? point.y));
  const assumed = lines.some(({ result }) => result.link_gbps === undefined)
    ? ` A link of ${ASSUMED_GBPS} Gbit/s is assumed where a result does not say.`
    : '';
  const bothWays = lines.some((line) => directionsOf(line) === 2)
    ? ' Where oneWay is false, it is that of both directions, as is what was forwarded.'
    : '';
  const caption =
    'Medians of all repeats; whiskers span the repeats, or the search interval of a single search. Mpps is 10⁶ frames a second.' +
    assumed;
  const mpps: Chart = {
    label: 'Mpps by frame size',
    x,
    y: linearAxis('Mpps', 0, Math.max(...tops)),
    series: [...speeds, ...limits],
  };
  const shares = speedSeries(lines, '% of line rate', (line) => 100 / lineMpps(line));
  const highest = Math.max(100, ...shares.flatMap((series) => series.points.map((point) => point.high ?? point.y)));
  const full: Series = {
    name: 'line rate',
    limit: true,
    points: least === most ? [] : [least, most].map((size) => ({ x: size, y: 100 })),
  };
  const percent: Chart = {
    label: 'Share of line rate by frame size',
    x,
    y: linearAxis('% of line rate', 0, highest > 105 ? highest : 100),
    series: [...shares, full],
  };
  const measured = SPEEDS.filter(([, metric]) => lines.some(({ result }) => metric in result.metrics)).map(
    ([, metric]): Column => [
      `${metric} % of line rate`,
      (line) =>
        metric in line.result.metrics ? formatNumber((100 * line.result.metrics[metric]) / lineMpps(line), 4) : '',
    ],
  );
  const shareColumns: Column[] = [['line rate (Mpps)', (line) => formatNumber(lineMpps(line), 5)], ...measured];
  return [
    {
      id: 'mpps',
      title: 'Throughput by frame size',
      caption,
      draw: (width) => xyChart(mpps, width),
      tables: kindTables(lines),
    },
    {
      id: 'line-rate',
      title: 'Share of line rate by frame size',
      caption: `Line rate is bits/s ÷ (8 × (size + 20)): preamble and gap cost 20 bytes a frame.${bothWays}${assumed}`,
      draw: (width) => xyChart(percent, width),
      tables: [linesTable(lines, shareColumns)],
    },
  ];
}

const TAIL_PERCENTS = [50, 90, 99, 99.9, 99.99] as const;

function latencyFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(({ result }) => result.histogram !== undefined && result.histogram.count > 0);
  if (lines.length === 0) return [];
  const nameOf = seriesNamer(lines, '');
  const kinds = new Set(lines.map(({ result }) => result.kind));
  const groups = groupBy(lines, (line) =>
    [kinds.size > 1 ? line.result.kind : '', nameOf(line)].filter(Boolean).join(' '),
  );
  const merged = [...groups].map(([name, group]): [string, Histogram] => {
    const histogram = new Histogram();
    for (const { result } of group) histogram.merge(Histogram.fromJSON(result.histogram!));
    return [name || 'all', histogram];
  });
  const most = Math.max(...merged.map(([, { count }]) => count));
  const nines = Math.min(6, Math.max(2, Math.ceil(Math.log10(most) - 1e-9)));
  const series = merged.map(([name, histogram]): Series => {
    // Beyond one in `count` there is only the maximum.
    const end = Math.min(nines, Math.log10(histogram.count));
    const steps = Array.from({ length: 121 }, (_, i) => 100 * (1 - 10 ** ((-end * i) / 120)));
    const points = steps.map((x) => ({ x, y: histogram.percentile(x) }));
    return { name, points: [...points, { x: points.at(-1)!.x, y: histogram.max }], plain: true };
  });
  const values = series.flatMap(({ points }) => points.map(({ y }) => y));
  const chart: Chart = {
    label: 'Latency percentiles',
    x: percentileAxis('share of frames at or below', nines),
    y: logAxis('latency', Math.max(1, Math.min(...values)), Math.max(...values), formatTime),
    series: series.map((one) => ({
      ...one,
      points: one.points.map((point) => ({ ...point, y: Math.max(1, point.y) })),
    })),
  };
  const histograms = new Map(lines.map((line) => [where(line), Histogram.fromJSON(line.result.histogram!)]));
  const column = (head: string, of: (histogram: Histogram) => string): Column => [
    head,
    (line) => of(histograms.get(where(line))!),
  ];
  return [
    {
      id: 'latency',
      title: 'Latency distribution',
      caption: `Every further nine takes the same room, so the tail is as readable as the middle. Percentiles are within ${formatShare(Histogram.relativeError)} of the exact ones; minimum and maximum are exact.`,
      draw: (width) => xyChart(chart, width),
      tables: [
        linesTable(lines, [
          column('frames', (histogram) => formatNumber(histogram.count, 9)),
          column('min', (histogram) => formatTime(histogram.min)),
          ...TAIL_PERCENTS.map((percent) =>
            column(`p${percent}`, (histogram) => formatTime(histogram.percentile(percent))),
          ),
          column('max', (histogram) => formatTime(histogram.max)),
        ]),
      ],
    },
  ];
}

function lossFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(
    ({ result }) => result.kind === 'loss' && 'loss' in result.metrics && typeof result.cell.load === 'number',
  );
  if (lines.length === 0) return [];
  const offered = lines.every(({ result }) => 'offered_mpps' in result.metrics);
  const loadOf = ({ result }: ResultLine): number =>
    offered ? result.metrics.offered_mpps : (result.cell.load as number) * 100;
  const nameOf = seriesNamer(lines, 'load');
  const series = [...groupBy(lines, nameOf)].map(([name, group]): Series => {
    const points = [...groupBy(group, (line) => String(line.result.cell.load))].map(([load, here]) =>
      pointOf(median(here.map(loadOf)), `load ${load}`, 'loss ratio', here, (line) => line.result.metrics.loss),
    );
    return { name: name || 'loss', points: points.sort((a, b) => a.x - b.x) };
  });
  const losses = lines.map(({ result }) => result.metrics.loss).filter((loss) => loss > 0);
  const chart: Chart = {
    label: 'Loss ratio by offered load',
    x: linearAxis(
      offered ? 'offered load in Mpps' : 'offered load in % of line rate',
      0,
      Math.max(...lines.map(loadOf)),
    ),
    y: ratioAxis('frames lost', losses.length > 0 ? Math.min(...losses) : 0.001, formatShare),
    series,
  };
  return [
    {
      id: 'loss',
      title: 'Loss by offered load',
      caption:
        'Frame loss rate as in RFC 2544 section 26.3. The scale is logarithmic, with a place of its own for no loss at all.',
      draw: (width) => xyChart(chart, width),
      tables: [linesTable(lines)],
    },
  ];
}

function burstFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(
    ({ result }) =>
      result.kind === 'burst' &&
      'burst_frames' in result.metrics &&
      typeof result.cell.size === 'number' &&
      result.cell.size >= 1,
  );
  if (lines.length === 0) return [];
  const series = [...groupBy(lines, seriesNamer(lines, 'size'))].map(([name, group]): Series => {
    const points = [...groupBy(group, (line) => String(sizeOf(line)))].map(([size, here]) =>
      pointOf(Number(size), `${size} B`, 'frames', here, (line) => line.result.metrics.burst_frames),
    );
    return { name: name || 'longest burst', points: points.sort((a, b) => a.x - b.x) };
  });
  const frames = lines.map(({ result }) => result.metrics.burst_frames);
  const chart: Chart = {
    label: 'Longest burst without loss by frame size',
    x: valuesAxis('frame size in bytes, with FCS', lines.map(sizeOf)),
    y: linearAxis('frames', 0, Math.max(1, ...frames)),
    series,
  };
  const caption = 'Back-to-back frames as in RFC 9004: the longest burst at line rate that was forwarded whole.';
  return [
    {
      id: 'burst',
      title: 'Longest burst without loss',
      caption,
      draw: (width) => xyChart(chart, width),
      tables: [linesTable(lines)],
    },
  ];
}

/** The axis for the columns of a heat map: the one with the most values that still fit side by side. */
function columnAxis(lines: readonly ResultLine[]): string {
  const axes = [...new Set(lines.flatMap(({ result }) => Object.keys(result.cell)))];
  const countOf = (axis: string): number => new Set(lines.map(({ result }) => result.cell[axis])).size;
  const fitting = axes.filter((axis) => countOf(axis) <= 8);
  return fitting.reduce((best, axis) => (countOf(axis) > countOf(best) ? axis : best), fitting[0] ?? '');
}

function matrixFigures(all: readonly ResultLine[]): Figure[] {
  const matrix = all.filter(
    ({ result }) => result.kind === 'matrix' && (primaryMetric(result) ?? '') in result.metrics,
  );
  return [...groupBy(matrix, ({ result }) => primaryMetric(result)!)].map(([metric, lines]): Figure => {
    const { label, unit } = metricOf(metric, lines[0].result.units);
    const axis = columnAxis(lines);
    const columns = [...new Set(lines.map(({ result }) => String(result.cell[axis] ?? '')))];
    if (columns.every((text) => Number.isFinite(Number(text)))) columns.sort((a, b) => Number(a) - Number(b));
    const groups = [...groupBy(lines, seriesNamer(lines, axis))].sort(([a], [b]) =>
      a.localeCompare(b, 'en', { numeric: true }),
    );
    const rows = groups.map(([name, group]) => ({
      name: name || label,
      cells: columns.map((column) => {
        const here = group.filter(({ result }) => String(result.cell[axis] ?? '') === column);
        if (here.length === 0) return undefined;
        const value = median(here.map(({ result }) => result.metrics[metric]));
        return { value, text: formatNumber(value, 3), title: `${formatNumber(value)} ${unit} (${whereAll(here)})` };
      }),
    }));
    const others = [...new Set(lines.flatMap(({ result }) => Object.keys(result.cell)))].filter(
      (name) => name !== axis,
    );
    const map = { label: `${label} by cell`, columnsLabel: axis, rowsLabel: others.join(', '), columns, rows, unit };
    return {
      id: `matrix-${metric.replaceAll(/[^a-z0-9]+/gi, '-')}`,
      title: `Matrix: ${label}${unit === '' ? '' : `, ${unit}`}`,
      caption: 'Medians of all repeats, shaded by value.',
      draw: (width) => heatChart(map, width),
      tables: [linesTable(lines)],
    };
  });
}

function sampleFigures(all: readonly ResultLine[]): Figure[] {
  const sampled = all.filter(({ result }) => Object.values(result.samples ?? {}).some((values) => values.length > 0));
  const named = sampled.flatMap(({ result }) => Object.entries(result.samples!));
  const metrics = [...new Set(named.flatMap(([metric, values]) => (values.length > 0 ? [metric] : [])))];
  return metrics.map((metric): Figure => {
    const lines = sampled.filter(({ result }) => (result.samples![metric] ?? []).length > 0);
    const { label, unit } = metricOf(metric, lines[0]?.result.units);
    const nameOf = seriesNamer(lines, '');
    const repeats = new Set(lines.map(({ result }) => result.repeat)).size > 1;
    const series = lines.map((line): Series => {
      const step = line.result.sample_s ?? 1;
      const points = line.result.samples![metric].map((y, i) => ({
        x: (i + 1) * step,
        y,
        title: `${formatNumber(y)} ${unit} (${where(line)})`,
      }));
      return {
        name: [nameOf(line), repeats ? `repeat ${line.result.repeat}` : ''].filter(Boolean).join(', ') || label,
        points,
      };
    });
    const points = series.flatMap((one) => one.points);
    const chart: Chart = {
      label: `${label} over time`,
      x: linearAxis('seconds', 0, Math.max(1, ...points.map(({ x }) => x))),
      y: linearAxis(
        unit || label,
        Math.min(0, ...points.map(({ y }) => y)),
        Math.max(...points.map(({ y }) => y)) || 1,
      ),
      series,
    };
    const readings = (line: ResultLine): string =>
      line.result.samples![metric].map((value) => formatNumber(value, 6)).join(' ');
    const table = linesTable(lines, [[`${metric} readings${unit === '' ? '' : ` (${unit})`}`, readings]]);
    table.numeric[table.head.length - 2] = false;
    return {
      id: `samples-${metric.replaceAll(/[^a-z0-9]+/gi, '-')}`,
      title: `Readings within each run: ${label}`,
      caption: 'Each point is one reading; a steady run is a level line.',
      draw: (width) => xyChart(chart, width),
      tables: [table],
    };
  });
}

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

function compareFigures({ comparisons: all, notices, alpha, noise, family }: CompareResult): Figure[] {
  if (all.length === 0) return [];
  // What has changed comes first.
  const order = Object.keys(VERDICT_STYLE);
  const comparisons = all.toSorted((a, b) => order.indexOf(a.verdict) - order.indexOf(b.verdict));
  const plotted = comparisons.filter((one) => Number.isFinite(one.changeLower) && Number.isFinite(one.changeUpper));
  const level = formatNumber((1 - alpha) * 100);
  const nameOf = (one: Comparison): string => [cellKey(one.cell), one.about.label].filter(Boolean).join(', ');
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
  const side = ({ values, median: middle }: Comparison['before']): string =>
    `${formatNumber(middle)} (${values.length})`;
  const table: Table = {
    head: [
      'cell',
      'metric',
      'before (n)',
      'after (n)',
      'change',
      `${level} % interval`,
      'p',
      'verdict',
      'why',
      'source',
    ],
    numeric: [false, false, true, true, true, true, true, false, false, false],
    rows: comparisons.map((one) => [
      `${one.kind} ${cellKey(one.cell)}`.trim(),
      [one.metric, one.about.unit && `(${one.about.unit})`].filter(Boolean).join(' '),
      side(one.before),
      side(one.after),
      ...changeText(one),
      formatP(one.corrected),
      `${VERDICT_SIGN[one.verdict]} ${one.verdict}`,
      one.reason ?? '',
      `${whereAll(one.before.lines)} → ${whereAll(one.after.lines)}`,
    ]),
  };
  const caption = [
    `Hodges–Lehmann change with its ${level} % interval; verdicts by Mann–Whitney's rank test, corrected (Holm) for ${family} comparison${family === 1 ? '' : 's'} at ${formatNumber(alpha * 100)} %.`,
    `An interval wider than ${formatNumber(noise * 100)} % is too noisy. An arrow means that the interval goes on.`,
    comparisons.some((one) => one.withinRuns)
      ? 'Some values are readings within one run, which cannot show how runs differ.'
      : '',
    plotted.length < comparisons.length
      ? `Where there are too few repeats for an interval (${comparisons.length - plotted.length} of ${comparisons.length}), the table alone has the cell.`
      : '',
    ...notices.map((notice) => `${notice}.`),
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

/** Everything that no plot showed, so that no line of a file goes missing. */
function otherFigures(all: readonly ResultLine[], shown: readonly Figure[]): Figure[] {
  const sources = new Set(
    shown
      .filter(({ id }) => id !== 'compare')
      .flatMap(({ tables }) => tables.flatMap(({ rows }) => rows.map((row) => row.at(-1)!))),
  );
  const lines = all.filter((line) => !sources.has(where(line)));
  if (lines.length === 0) return [];
  const groups = groupBy(lines, ({ result }) => result.kind);
  return [...groups].map(([kind, group]) => {
    return {
      id: `more-${kind}`,
      title: `Further results: ${kind}`,
      caption: 'In numbers only.',
      tables: [linesTable(group)],
    };
  });
}

/** Makes a report of result lines and, if given, of how they compare to earlier ones. */
export function makeReport(lines: readonly ResultLine[], comparison?: CompareResult): Report {
  const plots = [
    ...(comparison ? compareFigures(comparison) : []),
    ...[speedFigures, latencyFigures, lossFigures, burstFigures, matrixFigures, sampleFigures].flatMap((make) =>
      make(lines),
    ),
  ];
  const described = lines.filter(({ result }) => result.surroundings !== undefined);
  const places = groupBy(described, ({ result }) => JSON.stringify(result.surroundings));
  const times = lines.map(({ result }) => new Date(result.time).toISOString()).sort();
  return {
    figures: [...plots, ...otherFigures(lines, plots)],
    surroundings: [...places.values()].map((group) => ({
      about: group[0].result.surroundings!,
      where: whereAll(group),
    })),
    files: [...new Set(lines.map(({ file }) => file))],
    count: lines.length,
    from: times[0] ?? '',
    to: times.at(-1) ?? '',
  };
}
