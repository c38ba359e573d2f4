import { formatNumber } from '../../text/format.js';
import type { Axis, Tick } from './scale.js';

/**
 * Charts as SVG text: no script, no colour that means something by itself (marker shape and dash go with it), and nothing
 * that a plain SVG viewer lacks (no CSS variables). Sizes are in px; text is 12 px, so draw at the width that is shown.
 */

/** Okabe and Ito's colours for people with any colour vision; lighter ones on dark. */
const LIGHT = ['#0072b2', '#d55e00', '#009e73', '#a8437f', '#8a6100', '#3b3bb3'];
const DARK = ['#56b4e9', '#ff9a57', '#35c79a', '#e59ac6', '#e6c34d', '#a9a5ff'];

const themed = (text: string, muted: string, grid: string, paper: string, palette: string[]): string =>
  [
    `.chart .bg{fill:${paper}}.chart text{fill:${text}}.chart .muted{fill:${muted}}.chart .grid{stroke:${grid}}`,
    `.chart .axis{stroke:${muted}}.chart .limit{stroke:${muted};fill:none}.chart .over{fill:${paper}}.chart .halo{stroke:${paper}}`,
    ...palette.map((colour, i) => `.chart .s${i}{stroke:${colour};fill:${colour}}`),
  ].join('');

/** Styles for all charts of a page or file. Paper gets the light colours. */
export const CHART_STYLE = [
  `.chart text{font:12px system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif;font-variant-numeric:tabular-nums}`,
  `.chart .title{font-weight:600}.chart .line{fill:none;stroke-width:2;stroke-linejoin:round}.chart .mark{stroke-width:1.5}`,
  `.chart .whisker{stroke-width:1.5;fill:none}.chart .grid{stroke-width:1}.chart .limit{stroke-width:1.5;stroke-dasharray:6 4}`,
  `.chart rect.heat{stroke:none}.chart .halo{stroke-width:2;fill:none}`,
  themed('#1c2330', '#5a6474', '#e3e7ed', '#ffffff', LIGHT),
  `@media screen and (prefers-color-scheme:dark){${themed('#e8ecf2', '#a3adbb', '#313946', '#161b22', DARK)}}`,
].join('');

const COLOURS = LIGHT.length;
const DASHES = ['', '7 3', '2 3', '9 3 2 3'];

export function escape(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}

const px = (value: number): string => String(Number(value.toFixed(1)));

/** Width in px of a 12 px character, on the wide side: fonts differ from reader to reader. */
const CHARACTER = 7.4;

const textWidth = (text: string): number => text.length * CHARACTER;

function shorten(text: string, width: number): string {
  const room = Math.max(3, Math.floor(width / CHARACTER));
  return text.length <= room ? text : `${text.slice(0, room - 1)}…`;
}

function write(x: number, y: number, text: string, more = ''): string {
  return `<text x="${px(x)}" y="${px(y)}"${more}>${escape(text)}</text>`;
}

function line(x1: number, y1: number, x2: number, y2: number, style: string): string {
  return `<line class="${style}" x1="${px(x1)}" y1="${px(y1)}" x2="${px(x2)}" y2="${px(y2)}"/>`;
}

const MARKS: ((x: number, y: number) => string)[] = [
  (x, y) => `<circle cx="${px(x)}" cy="${px(y)}" r="4"/>`,
  (x, y) => `<rect x="${px(x - 3.7)}" y="${px(y - 3.7)}" width="7.4" height="7.4"/>`,
  (x, y) => `<path d="M${px(x)} ${px(y - 5)}l5 8.6h-10z"/>`,
  (x, y) => `<path d="M${px(x)} ${px(y - 5.4)}l5.4 5.4l-5.4 5.4l-5.4-5.4z"/>`,
  (x, y) => `<path d="M${px(x - 4)} ${px(y - 4)}l8 8m0-8l-8 8"/>`,
  (x, y) => `<path d="M${px(x)} ${px(y + 5)}l5-8.6h-10z"/>`,
  (x, y) => `<path d="M${px(x - 5)} ${px(y)}h10m-5-5v10"/>`,
];

function mark(series: number, x: number, y: number, title = ''): string {
  const shape = MARKS[series % MARKS.length](x, y);
  return `<g class="mark s${series % COLOURS}">${title && `<title>${escape(title)}</title>`}${shape}</g>`;
}

/** A line that markers tell apart is dashed only when colours run out; one without markers is told apart by its dashes. */
function stroke(series: number, plain = false): string {
  const dash = DASHES[(plain ? series : Math.floor(series / COLOURS)) % DASHES.length];
  return `class="line s${series % COLOURS}" style="fill:none"${dash && ` stroke-dasharray="${dash}"`}`;
}

