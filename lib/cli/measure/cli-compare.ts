import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { parsePercent } from '../../text/units.js';
import { helped, parseNames, parsePart, type Output } from './measure-cli.js';
import { abSides, compareSides, finalAlpha } from '../../measure/compare/ab.js';
import {
  compareFiles,
  DEFAULT_ALPHA,
  failures,
  type Comparison,
  type CompareResult,
} from '../../measure/compare/compare.js';
import {
  changeText,
  compareHeads,
  compareRow,
  methodText,
  naming,
  noticeTexts,
  nothingText,
  overallTexts,
  unevenText,
  unjudgedText,
} from '../../measure/compare/compare-text.js';
import { formatChange, formatShare } from '../../text/format.js';
import { table } from '../../text/table.js';
import { cellKey } from '../../measure/results/result.js';
import { readResults } from '../../measure/results/results.js';

const DEFAULTS = { alpha: DEFAULT_ALPHA, noise: 0.5 };

/** What is judged, and what comes of it. */
export const JUDGE_OPTIONS = {
  metric: { value: 'NAMES', help: 'What to compare: mpps,loss. Default: what each kind of result is about.' },
  'fail-on': {
    value: 'PERCENT',
    help:
      'Exit with 1 when a cell, or all cells of a metric together, are worse by at least this much, such as 5%, when a ' +
      'cell could not be judged (too few repeats, too noisy), and when there was nothing to compare.',
  },
  'allow-unjudged': { help: 'With --fail-on: cells that could not be judged do not fail.' },
  json: { help: 'Print the comparison as JSON.' },
  help: { short: 'h', help: 'This text.' },
} as const satisfies OptionTable;

const { metric, json, help, ...gate } = JUDGE_OPTIONS;
const OPTIONS = {
  metric,
  ignore: {
    value: 'NAMES',
    help: 'Settings by which cells are not told apart, such as the one that was changed between the files: a,b.',
  },
  ...gate,
  alpha: {
    value: 'PERCENT',
    help: `Chance of calling any difference where there is none. Default: ${formatShare(DEFAULTS.alpha)}.`,
  },
  noise: {
    value: 'PERCENT',
    help: `Call a cell too noisy when its interval is wider than this. Default: ${formatShare(DEFAULTS.noise)}.`,
  },
  json,
  help,
} as const satisfies OptionTable;

const HELP = `Usage: measure compare [options] BEFORE AFTER…
       measure compare [options] FILE         what measure ab has written

Compares the cells (frame size, ports, settings) that result files share, each file with the first. For each: medians of
runs, the change with its confidence interval (Hodges–Lehmann), a rank test (Mann–Whitney, exact up to 50 values)
corrected for the number of comparisons (Holm), and a verdict: better, worse, no difference shown, too few repeats, too
noisy to tell. Files that were measured one after the other may differ by what else the machine did: measure ab takes
two set-ups in turn.

${optionsHelp(OPTIONS)}

Exit code: 0 done, 1 --fail-on found a cell or nothing to compare, 2 wrong usage.
`;

/** The comparison as text for a terminal. */
export function compareText(result: CompareResult): string {
  const { comparisons, notices } = result;
  const uneven = unevenText(result);
  const lines: string[] = uneven === '' ? [] : [uneven, ''];
  const names = naming(comparisons);
  if (comparisons.length > 0) {
    const head = [...compareHeads(result), 'change of means', 'verdict'];
    const rows = comparisons.map((one) => [
      ...compareRow(one, names),
      formatChange(one.after.mean / one.before.mean - 1),
      one.verdict + (one.reason === undefined ? '' : `: ${one.reason}`),
    ]);
    // One cell alone is named above.
    const from = rows.every(([cell]) => cell === '') ? 1 : 0;
    if (names.common !== '') lines.push(`In every row: ${names.common}`, '');
    const shown = rows.map((row) => row.slice(from));
    lines.push(
      table(head.slice(from), shown, () => false),
      '',
      ...methodText(result),
    );
  }
  const together = overallTexts(result);
  if (together.length > 0) lines.push('', ...together);
  if (comparisons.length > 0 && notices.length > 0) lines.push('');
  lines.push(...noticeTexts(notices));
  if (comparisons.length === 0) lines.push(nothingText(result));
  const left = unjudgedText(result);
  if (left !== '') lines.push('', left);
  return `${lines.join('\n')}\n`;
}

