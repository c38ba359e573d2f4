/** Back-to-back bursts by frame size. */
import type { Figure } from './figure.js';
import { groupBy, hasSize, pointOf, seriesNamer, sizeOf } from './report-lines.js';
import { linesTable } from './report-table.js';
import type { ResultLine } from '../results/result.js';
import { linearAxis, valuesAxis } from './scale.js';
import { xyChart, type Chart, type Series } from './svg.js';

export function burstFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(
    (line) => line.result.kind === 'burst' && 'burst_frames' in line.result.metrics && hasSize(line),
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