function document(width: number, height: number, label: string, body: string[]): string {
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" class="chart" viewBox="0 0 ${width} ${px(height)}" width="${width}" height="${px(height)}" ` +
    `role="img" aria-label="${escape(label)}"><rect class="bg" width="${width}" height="${px(height)}"/>${body.join('')}</svg>`
  );
}

/** Ticks whose texts do not touch: the last one always stays, and as many before it as there is room for. */
function spaced(ticks: readonly Tick[], position: (at: number) => number): Set<Tick> {
  const ends = (tick: Tick): [number, number] => {
    const half = textWidth(tick.text) / 2 + 4;
    return [position(tick.at) - half, position(tick.at) + half];
  };
  const kept = new Set<Tick>();
  const last = ticks.at(-1);
  let free = -Infinity;
  for (const tick of ticks) {
    const [from, to] = ends(tick);
    if (from < free || (tick !== last && last && to > ends(last)[0])) continue;
    kept.add(tick);
    free = to;
  }
  return kept;
}

/** What stands below a chart: the texts of those ticks that have room, and the label of the axis. */
function belowChart(
  x: Axis,
  place: (at: number) => number,
  [left, right]: [number, number],
  bottom: number,
  width: number,
): { texts: ReadonlySet<Tick>; body: string } {
  const texts = spaced(x.ticks, place);
  const middle = (tick: Tick): number => {
    const half = textWidth(tick.text) / 2;
    return Math.min(width - half, Math.max(half, place(tick.at)));
  };
  const centred = ' text-anchor="middle" class="muted"';
  const body = [...texts].map((tick) => write(middle(tick), bottom + 20, tick.text, centred));
  body.push(write((left + right) / 2, bottom + 40, shorten(x.label, right - left), centred));
  return { texts, body: body.join('') };
}

export interface Point {
  x: number;
  y: number;
  /** Ends of the range shown by a whisker. */
  low?: number;
  high?: number;
  title?: string;
  /** Whether a new line begins here, in the same series. */
  begins?: boolean;
}

export interface Series {
  name: string;
  points: Point[];
  /** A limit that nothing can pass: dashed, grey, without markers. */
  limit?: boolean;
  /** Without markers, for curves of many points. */
  plain?: boolean;
  /** What bounds the values at each x: between two points the curve keeps its share of that, so it never passes it. */
  bound?: (x: number) => number;
}

export interface Chart {
  label: string;
  x: Axis;
  y: Axis;
  series: Series[];
}

interface LegendEntry {
  name: string;
  sample: (x: number, y: number) => string;
}

/** Legend entries in rows that fit, from `y` down; returns the drawing and its height. */
function legend(entries: readonly LegendEntry[], width: number, y: number): [string, number] {
  let [x, row] = [0, 0];
  const body = entries.map(({ name, sample }) => {
    const text = shorten(name, width - 40);
    const room = 34 + textWidth(text) + 16;
    if (x > 0 && x + room > width) [x, row] = [0, row + 1];
    const top = y + row * 20 + 10;
    const drawn = sample(x, top) + write(x + 32, top + 4, text);
    x += room;
    return drawn;
  });
  return [body.join(''), entries.length === 0 ? 0 : (row + 1) * 20 + 6];
}

function entryOf(series: Series, index: number): LegendEntry {
  const sample = (x: number, y: number): string => {
    if (series.limit) return line(x, y, x + 26, y, 'limit');
    const rule = `<path ${stroke(index, series.plain)} d="M${px(x)} ${px(y)}h26"/>`;
    return series.plain ? rule : rule + mark(index, x + 13, y);
  };
  return { name: series.name, sample };
}

/** Straight pieces that stand for a curve between two points. */
const PIECES = 16;

/** The points of a series and, where it has a bound, those between them: at the share of it that lies between theirs. */
function between({ points, bound }: Series): Point[] {
  if (bound === undefined) return points;
  return points.flatMap((point, i) => {
    const last = i === 0 || point.begins ? undefined : points[i - 1];
    if (last === undefined || last.x <= 0) return [point];
    const [from, to] = [last.y / bound(last.x), point.y / bound(point.x)];
    const steps = Array.from({ length: PIECES - 1 }, (_, k): Point => {
      const part = (k + 1) / PIECES;
      const x = last.x * (point.x / last.x) ** part;
      return { x, y: (from + part * (to - from)) * bound(x) };
    });
    return [...steps, point];
  });
}

