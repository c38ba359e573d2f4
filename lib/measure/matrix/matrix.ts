/** Runs a matrix: every cell as often as asked for, in random order, settings applied and always put back. */
import { randomInt } from 'node:crypto';
import { existsSync, rmSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { UsageError } from '../../text/errors.js';
import { native } from '../../shim/native.js';
import { coreShares, cpuMetrics, readCores } from '../trial/cpu.js';
import { Interrupted } from '../trial/trial.js';
import { unwritable } from '../results/files.js';
import { inspectInterface } from './inspect.js';
import { iperf3Error } from './iperf3.js';
import { CommandError, output, runCommand, saidBy } from './matrix-command.js';
import { applyDevice, readDevice } from './matrix-device.js';
import type { Matrix } from './matrix-file.js';
import { planRuns, type RunPlan } from './matrix-plan.js';
import { readOutput } from './matrix-read.js';
import type { Measured } from './measured.js';
import { runTrialPlan } from './matrix-trial.js';
import { Journal, RestoreError, undoAll, type UndoStep } from './matrix-undo.js';
import { appendResults, readResults } from '../results/results.js';
import { cellKey, type Result, RESULT_VERSION } from '../results/result.js';
import { describeSurroundings } from '../results/surroundings.js';

/** What happens while a matrix runs. `left` counts the runs that remain after this one. */
export type MatrixEvent =
  | { kind: 'notice'; text: string }
  | { kind: 'begin'; seed: number; runs: number; done: number }
  | { kind: 'start'; run: RunPlan; number: number; runs: number; left: number }
  | { kind: 'result'; run: RunPlan; number: number; runs: number; left: number; result: Result; tookMs: number }
  | { kind: 'failed'; run: RunPlan; number: number; runs: number; left: number; cause: string; tookMs: number };

export interface MatrixOptions {
  /** File that results are appended to, and that says what has been run already. */
  out: string;
  /** Seed of the order when the file has none yet. Default: the matrix's own, else a random one. */
  seed?: number;
  /** Ends the matrix early; settings are put back first. */
  signal?: AbortSignal;
  onEvent?: (event: MatrixEvent) => void;
}

export interface MatrixSummary {
  runs: number;
  /** Runs whose results are in the file, earlier ones included. */
  done: number;
  failed: { run: RunPlan; cause: string }[];
  interrupted: boolean;
}

export const journalFile = (out: string): string => `${out}.applied`;

const nameOf = (run: RunPlan): string => `${run.repeat} ${run.key}`;

/** What a matrix has left to do. */
export interface Remaining {
  seed: number;
  runs: RunPlan[];
  left: RunPlan[];
  notices: string[];
}

/**
 * The runs of a matrix and those of them that `out` has no result of.
 * @throws UsageError when the file holds results of another matrix, or of another order
 */
export function remaining(matrix: Matrix, out: string, seed?: number): Remaining {
  const { lines, notices } = existsSync(out) ? readResults(out) : { lines: [], notices: [] };
  const ours = lines.filter(({ result }) => result.kind === 'matrix');
  const done = new Set<string>();
  let stored: number | undefined;
  for (const { file, line, result } of ours) {
    if (result.matrix?.digest !== matrix.digest)
      throw new UsageError(
        `${file}:${line}: a result of another matrix, or ${matrix.file} has changed since (repeats may change, nothing else): ` +
          'give --out another file, or put the matrix back as it was',
      );
    stored ??= result.matrix.seed;
    done.add(`${result.repeat} ${cellKey(result.cell)}`);
  }
  if (stored !== undefined && seed !== undefined && stored !== seed)
    throw new UsageError(`--seed ${seed}: ${out} was begun with seed ${stored}: leave --seed out to go on with it`);
  const drawn = stored ?? seed ?? matrix.seed ?? randomInt(0x1_0000_0000);
  const runs = planRuns(matrix, drawn);
  return { seed: drawn, runs, left: runs.filter((run) => !done.has(nameOf(run))), notices };
}

/** Holds a results file for one process at a time. */
async function locked<T>(out: string, body: () => Promise<T>): Promise<T> {
  const file = `${out}.lock`;
  let lock: number;
  try {
    lock = native.lock(file);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EBUSY')
      throw new UsageError(`${out}: another measure matrix writes to it: wait for it, or give --out`);
    throw unwritable(out, error);
  }
  try {
    return await body();
  } finally {
    rmSync(file, { force: true });
    native.unlock(lock);
  }
}

async function restoreLeft(out: string): Promise<string | undefined> {
  const journal = new Journal(journalFile(out));
  const entry = journal.read();
  if (!entry) return undefined;
  await undoAll(journal, entry);
  return `${entry.matrix}: an earlier run was killed while the settings of ${entry.cell} were applied; they are back as they were`;
}

/**
 * Puts back what a run that was killed left applied.
 * @returns what was done, undefined when there was nothing to do
 * @throws RestoreError when something is not as it was, UsageError when the run is still alive
 */
export function restoreMatrix(out: string): Promise<string | undefined> {
  return locked(out, () => restoreLeft(out));
}

class Runner {
  readonly #journal: Journal;
  readonly #timeoutMs: number;

  constructor(
    readonly matrix: Matrix,
    readonly out: string,
    readonly seed: number,
    readonly signal: AbortSignal,
  ) {
    this.#journal = new Journal(journalFile(out));
    this.#timeoutMs = matrix.timeoutSeconds * 1000;
  }

  /**
   * One run: settings applied, measured, the result written, settings put back.
   * @returns the result, or why there is none
   * @throws Interrupted, RestoreError, or an error of writing the result
   */
  async run(run: RunPlan): Promise<Result | string> {
    const undo: UndoStep[] = [];
    let result: Result | string;
    try {
      result = await this.#measured(run, undo);
      if (typeof result !== 'string') appendResults(this.out, [result]);
    } finally {
      if (undo.length > 0) await undoAll(this.#journal, this.#entry(run, undo));
    }
    return result;
  }

  #entry(run: RunPlan, undo: UndoStep[]): Parameters<Journal['write']>[0] {
    return { v: 1, matrix: this.matrix.file, cell: run.key, timeoutMs: this.#timeoutMs, undo };
  }

  async #measured(run: RunPlan, undo: UndoStep[]): Promise<Result | string> {
    try {
      await this.#apply(run, undo);
      const { settleSeconds, interfaces, name, digest } = this.matrix;
      if (settleSeconds > 0) await sleep(settleSeconds * 1000, undefined, { signal: this.signal });
      const surroundings = describeSurroundings(interfaces, inspectInterface);
      const measured = await this.#measure(run);
      return {
        v: RESULT_VERSION,
        kind: 'matrix',
        cell: run.cell,
        repeat: run.repeat,
        ...measured,
        matrix: { name, digest, seed: this.seed, ran: ran(run) },
        surroundings,
        time: new Date().toISOString(),
      };
    } catch (error) {
      if (this.signal.aborted) throw new Interrupted();
      return (error as Error).message;
    }
  }

  /** Everything is read before anything is changed: one setting can move what another reads. */
  async #apply(run: RunPlan, undo: UndoStep[]): Promise<void> {
    const { device } = run;
    const devices = device ? this.matrix.interfaces : [];
    const states = new Map<string, Awaited<ReturnType<typeof readDevice>>>();
    for (const name of devices) states.set(name, await readDevice(name));
    const read: (string | undefined)[] = [];
    for (const step of run.steps) {
      read.push(step.read ? (await output(step.read, this.#timeoutMs)).trim() : undefined);
    }
    for (const [name, was] of states) {
      this.#begin(run, undo, { kind: 'device', device: name, was });
      await applyDevice(name, device!);
    }
    for (const [i, step] of run.steps.entries()) {
      const was = read[i];
      const back = step.undo.map((argv) => argv.map((word) => word.replaceAll('{was}', was ?? '{was}')));
      this.#begin(run, undo, {
        kind: 'command',
        axis: step.axis,
        undo: back,
        ...(step.read && was !== undefined && { read: step.read, was }),
      });
      for (const argv of step.apply) await output(argv, this.#timeoutMs);
    }
    if (this.signal.aborted) throw new Interrupted();
  }

  /** What undoes a setting is on the disk before the setting is touched. */
  #begin(run: RunPlan, undo: UndoStep[], step: UndoStep): void {
    if (this.signal.aborted) throw new Interrupted();
    undo.unshift(step);
    this.#journal.write(this.#entry(run, undo));
  }

  async #measure(run: RunPlan): Promise<Measured> {
    if ('trial' in run.run) return runTrialPlan(run.run.trial, this.signal);
    const { cell } = this.matrix;
    if (!('command' in cell)) throw new Error('a command without a way to read it');
    const { command } = run.run;
    const before = readCores();
    const result = await runCommand(command, cell.timeoutSeconds * 1000, this.signal);
    const cores = coreShares(before, readCores());
    if (result.status !== 0) {
      const own = cell.reading === 'iperf3' ? iperf3Error(result.stdout) : undefined;
      throw new CommandError(command, own ?? saidBy(result));
    }
    const read = readOutput(cell.reading, result.stdout);
    return {
      cores,
      ...read,
      // A result of measure has shares of its own, of the trial alone. What is read comes first, and is not replaced.
      metrics: { ...read.metrics, ...(read.cores ? {} : cpuMetrics(cores)), ...read.metrics },
      ...(cell.units && { units: { ...read.units, ...cell.units } }),
    };
  }
}

