import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { parseCountWithin } from '../../text/units.js';
import { helped, type Command, type Output } from './measure-cli.js';
import { signalNumber } from '../signals.js';
import { readText } from '../../measure/results/files.js';
import { countText, formatNumber } from '../../text/format.js';
import { table } from '../../text/table.js';
import { commandText } from '../../measure/matrix/matrix-command.js';
import { MATRIX_FILE, readMatrix, type Matrix } from '../../measure/matrix/matrix-file.js';
import { repeatsText } from '../../measure/compare/compare-text.js';
import type { RunPlan } from '../../measure/matrix/matrix-plan.js';
import {
  remaining,
  restoreMatrix,
  RestoreError,
  runMatrix,
  type MatrixEvent,
  type MatrixSummary,
} from '../../measure/matrix/matrix.js';
import { metricHead, metricOf, primaryMetric, untoldUnit } from '../../measure/results/metrics.js';
import { median } from '../../stats/rank.js';
import { readResults } from '../../measure/results/results.js';
import type { Result } from '../../measure/results/result.js';

const OPTIONS = {
  out: {
    value: 'FILE',
    help: 'Append results to FILE, for measure compare and measure report. Default: the name of the matrix with .results.jsonl.',
  },
  seed: { value: 'N', help: 'What the order is drawn from. Default: random; it is printed and kept in the results.' },
  'dry-run': { help: 'List the cells, their commands and the time they take; change nothing.' },
  restore: { help: 'Only put back what a run that was killed left applied.' },
  json: { help: 'Print each result as it comes, one JSON object a line (docs/results.md).' },
  help: { short: 'h', help: 'This text.' },
} as const satisfies OptionTable;

export const MATRIX_HELP = `Usage: measure matrix [options] FILE

Measures every cell of a matrix: FILE (JSON, docs/matrix.md) names the axes, how often each cell is repeated and what a
cell runs, a trial of ours or a command such as iperf3 --json. Cells run in random order, so that drift meets all alike.
Settings are applied before a run and put back after it, also after Ctrl-C and failures. A matrix that was interrupted
goes on where it was when it is started again; what a killed run left applied is put back first.

${optionsHelp(OPTIONS)}

Exit code: 0 all cells have results, 1 a cell failed or a setting could not be put back, 2 wrong usage, 128 + signal
when interrupted (130 for Ctrl-C).
`;

interface Options {
  file: string;
  out: string;
  seed: number | undefined;
  mode: 'run' | 'dry-run' | 'restore';
  json: boolean;
}

function readOptions(line: CommandLine<keyof typeof OPTIONS>): Options {
  const { positionals } = line;
  if (positionals.length !== 1)
    throw new UsageError(
      `${countText(positionals.length, 'matrix file')} given; name one, for example: measure matrix rings.json`,
    );
  if (line.has('dry-run') && line.has('restore'))
    throw new UsageError('--dry-run and --restore: only one of them at a time');
  const [file] = positionals;
  return {
    file,
    out: line.read('out', (text) => text) ?? `${file}.results.jsonl`,
    seed: line.read('seed', (text) => parseCountWithin(text, 0, 0xffffffff)),
    mode: line.has('dry-run') ? 'dry-run' : line.has('restore') ? 'restore' : 'run',
    json: line.has('json'),
  };
}