/** A chart in words: what its series are, from which value to which. */
function inWords({ label, x, y, series }: Chart): string {
  const at = ({ x: place, y: value }: Point): string => `${formatNumber(value)} at ${formatNumber(place)}`;
  const words = series
    .filter(({ points }) => points.length > 0)
    .map(({ name, points }) => {
      const ends = points.length === 1 ? at(points[0]) : `${at(points[0])} to ${at(points[points.length - 1])}`;
      return `${name}: ${ends}`;
    });
  return `${label}: ${y.label} over ${x.label}. ${words.join('; ')}.`;
}

/** Lines and points over two axes. */
export function xyChart(chart: Chart, width: number): string {
  const { x, y, series } = chart;
  const [key, keyHeight] = legend(series.map(entryOf), width, 2);
  const left = Math.max(...y.ticks.map((tick) => textWidth(tick.text))) + 12;
  const right = width - 14;
  const top = keyHeight + 30;
  const bottom = top + Math.round(Math.min(300, width * 0.62));
  const atX = (value: number): number => left + x.place(value) * (right - left);
  const atY = (value: number): number => bottom - Math.min(1, Math.max(0, y.place(value))) * (bottom - top);
  const body = [key, write(0, keyHeight + 14, y.label, ' class="muted"')];
  for (const tick of y.ticks) {
    body.push(line(left, atY(tick.at), right, atY(tick.at), 'grid'));
    body.push(write(left - 8, atY(tick.at) + 4, tick.text, ' text-anchor="end" class="muted"'));
  }
  const below = belowChart(x, atX, [left, right], bottom, width);
  for (const tick of x.ticks)
    body.push(line(atX(tick.at), bottom, atX(tick.at), bottom + (below.texts.has(tick) ? 6 : 3), 'axis'));
  body.push(line(left, bottom, right, bottom, 'axis'), below.body);
  series.forEach((one, index) => {
    const path = between(one)
      .map((point, i) => `${i === 0 || point.begins ? 'M' : 'L'}${px(atX(point.x))} ${px(atY(point.y))}`)
      .join('');
    if (one.limit) body.push(`<path class="limit" d="${path}"/>`);
    else if (one.points.length > 1) body.push(`<path ${stroke(index, one.plain)} d="${path}"/>`);
    if (one.limit || one.plain) return;
    for (const point of one.points) {
      const [at, low, high] = [atX(point.x), atY(point.low ?? point.y), atY(point.high ?? point.y)];
      if (low - high > 2) {
        const shape = `M${px(at)} ${px(low)}V${px(high)}M${px(at - 4)} ${px(low)}h8M${px(at - 4)} ${px(high)}h8`;
        body.push(`<path class="whisker s${index % COLOURS}" d="${shape}"/>`);
      }
      body.push(mark(index, at, atY(point.y), point.title));
    }
  });
  return document(width, bottom + 50, inWords(chart), body);
}

interface HeatMap {
  label: string;
  /** What the columns are, what the rows are. */
  columnsLabel: string;
  rowsLabel: string;
  columns: string[];
  rows: { name: string; cells: ({ value: number; text: string; title: string } | undefined)[] }[];
  unit: string;
}

