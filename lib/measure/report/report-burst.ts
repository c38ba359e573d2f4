/** Back-to-back bursts by frame size. */
import type { Figure } from './figure.js';
import { hasSize, pointOf, seriesNamer, seriesOver, sizeOf } from './report-lines.js';
import { linesTable } from './report-table.js';
import type { ResultLine } from '../results/result.js';
import { linearAxis, valuesAxis } from './scale.js';
import { xyChart, type Chart } from './svg.js';

export function burstFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(
    (line) => line.result.kind === 'burst' && 'burst_frames' in line.result.metrics && hasSize(line),
  );
  if (lines.length === 0) return [];
  const framesOf = ({ result }: ResultLine): number => result.metrics.burst_frames;
  const nameOf = seriesNamer(lines, 'size', 'longest burst');
  const chart: Chart = {
    label: 'Longest burst without loss by frame size',
    x: valuesAxis('frame size in bytes, with FCS', lines.map(sizeOf)),
    y: linearAxis('frames', 0, Math.max(1, ...lines.map(framesOf))),
    series: seriesOver('size', lines, nameOf, (size, here) =>
      pointOf(Number(size), `${size} B`, 'frames', here, framesOf),
    ),
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
