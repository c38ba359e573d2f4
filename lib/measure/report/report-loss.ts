/** The frame loss rate curve. */
import type { Figure } from './figure.js';
import { formatShare } from '../../text/format.js';
import { median } from '../../stats/rank.js';
import { pointOf, seriesNamer, seriesOver } from './report-lines.js';
import { linesTable } from './report-table.js';
import type { ResultLine } from '../results/result.js';
import { linearAxis, ratioAxis } from './scale.js';
import { xyChart, type Chart } from './svg.js';

export function lossFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(
    ({ result }) => result.kind === 'loss' && 'loss' in result.metrics && typeof result.cell.load === 'number',
  );
  if (lines.length === 0) return [];
  const offered = lines.every(({ result }) => 'offered_mpps' in result.metrics);
  const loadOf = ({ result }: ResultLine): number =>
    offered ? result.metrics.offered_mpps : (result.cell.load as number) * 100;
  const lossOf = ({ result }: ResultLine): number => result.metrics.loss;
  const losses = lines.map(lossOf).filter((loss) => loss > 0);
  const chart: Chart = {
    label: 'Loss ratio by offered load',
    x: linearAxis(
      offered ? 'offered load in Mpps' : 'offered load in % of line rate',
      0,
      Math.max(...lines.map(loadOf)),
    ),
    y: ratioAxis('frames lost', losses.length > 0 ? Math.min(...losses) : 0.001, formatShare),
    series: seriesOver('load', lines, seriesNamer(lines, 'load', 'loss'), (load, here) =>
      pointOf(median(here.map(loadOf)), `load ${load}`, 'loss ratio', here, lossOf),
    ),
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