/** A table whose cells are shaded by value, the value written in each. Row names stand above their row where it is narrow. */
export function heatChart(map: HeatMap, width: number): string {
  const values = map.rows.flatMap((row) => row.cells.flatMap((cell) => (cell ? [cell.value] : [])));
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const longest = Math.max(...map.rows.map((row) => textWidth(row.name)), textWidth(map.rowsLabel));
  const beside = longest + map.columns.length * 56 <= width;
  const left = beside ? longest + 12 : 0;
  const size = Math.min(150, (width - left) / map.columns.length);
  const pitch = beside ? 34 : 54;
  const columnTop = 42;
  const body = [
    write(left, 14, shorten(map.columnsLabel, width - left), ' class="muted"'),
    write(0, beside ? columnTop - 6 : columnTop + 12, shorten(map.rowsLabel, width), ' class="muted"'),
  ];
  const texts = spaced(map.columns.map((text, at) => ({ at, text })), (at) => left + (at + 0.5) * size); // prettier-ignore
  for (const { at, text } of texts)
    body.push(write(left + (at + 0.5) * size, columnTop - 6, text, ' text-anchor="middle"'));
  const start = beside ? columnTop : columnTop + 20;
  map.rows.forEach((row, i) => {
    const top = start + i * pitch + (beside ? 0 : 20);
    if (beside) body.push(write(left - 12, top + 21, row.name, ' text-anchor="end"'));
    else body.push(write(0, top - 5, shorten(row.name, width), ' class="title"'));
    row.cells.forEach((cell, column) => {
      const x = left + column * size;
      const box = `x="${px(x + 1)}" y="${px(top + 1)}" width="${px(size - 2)}" height="32" rx="3"`;
      if (!cell) {
        body.push(
          `<rect class="grid" fill="none" ${box}/>`,
          write(x + size / 2, top + 21, '–', ' text-anchor="middle" class="muted"'),
        );
        return;
      }
      const share = high === low ? 0.5 : (cell.value - low) / (high - low);
      // No shades between 50 and 75 %: neither dark nor light text is easy to read on them.
      const shade = share < 0.5 ? 0.08 + share * 0.6 : 0.8 + (share - 0.5) * 0.4;
      body.push(
        `<g><title>${escape(cell.title)}</title><rect class="heat s0" fill-opacity="${shade.toFixed(2)}" ${box}/>`,
      );
      body.push(
        `${write(x + size / 2, top + 21, cell.text, ` text-anchor="middle"${shade > 0.6 ? ' class="over"' : ''}`)}</g>`,
      );
    });
  });
  const end = start + map.rows.length * pitch + 18;
  const range = `faintest ${heatText(map, low)}, strongest ${heatText(map, high)} ${map.unit}`.trim();
  body.push(write(Math.max(0, Math.min(left, width - textWidth(range))), end, range, ' class="muted"'));
  return document(width, end + 10, map.label, body);
}

function heatText(map: HeatMap, value: number): string {
  for (const row of map.rows) for (const cell of row.cells) if (cell?.value === value) return cell.text;
  return '';
}

interface Interval {
  name: string;
  /** What is written behind: the change and the verdict. */
  text: string;
  at: number;
  low: number;
  high: number;
  /** Marker and colour: one number for each kind of verdict. */
  style: number;
  title: string;
}

export interface Forest {
  label: string;
  x: Axis;
  rows: Interval[];
  legend: { name: string; style: number }[];
}

/** Estimates with their intervals, one below the other, against a line of no change. Ends beyond the axis become arrows. */
export function forestChart(forest: Forest, width: number): string {
  const { x, rows } = forest;
  const entries = forest.legend.map(({ name, style }) => ({
    name,
    sample: (at: number, y: number) => mark(style, at + 13, y),
  }));
  const [key, keyHeight] = legend(entries, width, 2);
  // Name, interval and words share a line where there is room for all three.
  const beside = width >= 600;
  const words = Math.max(...rows.map((row) => textWidth(row.text)));
  const names = Math.min(0.36 * width, Math.max(...rows.map((row) => textWidth(row.name))));
  const [left, right] = beside ? [names + 20, width - words - 20] : [14, width - 14];
  const top = keyHeight + 4;
  const pitch = beside ? 26 : 66;
  const bottom = top + rows.length * pitch + 4;
  const place = (value: number): number => left + Math.min(1, Math.max(0, x.place(value))) * (right - left);
  const body = [key];
  for (const { at } of x.ticks) body.push(line(place(at), top, place(at), bottom, at === 0 ? 'axis' : 'grid'));
  body.push(belowChart(x, place, [left, right], bottom, width).body);
  rows.forEach((row, i) => {
    const y = top + (i + 1) * pitch - (beside ? 10 : 14);
    if (beside) {
      body.push(write(0, y + 4, shorten(row.name, names)), write(width, y + 4, row.text, ' text-anchor="end"'));
    } else {
      // A strip of paper under the words keeps the grid from running through them.
      body.push(`<rect class="over" x="0" y="${px(y - 46)}" width="${width}" height="34"/>`);
      body.push(write(0, y - 33, shorten(row.name, width), ' class="title"'), write(0, y - 17, row.text));
    }
    const [low, high] = [place(row.low), place(row.high)];
    const end = (at: number, inside: boolean, way: number): string =>
      inside
        ? `M${px(at)} ${px(y - 5)}v10`
        : `M${px(at - way * 6)} ${px(y - 5)}L${px(at)} ${px(y)}L${px(at - way * 6)} ${px(y + 5)}`;
    const shape = `M${px(low)} ${px(y)}H${px(high)}${end(low, x.place(row.low) >= 0, -1)}${end(high, x.place(row.high) <= 1, 1)}`;
    body.push(`<path class="whisker s${row.style % COLOURS}" style="fill:none" d="${shape}"/>`);
    body.push(mark(row.style, place(row.at), y, row.title));
  });
  return document(width, bottom + 50, forest.label, body);
}