/** What ran, for the record: the command's words, or the names of the trial's ports and its settings. */
function ran({ run }: RunPlan): string[] {
  if ('command' in run) return [...run.command];
  const { options, workers } = run.trial;
  const { names, ...settings } = options;
  const words = Object.entries({ ...settings, workers }).flatMap(([name, value]) =>
    typeof value === 'object' ? [] : [`${name}=${value}`],
  );
  return [...names, ...words];
}

/**
 * Runs what a matrix has left to run. A run that fails is told and not repeated; the next call tries it again.
 * @throws UsageError when `out` holds results of another matrix or another process uses it; RestoreError when a setting
 * cannot be put back, and then nothing more is run
 */
export function runMatrix(matrix: Matrix, options: MatrixOptions): Promise<MatrixSummary> {
  const { out, onEvent = () => undefined, signal = new AbortController().signal } = options;
  return locked(out, async () => {
    const restored = await restoreLeft(out);
    if (restored !== undefined) onEvent({ kind: 'notice', text: restored });
    const { seed, runs, left, notices } = remaining(matrix, out, options.seed);
    // A file that cannot be written is told before any setting is touched.
    appendResults(out, []);
    for (const text of notices) onEvent({ kind: 'notice', text });
    const summary: MatrixSummary = {
      runs: runs.length,
      done: runs.length - left.length,
      failed: [],
      interrupted: false,
    };
    onEvent({ kind: 'begin', seed, runs: runs.length, done: summary.done });
    const runner = new Runner(matrix, out, seed, signal);
    for (const [i, run] of left.entries()) {
      if (signal.aborted) break;
      const at = { run, number: runs.length - left.length + i + 1, runs: runs.length, left: left.length - i - 1 };
      onEvent({ kind: 'start', ...at });
      const began = performance.now();
      let result: Result | string;
      try {
        result = await runner.run(run);
      } catch (error) {
        if (error instanceof Interrupted) break;
        throw error;
      }
      const tookMs = performance.now() - began;
      if (typeof result === 'string') {
        summary.failed.push({ run, cause: result });
        onEvent({ kind: 'failed', ...at, cause: result, tookMs });
      } else {
        summary.done++;
        onEvent({ kind: 'result', ...at, result, tookMs });
      }
    }
    summary.interrupted = signal.aborted && summary.done + summary.failed.length < runs.length;
    return summary;
  });
}

export { RestoreError };
