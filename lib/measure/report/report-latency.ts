/** Latency distributions. */
import { formatTime } from '../../text/units.js';
import type { Figure } from './figure.js';
import { formatNumber, formatShare } from '../../text/format.js';
import { Histogram } from '../../stats/histogram.js';
import { groupBy, seriesNamer, where } from './report-lines.js';
import { linesTable, type Computed } from './report-table.js';
import type { ResultLine } from '../results/result.js';
import { logAxis, percentileAxis } from './scale.js';
import { xyChart, type Chart, type Series } from './svg.js';

const TAIL_PERCENTS = [50, 90, 99, 99.9, 99.99] as const;

export function latencyFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(({ result }) => result.histogram !== undefined && result.histogram.count > 0);
  if (lines.length === 0) return [];
  const nameOf = seriesNamer(lines);
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
  const column = (head: string, of: (histogram: Histogram) => string): Computed => [
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
