/** Speed by frame size, against line rate. */
import { lineRate } from '../../text/units.js';
import type { Figure } from './figure.js';
import { formatNumber } from '../../text/format.js';
import { groupBy, hasSize, pointOf, seriesNamer, seriesOver, sizeOf } from './report-lines.js';
import { kindTables, linesTable, type Computed } from './report-table.js';
import type { ResultKind, ResultLine } from '../results/result.js';
import { linearAxis, valuesAxis } from './scale.js';
import { xyChart, type Chart, type Series } from './svg.js';

/** Where no result says how fast its link is. */
const ASSUMED_GBPS = 10;

const SPEEDS: [kind: ResultKind, metric: string, label: string, bounds?: [string, string]][] = [
  ['forward', 'mpps', 'forwarded'],
  ['throughput', 'ndr_mpps', 'NDR (no loss)', ['ndr_lower_mpps', 'ndr_upper_mpps']],
  ['throughput', 'pdr_mpps', 'PDR (0.5 % loss)', ['pdr_lower_mpps', 'pdr_upper_mpps']],
];

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
    const valueOf = (line: ResultLine): number => line.result.metrics[metric] * scale(line);
    const settingsOf = seriesNamer(lines, 'size');
    const nameOf = (line: ResultLine): string => [label, settingsOf(line)].filter(Boolean).join(', ');
    return seriesOver('size', some, nameOf, (size, here) => {
      const point = pointOf(Number(size), `${size} B`, unit, here, valueOf);
      const [low, high] = (bounds ?? []).map((bound) => here[0].result.metrics[bound] as number | undefined);
      if (here.length > 1 || low === undefined || high === undefined) return point;
      return { ...point, low: low * scale(here[0]), high: high * scale(here[0]) };
    });
  });
}

export function speedFigures(all: readonly ResultLine[]): Figure[] {
  const lines = all.filter(
    (line) =>
      hasSize(line) && SPEEDS.some(([kind, metric]) => kind === line.result.kind && metric in line.result.metrics),
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
  // Between two sizes a rate falls as the line rate does: a straight line would run above it.
  const bound = (size: number): number => lineRate(1e9, size);
  const speeds = speedSeries(lines, 'Mpps', () => 1).map((series) => ({ ...series, bound }));
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
    ([, metric]): Computed => [
      `${metric} % of line rate`,
      (line) =>
        metric in line.result.metrics ? formatNumber((100 * line.result.metrics[metric]) / lineMpps(line), 4) : '',
    ],
  );
  const shareColumns: Computed[] = [['line rate (Mpps)', (line) => formatNumber(lineMpps(line), 5)], ...measured];
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