/** A length of time as people say it. */
export function spanText(seconds: number): string {
  const s = Math.max(1, Math.round(seconds));
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${s % 60} s`;
  return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
}

/** Seconds that a run takes before any was timed: the frame loop's warm-up is half a second. */
function expectedSeconds(matrix: Matrix): number {
  return matrix.seconds + matrix.settleSeconds + ('command' in matrix.cell ? 0 : 0.5);
}

/** The line that a terminal keeps at its end, and the estimate behind it. */
class Progress {
  readonly #live = process.stderr.isTTY;
  #timer: NodeJS.Timeout | undefined;
  #tookMs = 0;
  #timed = 0;

  constructor(readonly expected: number) {}

  /** Mean of the runs so far, or what the matrix says. */
  get secondsPerRun(): number {
    return this.#timed === 0 ? this.expected : this.#tookMs / this.#timed / 1000;
  }

  start(text: string, left: number): void {
    const began = performance.now();
    const draw = (): void => {
      const spent = (performance.now() - began) / 1000;
      const seconds = Math.max(0, this.secondsPerRun - spent) + left * this.secondsPerRun;
      const line = `${text} · ${spanText(seconds)} left`.slice(0, (process.stderr.columns || 80) - 1);
      process.stderr.write(`\r\x1b[K${line}`);
    };
    if (!this.#live) return;
    draw();
    this.#timer = setInterval(draw, 1000);
  }

  stop(tookMs?: number): void {
    clearInterval(this.#timer);
    if (this.#live) process.stderr.write('\r\x1b[K');
    if (tookMs === undefined) return;
    this.#tookMs += tookMs;
    this.#timed++;
  }
}

const runText = (run: RunPlan): string => `${run.key} #${run.repeat + 1}`;

function resultText(metric: string, { metrics, units }: Result): string {
  return `${metric} ${formatNumber(metrics[metric])} ${untoldUnit(metric, metricOf(metric, units))}`.trimEnd();
}

function show(io: Output, options: Options, progress: Progress): (event: MatrixEvent) => void {
  return (event) => {
    if (event.kind === 'notice') io.err(`${event.text}\n`);
    if (event.kind === 'begin') {
      const earlier = event.done === 0 ? '' : `, ${event.done} of them done earlier`;
      const time = spanText((event.runs - event.done) * progress.secondsPerRun);
      io.err(`${event.runs} runs${earlier}, about ${time}; seed ${event.seed}; results in ${options.out}\n`);
    }
    if (event.kind === 'start') progress.start(`[${event.number}/${event.runs}] ${runText(event.run)}`, event.left);
    if (event.kind !== 'result' && event.kind !== 'failed') return;
    progress.stop(event.tookMs);
    const left = event.left === 0 ? '' : `; ${spanText(event.left * progress.secondsPerRun)} left`;
    const head = `[${event.number}/${event.runs}] ${runText(event.run)}`;
    if (event.kind === 'failed') {
      io.err(`${head}: FAILED: ${event.cause}${left}\n`);
      return;
    }
    const metric = primaryMetric(event.result);
    const said = metric === undefined ? 'done' : resultText(metric, event.result);
    (options.json ? io.err : io.out)(`${head}: ${said}${left}\n`);
    if (options.json) io.out(`${JSON.stringify(event.result)}\n`);
  };
}

/** Median and range of one metric of each cell. */
function summaryTable(out: string): string {
  const byCell = new Map<string, { metric: string; values: number[] }>();
  for (const { result } of readResults(out).lines) {
    const metric = primaryMetric(result);
    if (result.kind !== 'matrix' || metric === undefined || !(metric in result.metrics)) continue;
    const key = Object.entries(result.cell)
      .map(([axis, value]) => `${axis}=${value}`)
      .join(' ');
    const one = byCell.get(key) ?? { metric: metricHead(metric, metricOf(metric, result.units)), values: [] };
    one.values.push(result.metrics[metric]);
    byCell.set(key, one);
  }
  const rows = [...byCell]
    .sort(([a], [b]) => a.localeCompare(b, 'en', { numeric: true }))
    .map(([cell, { metric, values }]) => [
      cell,
      metric,
      String(values.length),
      formatNumber(median(values)),
      formatNumber(Math.min(...values)),
      formatNumber(Math.max(...values)),
    ]);
  const heads = ['cell', 'metric', 'n', 'median', 'least', 'most'];
  return rows.length === 0 ? '' : `${table(heads, rows, () => false)}\n`;
}

function dryRun(matrix: Matrix, options: Options, io: Output): void {
  const { seed, runs, left, notices } = remaining(matrix, options.out, options.seed);
  for (const text of notices) io.err(`${text}\n`);
  const cells = runs.length / matrix.repeats;
  io.out(`${matrix.name}: ${cells} cells, ${matrix.repeats} times each: ${runs.length} runs, ${left.length} left; `);
  io.out(`about ${spanText(left.length * expectedSeconds(matrix))}; seed ${seed}\n`);
  const few = repeatsText(cells, matrix.repeats);
  if (few !== '') io.out(`${few}\n`);
  for (const run of left) {
    io.out(`${runText(run)}\n`);
    const { features, ...numbers } = run.device ?? {};
    const settings = [
      ...Object.entries(numbers).map(([name, value]) => `${name}=${value}`),
      ...Object.entries(features ?? {}).map(([name, on]) => `${name}=${on ? 'on' : 'off'}`),
    ];
    if (settings.length > 0) io.out(`  set   ${matrix.interfaces.join(', ')}: ${settings.join(' ')}\n`);
    for (const { apply } of run.steps) for (const argv of apply) io.out(`  apply ${commandText(argv)}\n`);
    if ('command' in run.run) io.out(`  run   ${commandText(run.run.command)}\n`);
    else io.out(`  trial ${run.run.trial.options.names.join(run.run.trial.options.oneWay ? ' → ' : ' ⇄ ')}\n`);
    for (const { undo } of [...run.steps].reverse()) for (const argv of undo) io.out(`  undo  ${commandText(argv)}\n`);
  }
}

/** Runs that failed, by cause and cell. */
function failures({ failed }: MatrixSummary): Map<string, Map<string, number>> {
  const causes = new Map<string, Map<string, number>>();
  for (const { run, cause } of failed) {
    const cells = causes.get(cause) ?? new Map<string, number>();
    cells.set(run.key, (cells.get(run.key) ?? 0) + 1);
    causes.set(cause, cells);
  }
  return causes;
}

function conclude(summary: MatrixSummary, options: Options, io: Output, signal?: NodeJS.Signals): number {
  if (!options.json && summary.done > 0) io.out(`\n${summaryTable(options.out)}`);
  if (summary.failed.length > 0) {
    io.err(`${summary.failed.length} of ${summary.runs} runs failed:\n`);
    for (const [cause, cells] of failures(summary)) {
      io.err(`  ${cause}\n`);
      for (const [cell, times] of cells) io.err(`    ${cell}${times === 1 ? '' : ` (${times} runs)`}\n`);
    }
  }
  const settings = 'every setting is back as it was';
  const again = `run the same command again to go on`;
  if (summary.interrupted) io.err(`interrupted: ${summary.done} of ${summary.runs} runs done; ${settings}; ${again}\n`);
  else if (summary.failed.length > 0) io.err(`${settings}; the same command tries the failed runs again\n`);
  if (summary.interrupted) return 128 + (signal === undefined ? 1 : signalNumber(signal));
  return summary.failed.length > 0 ? 1 : 0;
}

/** Turns a wish to stop and stray exceptions into an orderly end of `body`. */
async function guarded(io: Output, stop: AbortSignal, body: (signal: AbortSignal) => Promise<number>): Promise<number> {
  const controller = new AbortController();
  const stray: Error[] = [];
  const onWish = (): void => {
    io.err(
      `\n${String(stop.reason)}: putting settings back; a second signal ends this at once, and leaves them to --restore\n`,
    );
    controller.abort();
  };
  const onStray = (error: Error): void => {
    stray.push(error);
    controller.abort();
  };
  stop.addEventListener('abort', onWish, { once: true });
  process.on('uncaughtException', onStray);
  try {
    const code = await body(controller.signal);
    for (const error of stray) throw error;
    return code;
  } finally {
    stop.removeEventListener('abort', onWish);
    process.off('uncaughtException', onStray);
  }
}

async function run(
  matrix: Matrix,
  options: Options,
  io: Output,
  signal: AbortSignal,
  stop: AbortSignal,
): Promise<number> {
  const progress = new Progress(expectedSeconds(matrix));
  const { out, seed } = options;
  const onEvent = show(io, options, progress);
  try {
    const summary = await runMatrix(matrix, { out, ...(seed !== undefined && { seed }), signal, onEvent });
    progress.stop();
    return conclude(summary, options, io, stop.aborted ? (stop.reason as NodeJS.Signals) : undefined);
  } finally {
    progress.stop();
  }
}

/** `measure matrix`. Returns the exit code. @throws UsageError */
export const runMatrixCommand: Command = async (args, io, stop = new AbortController().signal) => {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, MATRIX_HELP)) return 0;
  const options = readOptions(line);
  try {
    if (options.mode === 'restore') {
      const restored = await restoreMatrix(options.out);
      // A name that was mistyped must not sound as if all were well.
      if (restored === undefined) readText(options.file, MATRIX_FILE);
      io.out(`${restored ?? 'nothing is applied: there is nothing to put back'}\n`);
      return 0;
    }
    const matrix = readMatrix(options.file);
    if (options.mode === 'dry-run') dryRun(matrix, options, io);
    else return await guarded(io, stop, (signal) => run(matrix, options, io, signal, stop));
    return 0;
  } catch (error) {
    if (!(error instanceof RestoreError)) throw error;
    io.err(`measure matrix: ${error.message}\n`);
    return 1;
  }
};
