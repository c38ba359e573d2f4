/** One run of a matrix with every placeholder filled in. */
import { UsageError } from '../../text/errors.js';
import { splitInterface } from './inspect.js';
import { fill, placeholders, type Fillings, type Words } from './matrix-command.js';
import type { DeviceSettings } from './matrix-device.js';
import type { AxisValue, CommandSetting, Matrix } from './matrix-file.js';
import { product, shuffled } from './matrix-order.js';
import { planTrial, type Scalar, type TrialPlan } from './matrix-trial.js';
import { type Cell, cellKey } from '../results/result.js';

/** A setting given as commands. */
export interface CommandStep {
  axis: string;
  apply: readonly Words[];
  /** `{was}` in it is filled in when the setting was read. */
  undo: readonly Words[];
  read?: Words;
}

/** What one run does. */
export interface RunPlan {
  cell: Cell;
  /** The cell as text, for people and for finding it again. */
  key: string;
  repeat: number;
  /** Set on every interface before the steps. */
  device?: DeviceSettings;
  steps: readonly CommandStep[];
  run: { command: Words } | { trial: TrialPlan };
}

function deviceOf(chosen: readonly { name: string; value: AxisValue }[]): DeviceSettings | undefined {
  const owners = new Map<string, string>();
  const features: Record<string, boolean> = {};
  let merged: DeviceSettings | undefined;
  for (const { name, value } of chosen) {
    if (!value.device) continue;
    const { features: more = {}, ...others } = value.device;
    for (const key of [...Object.keys(others), ...Object.keys(more)]) {
      const owner = owners.get(key);
      if (owner !== undefined) throw new UsageError(`axes.${owner} and axes.${name} both set ${key}: keep one of them`);
      owners.set(key, name);
    }
    Object.assign(features, more);
    merged = { ...merged, ...others };
  }
  return merged && { ...merged, ...(Object.keys(features).length > 0 && { features }) };
}

function steps(
  axis: string,
  setting: CommandSetting,
  fillings: Fillings,
  interfaces: readonly string[],
): CommandStep[] {
  const all = [...setting.apply, ...setting.undo, ...(setting.read ? [setting.read] : [])];
  const perInterface = all.flatMap(placeholders).some((name) => name === 'if' || name === 'netns');
  if (perInterface && interfaces.length === 0)
    throw new UsageError('{if} stands for nothing: name the interfaces in "interfaces"');
  const undoing = setting.read ? { ...fillings, was: '{was}' } : fillings;
  const places = perInterface ? interfaces.map(splitInterface) : [undefined];
  return places.map((place) => {
    const own = place && { if: place.ifname, netns: place.netns };
    return {
      axis,
      apply: setting.apply.map((words) => fill(words, { ...fillings, ...own })),
      undo: setting.undo.map((words) => fill(words, { ...undoing, ...own })),
      ...(setting.read && { read: fill(setting.read, { ...fillings, ...own }) }),
    };
  });
}

/** One run of the cell whose value on each axis has the index given. */
function planRun(matrix: Matrix, indexes: readonly number[], repeat: number): RunPlan {
  const chosen = matrix.axes.map((axis, i) => ({ name: axis.name, trial: axis.trial, value: axis.values[indexes[i]] }));
  const cell: Cell = Object.fromEntries(chosen.map(({ name, value }) => [name, value.label]));
  const key = cellKey(cell);
  const where = (path: string, body: () => RunPlan): RunPlan => {
    try {
      return body();
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      throw new UsageError(`${matrix.file}: ${path} (in the cell ${key}): ${error.message}`);
    }
  };
  const words = chosen.map(({ name, value }): [string, string | readonly string[]] => {
    return [name, value.words ?? String(value.label)];
  });
  const fillings: Fillings = {
    ...Object.fromEntries(words),
    seconds: String(matrix.seconds),
    repeat: String(repeat),
  };
  return where('axes', () => {
    const device = deviceOf(chosen);
    const all = chosen.flatMap(({ name, value }) => {
      if (!value.commands) return [];
      return steps(name, value.commands, { ...fillings, value: String(value.label) }, matrix.interfaces);
    });
    const plan = { cell, key, repeat, steps: all, ...(device && { device }) };
    const { cell: what } = matrix;
    if ('command' in what)
      return where('cell.command', () => ({ ...plan, run: { command: fill(what.command, fillings) } }));
    const own = chosen.filter(({ trial }) => trial).map(({ name, value }): [string, Scalar] => [name, value.label]);
    return where('cell.trial', () => {
      const settings = new Map([...what.settings, ...own]);
      return { ...plan, run: { trial: planTrial(what.ports, settings, matrix.seconds) } };
    });
  });
}

/** More runs than anyone waits for. */
const MAX_RUNS = 1_000_000;

/**
 * All runs in their order: repeat after repeat, and within each all cells shuffled anew. What drifts while a matrix runs
 * then meets every cell alike (a randomised complete block design), and an interrupted matrix has as many repeats of each
 * cell as of any other, or one more.
 * @throws UsageError when a cell cannot be run as it is written
 */
export function planRuns(matrix: Matrix, seed: number): RunPlan[] {
  const lengths = matrix.axes.map(({ values }) => values.length);
  const count = lengths.reduce((all, length) => all * length, matrix.repeats);
  if (count > MAX_RUNS)
    throw new UsageError(`${matrix.file}: ${count} runs: the axes have too many values; at most ${MAX_RUNS} are run`);
  const cells = product(lengths);
  return Array.from({ length: matrix.repeats }, (_, repeat) =>
    shuffled(cells.length, seed, repeat).map((index) => planRun(matrix, cells[index], repeat)),
  ).flat();
}