function compareJson({ comparisons, overall, notices, ...rest }: CompareResult): string {
  const side = ({ lines, values, median, mean }: Comparison['before']): object => {
    return { n: values.length, median, mean, lines: lines.map(({ file, line }) => `${file}:${line}`) };
  };
  const plain = comparisons.map(({ about, before, after, ...one }) => {
    return { ...one, pairs: undefined, unit: about.unit, before: side(before), after: side(after) };
  });
  const together = overall.map(({ about, ...one }) => ({ ...one, unit: about.unit }));
  return `${JSON.stringify({ ...rest, notices, overall: together, comparisons: plain }, null, 2)}\n`;
}

/** What is to come of a judgement. */
export interface Judge {
  json: boolean;
  failOn: number | undefined;
  allowUnjudged: boolean;
}

/** @throws UsageError */
export function readJudge(line: CommandLine<keyof typeof JUDGE_OPTIONS>): Judge {
  const failOn = line.read('fail-on', parsePercent);
  const allowUnjudged = line.has('allow-unjudged');
  if (failOn === undefined && allowUnjudged) throw new UsageError('--allow-unjudged goes with --fail-on PERCENT');
  return { json: line.has('json'), failOn, allowUnjudged };
}

/** `measure compare`. Returns the exit code. @throws UsageError */
export function runCompare(args: readonly string[], io: Output): number {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, HELP)) return 0;
  const { positionals } = line;
  if (positionals.length === 0) throw new UsageError('no file given; name two, BEFORE and AFTER');
  const alpha = line.read('alpha', parsePart) ?? DEFAULTS.alpha;
  const noise = line.read('noise', parsePercent) ?? DEFAULTS.noise;
  const judge = readJudge(line);
  const metrics = line.read('metric', parseNames);
  const ignore = line.read('ignore', parseNames) ?? [];
  const files = positionals.map((file) => readResults(file));
  for (const notice of files.flatMap(({ notices }) => notices)) io.err(`${notice}\n`);
  const lines = files.map((file) => file.lines);
  const named = metrics && { metrics };
  const result =
    lines.length === 1
      ? compareSides(abSides(lines[0], positionals[0]), { alpha: finalAlpha(alpha), noise, ...named })
      : compareFiles(lines, { alpha, noise, ignore, ...named });
  return concludeComparison(result, judge, io);
}

/** Prints a comparison. Returns the exit code that `--fail-on` asks for. */
export function concludeComparison(result: CompareResult, { json, failOn, allowUnjudged }: Judge, io: Output): number {
  io.out(json ? compareJson(result) : compareText(result));
  if (failOn === undefined) return 0;
  const failed = failures(result.comparisons, failOn);
  for (const one of failed) {
    const cell = `${one.kind} ${cellKey(one.cell)}`.trim();
    io.err(`${cell}: ${one.metric} is worse (${changeText(one)[0]}), by at least --fail-on\n`);
  }
  const together = failures(result.overall, failOn);
  for (const { metric, cells, change } of together)
    io.err(`${metric} of all ${cells} cells together is worse (${formatChange(change)}), by at least --fail-on\n`);
  const nothing = result.comparisons.length === 0;
  if (nothing) io.err(`--fail-on: failed, for there is ${nothingText(result)}\n`);
  const left = unjudgedText(result);
  const refused = left !== '' && !allowUnjudged;
  if (refused) io.err(`--fail-on: failed, for ${left}; measure more repeats, or give --allow-unjudged\n`);
  // What the text ends with; JSON has it in the verdicts alone.
  else if (json && left !== '') io.err(`${left}\n`);
  return nothing || refused || failed.length + together.length > 0 ? 1 : 0;
}
