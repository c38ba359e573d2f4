/** A matrix as a heat map. */
import { commonSettings } from '../results/cells.js';
import type { Figure } from './figure.js';
import { formatNumber } from '../../text/format.js';
import { metricOf, primaryMetric } from '../results/metrics.js';
import { median } from '../../stats/rank.js';
import { groupBy, seriesNamer, whereAll } from './report-lines.js';
import { linesTable } from './report-table.js';
import type { ResultLine } from '../results/result.js';
import { heatChart } from './svg.js';

/** The axis for the columns of a heat map: the one with the most values that still fit side by side. */
function columnAxis(lines: readonly ResultLine[]): string {
  const axes = [...new Set(lines.flatMap(({ result }) => Object.keys(result.cell)))];
  const countOf = (axis: string): number => new Set(lines.map(({ result }) => result.cell[axis])).size;
  const fitting = axes.filter((axis) => countOf(axis) <= 8);
  return fitting.reduce((best, axis) => (countOf(axis) > countOf(best) ? axis : best), fitting[0] ?? '');
}

export function matrixFigures(all: readonly ResultLine[]): Figure[] {
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
    const common = Object.keys(commonSettings(lines.map(({ result }) => result.cell)));
    const others = [...new Set(lines.flatMap(({ result }) => Object.keys(result.cell)))].filter(
      (name) => name !== axis && !common.includes(name),
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
