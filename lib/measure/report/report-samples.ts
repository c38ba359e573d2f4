/** Readings within each run, over time. */
import type { Figure } from './figure.js';
import { formatNumber } from '../../text/format.js';
import { metricHead, metricOf } from '../results/metrics.js';
import { groupBy, seriesNamer, where } from './report-lines.js';
import { DIGITS, linesTable } from './report-table.js';
import type { ResultLine } from '../results/result.js';
import { linearAxis } from './scale.js';
import { xyChart, type Chart, type Series } from './svg.js';

/** Cells whose lines can still be told apart. */
const MOST_DRAWN = 12;

export function sampleFigures(all: readonly ResultLine[]): Figure[] {
  const sampled = all.filter(({ result }) => Object.values(result.samples ?? {}).some((values) => values.length > 0));
  const named = sampled.flatMap(({ result }) => Object.entries(result.samples!));
  const metrics = [...new Set(named.flatMap(([metric, values]) => (values.length > 0 ? [metric] : [])))];
  return metrics.map((metric): Figure => {
    const lines = sampled.filter(({ result }) => (result.samples![metric] ?? []).length > 0);
    const { label, unit } = metricOf(metric, lines[0]?.result.units);
    const series = [...groupBy(lines, seriesNamer(lines, undefined, label))].map(([name, runs]): Series => {
      const points = runs.flatMap(({ result }, run) => {
        const step = result.sample_s ?? 1;
        return result.samples![metric].map((y, i) => ({
          x: (i + 1) * step,
          y,
          title: `${formatNumber(y)} ${unit} (${where(runs[run])})`,
          begins: i === 0,
        }));
      });
      return { name, points };
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
      line.result.samples![metric].map((value) => formatNumber(value, DIGITS)).join(' ');
    const table = linesTable(lines, [[`readings of ${metricHead(metric, { unit })}`, readings]]);
    table.numeric[table.head.length - 2] = false;
    return {
      id: `samples-${metric.replaceAll(/[^a-z0-9]+/gi, '-')}`,
      title: `Readings within each run: ${label}`,
      caption:
        'Each point is one reading, each line one run; a steady run is a level line.' +
        (series.length > MOST_DRAWN ? ` ${series.length} cells are too many for a plot.` : ''),
      ...(series.length <= MOST_DRAWN && { draw: (width: number) => xyChart(chart, width) }),
      tables: [table],
    };
  });
}
