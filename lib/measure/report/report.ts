/** A report of result lines: figures by kind, then all that has no plot, so that no line of a file goes missing. */
import { basename } from 'node:path';
import type { CompareResult } from '../compare/compare.js';
import type { Figure } from './figure.js';
import { burstFigures } from './report-burst.js';
import { compareFigures } from './report-compare.js';
import { latencyFigures } from './report-latency.js';
import { groupBy, where, whereAll } from './report-lines.js';
import { lossFigures } from './report-loss.js';
import { matrixFigures } from './report-matrix.js';
import { sampleFigures } from './report-samples.js';
import { speedFigures } from './report-speed.js';
import { linesTable } from './report-table.js';
import type { ResultLine } from '../results/result.js';
import type { Surroundings } from '../results/surroundings.js';

export interface Report {
  figures: Figure[];
  /** What the numbers were measured on, with the lines that each holds for. */
  surroundings: { about: Surroundings; where: string }[];
  files: string[];
  count: number;
  /** What they are compared with. */
  before: string[];
  /** ISO 8601: first and last result. */
  from: string;
  to: string;
}

/** Everything that no plot showed, so that no line of a file goes missing. */
function otherFigures(all: readonly ResultLine[], shown: readonly Figure[]): Figure[] {
  const sources = new Set(
    shown
      .filter(({ id }) => id !== 'compare')
      .flatMap(({ tables }) => tables.flatMap(({ rows }) => rows.map((row) => row.at(-1)!))),
  );
  const lines = all.filter((line) => !sources.has(where(line)));
  if (lines.length === 0) return [];
  const groups = groupBy(lines, ({ result }) => result.kind);
  return [...groups].map(([kind, group]) => {
    return {
      id: `more-${kind}`,
      title: `Further results: ${kind}`,
      caption: 'In numbers only.',
      tables: [linesTable(group)],
    };
  });
}

/** Files by the last part of their names, where that tells them apart. */
function shortNames(files: readonly string[]): (line: ResultLine) => ResultLine {
  const byName = groupBy([...new Set(files)], (file) => basename(file));
  return (line) => ({ ...line, file: byName.get(basename(line.file))?.length === 1 ? basename(line.file) : line.file });
}

/** Makes a report of result lines and, if given, of how they compare to earlier ones. */
export function makeReport(all: readonly ResultLine[], comparison?: CompareResult): Report {
  const sides = (comparison?.comparisons ?? []).flatMap(({ before, after }) => [before, after]);
  const short = shortNames([...all, ...sides.flatMap(({ lines }) => lines)].map(({ file }) => file));
  const lines = all.map(short);
  const compared = comparison && {
    ...comparison,
    comparisons: comparison.comparisons.map(({ before, after, ...one }) => ({
      ...one,
      before: { ...before, lines: before.lines.map(short) },
      after: { ...after, lines: after.lines.map(short) },
    })),
  };
  const plots = [
    ...(compared ? compareFigures(compared) : []),
    ...[speedFigures, latencyFigures, lossFigures, burstFigures, matrixFigures, sampleFigures].flatMap((make) =>
      make(lines),
    ),
  ];
  const described = lines.filter(({ result }) => result.surroundings !== undefined);
  const places = groupBy(described, ({ result }) => JSON.stringify(result.surroundings));
  const times = lines.map(({ result }) => new Date(result.time).toISOString()).sort();
  return {
    figures: [...plots, ...otherFigures(lines, plots)],
    surroundings: [...places.values()].map((group) => ({
      about: group[0].result.surroundings!,
      where: whereAll(group),
    })),
    files: [...new Set(all.map(({ file }) => file))],
    before: [...new Set((comparison?.comparisons ?? []).flatMap(({ before }) => before.lines.map(({ file }) => file)))],
    count: lines.length,
    from: times[0] ?? '',
    to: times.at(-1) ?? '',
  };
}
