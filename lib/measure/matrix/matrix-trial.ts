/** A cell of a matrix that runs our own trial: settings by name, and what came out as metrics. */
import { UsageError } from '../../text/errors.js';
import { formatPortSpec, parsePortSpec, type SimSpec } from '../../names/portspec.js';
import { BURST, CPU, within, type Range } from '../../text/units.js';
import type { Measured } from './measured.js';
import {
  benchTrial,
  costMetrics,
  lossOf,
  machineMetrics,
  noteOf,
  threadMetrics,
  unexplainedRemarks,
  waitNote,
  type BenchTrial,
} from '../trial/bench.js';
import { DEFAULT_WAIT } from '../trial/setup.js';
import { Interrupted, runTrial, type TrialOptions } from '../trial/trial.js';

export type Scalar = string | number | boolean;

/** Settings that are options of the simulated ports, by the names they have in a port name. */
const PORT_SETTINGS = [
  ...(['size', 'slots', 'rings', 'itr', 'txtimer', 'rate', 'load', 'frags', 'skip', 'budget'] as const),
  ...(['drop', 'wedge', 'flap', 'clock', 'step', 'buf'] as const),
];
type PortSetting = (typeof PORT_SETTINGS)[number];

/** One cell's trial. */
export interface TrialPlan {
  options: TrialOptions;
  /** Forwarding threads, each with a pair of rings of its own and its share of the offered load. */
  workers: number;
}

function oneOf<T>(words: ReadonlyMap<string, T>): (value: Scalar) => T {
  return (value) => {
    const found = words.get(String(value));
    if (found === undefined) throw new UsageError(`${String(value)}: expected ${[...words.keys()].join(', ')}`);
    return found;
  };
}

const WORKERS: Range = { what: 'workers', min: 1, max: 64 };
const count =
  (range: Range) =>
  (value: Scalar): number =>
    within(range)(String(value));

const copy = oneOf(
  new Map([
    ['true', true],
    ['false', false],
    ['copy', true],
    ['zero-copy', false],
  ]),
);
const direction = oneOf(
  new Map([
    ['both', 'both'],
    ['a→b', 'forth'],
    ['a->b', 'forth'],
    ['b→a', 'back'],
    ['b->a', 'back'],
  ]),
);
const wait = oneOf(
  new Map([
    ['busy', 'busy'],
    ['poll', 'poll'],
  ] as const),
);

const TRIAL_SETTINGS: Readonly<Record<string, (value: Scalar) => unknown>> = {
  burst: count(BURST),
  workers: count(WORKERS),
  cpu: count(CPU),
  copy,
  direction,
  wait,
  warmup: (value) => {
    if (typeof value !== 'number' || !(value >= 0 && value <= 3600))
      throw new UsageError(`${String(value)}: expected seconds, 0 to 3600`);
    return value;
  },
};

export const isTrialSetting = (name: string): boolean =>
  Object.hasOwn(TRIAL_SETTINGS, name) || (PORT_SETTINGS as readonly string[]).includes(name);

export const TRIAL_SETTING_NAMES: readonly string[] = [...PORT_SETTINGS, ...Object.keys(TRIAL_SETTINGS)];

/** @throws UsageError when a setting cannot have this value */
export function checkTrialSetting(name: string, value: Scalar): void {
  if (Object.hasOwn(TRIAL_SETTINGS, name)) TRIAL_SETTINGS[name](value);
  else parsePortSpec(`sim:a@${name}=${String(value)}`);
}

function port(name: string, settings: ReadonlyMap<string, Scalar>, workers: number): string {
  const spec = parsePortSpec(name);
  if (spec.kind !== 'sim')
    throw new UsageError(
      `${name}: a trial runs on simulated ports (sim:NAME@…); measure other ports with a command, such as ` +
        '"measure throughput -i A -i B --tx G --rx S --json" and "read": "results"',
    );
  const given = PORT_SETTINGS.filter((key) => settings.has(key));
  const pairs = given.map((key) => `${key}=${String(settings.get(key))}`);
  const said = pairs.length === 0 ? undefined : (parsePortSpec(`sim:a@${pairs.join(',')}`) as SimSpec);
  const own = said && (Object.fromEntries(given.map((key) => [key, said[key]])) as Partial<Pick<SimSpec, PortSetting>>);
  const whole = { ...spec, ...own };
  const text = formatPortSpec({ ...whole, load: whole.load / workers });
  parsePortSpec(text); // options that are right by themselves may not go together
  return text;
}

/**
 * The trial that settings ask for.
 * @throws UsageError when they do not go together
 */
export function planTrial(
  ports: readonly [string, string],
  settings: ReadonlyMap<string, Scalar>,
  seconds: number,
): TrialPlan {
  const get = <T>(name: string, read: (value: Scalar) => T): T | undefined => {
    const value = settings.get(name);
    return value === undefined ? undefined : read(value);
  };
  const workers = get('workers', count(WORKERS)) ?? 1;
  const way = get('direction', direction) ?? 'both';
  const names = ports.map((name) => port(name, settings, workers)) as [string, string];
  if (way === 'back') names.reverse();
  const burst = get('burst', count(BURST));
  const copied = get('copy', copy);
  const waiting = get('wait', wait);
  const cpu = get('cpu', count(CPU));
  const warmupSeconds = get('warmup', Number);
  return {
    workers,
    options: {
      names,
      seconds,
      oneWay: way !== 'both',
      ...(burst !== undefined && { burst }),
      ...(copied !== undefined && { copy: copied }),
      ...(waiting !== undefined && { wait: waiting }),
      ...(cpu !== undefined && { cpu }),
      ...(warmupSeconds !== undefined && { warmupSeconds }),
    },
  };
}

/** What the workers' trials came to, as metrics. */
function measured(trial: BenchTrial, rate: number): Measured {
  const { cores } = trial;
  return {
    metrics: {
      mpps: trial.rate / 1e6,
      offered_mpps: trial.offered / trial.seconds / 1e6,
      loss: lossOf(trial),
      lost_frames: trial.lost,
      duplicate_frames: trial.duplicates,
      reordered_frames: trial.reordered,
      corrupt_frames: trial.corrupt,
      ...costMetrics(trial),
      ...threadMetrics(trial),
      ...machineMetrics(trial),
    },
    cores,
    ...(Number.isFinite(rate) && { link_gbps: rate / 1e9 }),
    ...noteOf(waitNote(trial), ...unexplainedRemarks([trial])),
  };
}

/** Runs the trial of a cell. Rejects when `signal` ends it early, or as runTrial() does. */
export async function runTrialPlan({ options, workers }: TrialPlan, signal: AbortSignal): Promise<Measured> {
  const { clock, rate } = parsePortSpec(options.names[0]) as SimSpec;
  const trials = await Promise.all(Array.from({ length: workers }, () => runTrial({ ...options, signal })));
  // A cell's trial is whole, or is run again.
  if (signal.aborted) throw new Interrupted();
  return measured(benchTrial(trials, clock, options.wait ?? DEFAULT_WAIT), rate);
}
