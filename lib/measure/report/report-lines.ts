/** Result lines as plots and tables take them: grouped, named, and traced to where they stand. */
import { commonSettings, namerWithout } from '../results/cells.js';
import { formatNumber } from '../../text/format.js';
import { median } from '../../stats/rank.js';
import type { ResultLine } from '../results/result.js';
import type { Point, Series } from './svg.js';

export const where = ({ file, line }: ResultLine): string => `${file}:${line}`;

/** Lines in short: "a.jsonl:1-3,7 b.jsonl:2". */
export function whereAll(lines: readonly ResultLine[]): string {
  const runs = (numbers: number[]): string => {
    const parts: [number, number][] = [];
    for (const number of [...new Set(numbers)].sort((a, b) => a - b)) {
      const last = parts.at(-1);
      if (last && last[1] === number - 1) last[1] = number;
      else parts.push([number, number]);
    }
    return parts.map(([from, to]) => (from === to ? String(from) : `${from}-${to}`)).join(',');
  };
  return [...groupBy(lines, ({ file }) => file)]
    .map(([file, group]) => `${file}:${runs(group.map(({ line }) => line))}`)
    .join(' ');
}

export function groupBy<T>(items: readonly T[], key: (item: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const item of items) {
    const name = key(item);
    const group = groups.get(name);
    if (group) group.push(item);
    else groups.set(name, [item]);
  }
  return groups;
}

/**
 * Names the series of a line: by settings that are not the same in all lines, nor `axis`, and by its file where there are
 * several; `whole` where nothing tells them apart.
 */
export function seriesNamer(lines: readonly ResultLine[], axis?: string, whole = ''): (line: ResultLine) => string {
  const several = new Set(lines.map(({ file }) => file)).size > 1;
  const left = Object.keys(commonSettings(lines.map(({ result }) => result.cell)));
  if (axis !== undefined) left.push(axis);
  const nameOf = namerWithout(
    lines.map(({ result }) => result.cell),
    left,
  );
  return ({ file, result }) => [nameOf(result.cell), several ? file : ''].filter(Boolean).join(', ') || whole;
}

/** A line of points for each name, one at each value of the setting `axis`, from left to right. */
export function seriesOver(
  axis: string,
  lines: readonly ResultLine[],
  nameOf: (line: ResultLine) => string,
  pointAt: (value: string, here: readonly ResultLine[]) => Point,
): Series[] {
  return [...groupBy(lines, nameOf)].map(([name, group]) => {
    const places = groupBy(group, ({ result }) => String(result.cell[axis]));
    const points = [...places].map(([value, here]) => pointAt(value, here));
    return { name, points: points.sort((a, b) => a.x - b.x) };
  });
}

/** Of all repeats at one place: the median, with the range as whisker. */
export function pointOf(
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

export const sizeOf = ({ result }: ResultLine): number => result.cell.size as number;

/** Whether a line can stand on an axis of frame sizes. */
export function hasSize({ result }: ResultLine): boolean {
  return typeof result.cell.size === 'number' && result.cell.size >= 1;
}
