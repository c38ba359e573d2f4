import { parseArgs } from 'node:util';
import { UsageError } from '../errors.js';
import { percentOption, terminal, withUsage, type Output } from './cli.js';
import { changeText, compare, failures, type Comparison, type CompareResult } from './compare.js';
import { formatChange, formatNumber, formatP, textTable } from './format.js';
import { cellKey, readResults } from './results.js';

const HELP = `usage: measure compare [options] BEFORE AFTER

Compares the cells that two result files share. For each: medians, the change with its confidence interval
(Hodges-Lehmann), a rank test (Mann-Whitney, exact up to 50 values) corrected for the number of comparisons (Holm),
and a verdict: better, worse, no difference shown, too few repeats, too noisy to tell.

  --metric NAME[,NAME]  what to compare (default: what each kind of result is about)
  --fail-on PERCENT     exit with 1 when a cell is worse by at least this much, such as 5%
  --alpha PERCENT       chance of calling any difference where there is none (default 5%)
  --noise PERCENT       call a cell too noisy when its interval is wider than this (default 50%)
  --json                print the comparison as JSON
  -h, --help            print this

exit code: 0 done, 1 --fail-on found a cell, 2 wrong usage
`;

function row(one: Comparison): string[] {
  const side = ({ values, median }: Comparison['before']): string => `${formatNumber(median)} (${values.length})`;
  const unit = one.about.unit === '' ? '' : ` ${one.about.unit}`;
  return [
    `${one.kind} ${cellKey(one.cell)}`,
    `${one.metric}${unit}`,
    side(one.before),
    side(one.after),
    ...changeText(one),
    formatP(one.corrected),
    formatChange(one.after.mean / one.before.mean - 1),
    one.verdict + (one.reason === undefined ? '' : `: ${one.reason}`),
  ];
}

/** The comparison as text for a terminal. */
export function compareText(result: CompareResult): string {
  const { comparisons, notices, alpha, noise, family } = result;
  const level = formatNumber((1 - alpha) * 100);
  const head = [
    'cell',
    'metric',
    'before (n)',
    'after (n)',
    'change',
    `${level} % interval`,
    'p',
    'change of means',
    'verdict',
  ];
  const lines = comparisons.length > 0 ? [textTable([head, ...comparisons.map(row)]), ''] : [];
  lines.push(...notices);
  if (comparisons.length === 0) return `${[...lines, 'nothing to compare: no cell is in both files'].join('\n')}\n`;
  lines.push(
    `Medians; change is Hodges-Lehmann's; p is of Mann-Whitney's test, corrected by Holm for ${family} comparison${family === 1 ? '' : 's'} at ${formatNumber(alpha * 100)} %.`,
    `"Too noisy": an interval wider than ${formatNumber(noise * 100)} %.`,
  );
  if (comparisons.some((one) => one.withinRuns)) {
    lines.push('Some values are readings within one run: they show how steady that run was, not how runs differ.');
  }
  return `${lines.join('\n')}\n`;
}

function compareJson({ comparisons, ...rest }: CompareResult): string {
  const side = ({ lines, values, median, mean }: Comparison['before']): object => {
    return { n: values.length, median, mean, lines: lines.map(({ file, line }) => `${file}:${line}`) };
  };
  const plain = comparisons.map(({ about, before, after, ...one }) => {
    return { ...one, unit: about.unit, before: side(before), after: side(after) };
  });
  return `${JSON.stringify({ ...rest, comparisons: plain }, null, 2)}\n`;
}

/** `measure compare`. Returns the exit code. */
export function runCompare(args: string[], io: Output = terminal): number {
  return withUsage('measure compare', io, () => {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        metric: { type: 'string' },
        'fail-on': { type: 'string' },
        alpha: { type: 'string', default: '5%' },
        noise: { type: 'string', default: '50%' },
        json: { type: 'boolean', default: false },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) {
      io.out(HELP);
      return 0;
    }
    if (positionals.length !== 2) throw new UsageError(`${positionals.length} files given: name two, BEFORE and AFTER`);
    const alpha = percentOption('--alpha', values.alpha);
    if (!(alpha > 0 && alpha < 1)) throw new UsageError(`--alpha ${values.alpha}: must be above 0% and below 100%`);
    const noise = percentOption('--noise', values.noise);
    const failOn = values['fail-on'] === undefined ? undefined : percentOption('--fail-on', values['fail-on']);
    const [before, after] = positionals.map((file) => readResults(file));
    for (const notice of [...before.notices, ...after.notices]) io.err(`${notice}\n`);
    const metrics = values.metric?.split(',');
    const result = compare(before.lines, after.lines, { alpha, noise, ...(metrics && { metrics }) });
    io.out(values.json ? compareJson(result) : compareText(result));
    const failed = failOn === undefined ? [] : failures(result, failOn);
    for (const one of failed) {
      io.err(
        `${one.kind} ${cellKey(one.cell)}: ${one.metric} is worse (${changeText(one)[0]}), by at least --fail-on\n`,
      );
    }
    return failed.length > 0 ? 1 : 0;
  });
}
