/** What is compared: one value of a run, whatever was read within it, cell by cell. */
import { UsageError } from '../../text/errors.js';
import { without } from '../results/cells.js';
import { type Cell, cellKey, type Result, type ResultKind, type ResultLine } from '../results/result.js';
import { mean, median, type Pair } from '../../stats/rank.js';

/** All results of one cell on one side. */
export interface Cells {
  kind: ResultKind;
  cell: Cell;
  lines: ResultLine[];
}

/** The results of each cell, by a key that is the same on both sides; the settings in `ignore` tell no cells apart. */
export function byCell(lines: readonly ResultLine[], ignore: readonly string[]): Map<string, Cells> {
  const cells = new Map<string, Cells>();
  for (const line of lines) {
    const { kind, cell: whole } = line.result;
    const cell = without(whole, ignore);
    const key = `${kind} ${cellKey(cell)}`;
    const same = cells.get(key);
    if (!same) cells.set(key, { kind, cell, lines: [line] });
    else if (cellKey(whole) === cellKey(same.lines[0].result.cell)) same.lines.push(line);
    else {
      const [file, other] = [line, same.lines[0]].map((one) => `${one.file}:${one.line}`);
      throw new UsageError(
        `--ignore ${ignore.join()}: ${other} and ${file} would be taken for repeats of one cell; leave out fewer`,
      );
    }
  }
  return cells;
}

/** The value that a run has of a metric: its own, or the median of the readings within it, which are no repeats. */
function valueOf({ metrics, samples }: Result, metric: string): number | undefined {
  if (metric in metrics) return metrics[metric];
  const readings = samples?.[metric] ?? [];
  return readings.length === 0 ? undefined : median(readings);
}

export interface Side {
  lines: ResultLine[];
  /** One of each run. */
  values: number[];
  median: number;
  mean: number;
}

function sideOf(lines: readonly ResultLine[], metric: string): Side {
  const runs = lines.flatMap((line) => {
    const value = valueOf(line.result, metric);
    return value === undefined ? [] : [{ line, value }];
  });
  const values = runs.map(({ value }) => value);
  return { lines: runs.map(({ line }) => line), values, median: median(values), mean: mean(values) };
}

export interface Sides {
  before: Side;
  after: Side;
  /** The values, those set against each other that `measure ab` took in one random order: a pair a round. */
  pairs: Pair[];
}

/** The values of a metric on both sides; undefined where one has none. */
export function sidesOf(
  linesBefore: readonly ResultLine[],
  linesAfter: readonly ResultLine[],
  metric: string,
): Sides | undefined {
  const [before, after] = [sideOf(linesBefore, metric), sideOf(linesAfter, metric)];
  if (before.lines.length === 0 || after.lines.length === 0) return undefined;
  const roundsOf = ({ lines }: Side): (number | undefined)[] => lines.map(({ result }) => result.ab?.round);
  const rounds = [roundsOf(before), roundsOf(after)];
  const drawn = rounds.flat().every((round) => round !== undefined);
  if (!drawn) return { before, after, pairs: [[before.values, after.values]] };
  const pairs = [...new Set(rounds.flat())].map((round): Pair => {
    const [was, is] = [before, after].map(({ values }, i) => values.filter((_, at) => rounds[i][at] === round));
    return [was, is];
  });
  return { before, after, pairs };
}
