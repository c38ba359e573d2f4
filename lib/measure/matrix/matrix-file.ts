/** Matrix files: docs/matrix.md is the schema in words. */
import { createHash } from 'node:crypto';
import { readText } from '../results/files.js';
import { JsonAt } from '../../text/json-at.js';
import { placeholders, splitWords, type Words } from './matrix-command.js';
import { OFFLOADS, type DeviceSettings } from './matrix-device.js';
import { parseSource, type Reading } from './matrix-read.js';
import { checkTrialSetting, isTrialSetting, TRIAL_SETTING_NAMES, type Scalar } from './matrix-trial.js';
import type { Metric } from '../results/result.js';
import { isMetric } from '../results/results.js';
import { DEFAULT_PORTS } from '../trial/setup.js';

/** A setting given as commands, placeholders not yet filled in. */
export interface CommandSetting {
  apply: readonly Words[];
  undo: readonly Words[];
  /** Prints what is set. Its output stands for {was} in `undo`, and must be the same after it. */
  read?: Words;
}

/** One value of an axis. */
export interface AxisValue {
  label: Scalar;
  /** What the tool itself sets on every interface. */
  device?: DeviceSettings;
  commands?: CommandSetting;
  /** What the placeholder of the axis stands for; the label if absent. */
  words?: readonly string[];
}

export interface Axis {
  name: string;
  /** Whether its labels are settings of the cell's trial. */
  trial: boolean;
  values: readonly AxisValue[];
}

export interface CommandCell {
  command: Words;
  reading: Reading;
  units?: Record<string, Metric>;
  timeoutSeconds: number;
}

export interface TrialCell {
  ports: readonly [string, string];
  /** Settings that are the same in every cell. */
  settings: ReadonlyMap<string, Scalar>;
}

export interface Matrix {
  file: string;
  name: string;
  repeats: number;
  /** Length of a run: of a trial, and what {seconds} stands for in commands. */
  seconds: number;
  /** Seconds between applying settings and measuring. */
  settleSeconds: number;
  /** Longest time for a command that applies, undoes or reads a setting. */
  timeoutSeconds: number;
  seed?: number;
  interfaces: readonly string[];
  axes: readonly Axis[];
  cell: CommandCell | TrialCell;
  /** SHA-256 of what decides the results: all of the file but `repeats` and `seed`. */
  digest: string;
}

const SECONDS = { trial: 2, timeout: 30, command: 60 };
const DAY = 86_400;
const DEVICE_SETTINGS = ['mtu', 'slots', 'itr', ...Object.keys(OFFLOADS)];
/** Placeholders that are not axes. */
const RESERVED = ['seconds', 'repeat', 'value', 'was', 'if', 'netns'];

function command(at: JsonAt): Words {
  if (typeof at.value === 'string') return at.read(() => splitWords(at.value as string));
  const what = 'a command, as one string or as a list of words';
  const words = at.items(what).map((item) => {
    return typeof item.value === 'string' ? item.value : item.fail(`expected a word, got ${item.shown}`);
  });
  return words[0] === '' ? at.fail('expected the name of a program first') : words;
}

/** One command, or a list of them: a list whose items are lists or hold white space. */
function commands(at: JsonAt): readonly Words[] {
  const { value } = at;
  const several = Array.isArray(value) && value.every((item) => Array.isArray(item) || /\s/.test(String(item)));
  return several && value.length > 0 ? at.items('commands').map(command) : [command(at)];
}

function onOff(at: JsonAt): boolean {
  if (at.value === true || at.value === 'on') return true;
  if (at.value === false || at.value === 'off') return false;
  return at.fail(`expected on or off, got ${at.shown}`);
}

function microseconds(at: JsonAt): number {
  if (typeof at.value !== 'string') return at.integer('µs between receive interrupts', 0, 1_000_000);
  const [, digits] = /^(\d+)us$/.exec(at.value) ?? at.fail(`expected whole µs such as "124us" or 124, got ${at.shown}`);
  return Number(digits);
}

/** One setting of an interface, by name. */
function deviceSetting(name: string, at: JsonAt): DeviceSettings {
  if (name === 'mtu') return { mtu: at.integer('an MTU in bytes', 68, 65_535) };
  if (name === 'slots') return { slots: at.integer('slots of a ring', 1, 1 << 20) };
  if (name === 'itr') return { itr: microseconds(at) };
  return { features: { [name]: onOff(at) } };
}

function mergeDevice(settings: readonly DeviceSettings[]): DeviceSettings {
  const features = Object.assign({}, ...settings.map((one) => one.features ?? {})) as Record<string, boolean>;
  return Object.assign({}, ...settings, Object.keys(features).length > 0 ? { features } : {}) as DeviceSettings;
}

function deviceSettings(at: JsonAt): DeviceSettings {
  at.only(...DEVICE_SETTINGS);
  return mergeDevice(at.entries('settings').map(([name, value]) => deviceSetting(name, value)));
}

function commandSetting(at: JsonAt): CommandSetting | undefined {
  const [apply, undo, read] = [at.get('apply'), at.get('undo'), at.get('read')];
  if (apply.missing && undo.missing && read.missing) return undefined;
  if (apply.missing) apply.fail('it is missing: the command that applies this setting is needed beside undo or read');
  if (undo.missing)
    undo.fail('it is missing: the command that puts the setting back is needed; {was} in it is what "read" printed');
  return { apply: commands(apply), undo: commands(undo), ...(!read.missing && { read: command(read) }) };
}

function wordList(at: JsonAt): string[] {
  const { value } = at;
  const isWords = Array.isArray(value) && value.every((word): word is string => typeof word === 'string');
  return isWords ? value : at.fail(`expected a list of words, got ${at.shown}`);
}

class Reader {
  readonly root: JsonAt;

  constructor(
    readonly file: string,
    text: string,
  ) {
    this.root = JsonAt.parse(file, text);
  }

  matrix(): Matrix {
    const { root } = this;
    root.only(
      'name',
      'repeats',
      'seconds',
      'settle',
      'timeout',
      'seed',
      'interfaces',
      'ports',
      'axes',
      'cell',
      'about',
    );
    const optional = <T>(key: string, read: (at: JsonAt) => T, otherwise: T): T =>
      root.get(key).missing ? otherwise : read(root.get(key));
    const seconds = optional('seconds', (at) => at.number('seconds', 0.001, DAY), SECONDS.trial);
    const interfaces = optional('interfaces', (at) => this.interfaces(at), []);
    const cell = this.cell(root.get('cell'), seconds);
    const axes = this.axes(root.get('axes'), cell, interfaces);
    this.checkUse(axes, cell, interfaces);
    const seed = optional<number | undefined>('seed', (at) => at.integer('a seed', 0, 0xffffffff), undefined);
    return {
      file: this.file,
      name: root.get('name').string('a name for the matrix'),
      repeats: optional('repeats', (at) => at.integer('repeats of each cell', 1, 10_000), 1),
      seconds,
      settleSeconds: optional('settle', (at) => at.number('seconds', 0, DAY), 0),
      timeoutSeconds: optional('timeout', (at) => at.number('seconds', 0.1, DAY), SECONDS.timeout),
      ...(seed !== undefined && { seed }),
      interfaces,
      axes,
      cell,
      digest: this.digest(),
    };
  }

  digest(): string {
    const own = { ...(this.root.value as Record<string, unknown>) };
    for (const key of ['repeats', 'seed', 'about']) Reflect.deleteProperty(own, key);
    return createHash('sha256').update(JSON.stringify(own)).digest('hex');
  }

  interfaces(at: JsonAt): string[] {
    return at.items('a list of interfaces such as "eth0", or "lab/eth0" in the namespace lab').map((item) => {
      const name = item.string('the name of an interface');
      return /^([^/\s]+\/)?[^/\s]+$/.test(name) ? name : item.fail(`expected IF or NAMESPACE/IF, got ${item.shown}`);
    });
  }

  cell(at: JsonAt, seconds: number): CommandCell | TrialCell {
    if (at.missing) at.fail('it is missing; expected {"trial": {…}} or {"command": …, "read": …}');
    at.only('trial', 'command', 'read', 'units', 'timeout');
    const [trial, run] = [at.get('trial'), at.get('command')];
    const ports = this.root.get('ports');
    if (trial.missing === run.missing) at.fail('expected one of trial and command');
    if (!trial.missing) {
      for (const key of ['read', 'units', 'timeout'])
        if (!at.get(key).missing) at.get(key).fail('a trial has no use for it: it goes with command');
      return this.trialCell(trial, ports);
    }
    if (!ports.missing) ports.fail('only a trial has use for ports: name them in cell.command');
    const words = command(run);
    const reading = this.reading(at.get('read'));
    if (reading === 'iperf3' && words.includes('iperf3') && !words.includes('--json') && !words.includes('-J'))
      run.fail('iperf3 needs the option --json for its result to be read');
    const units = at.get('units');
    const timeout = at.get('timeout');
    return {
      command: words,
      reading,
      ...(!units.missing && { units: this.units(units) }),
      timeoutSeconds: timeout.missing ? SECONDS.command + 3 * seconds : timeout.number('seconds', 0.1, DAY),
    };
  }

  trialCell(at: JsonAt, ports: JsonAt): TrialCell {
    at.only(...TRIAL_SETTING_NAMES);
    const settings = at.entries('settings').map(([name, value]): [string, Scalar] => {
      const scalar = value.scalar('a value');
      value.read(() => {
        checkTrialSetting(name, scalar);
      });
      return [name, scalar];
    });
    if (ports.missing) return { ports: DEFAULT_PORTS, settings: new Map(settings) };
    const names = ports.items('two ports').map((item) => item.string('the name of a port'));
    if (names.length !== 2) ports.fail(`expected two ports, got ${names.length}`);
    return { ports: [names[0], names[1]], settings: new Map(settings) };
  }

  reading(at: JsonAt): Reading {
    if (at.value === 'iperf3' || at.value === 'results') return at.value;
    if (!at.isObject)
      return at.fail(
        `expected "iperf3", "results" (of measure --json), or an object from metrics to where they are found, such as ` +
          `{"mpps": "json:rate.mpps"}; got ${at.shown}`,
      );
    const sources = at.entries('metrics').map(([metric, value]) => {
      return [metric, value.read(() => parseSource(value.string('a source')))] as const;
    });
    return sources.length === 0 ? at.fail('expected at least one metric') : new Map(sources);
  }

  units(at: JsonAt): Record<string, Metric> {
    const pairs = at.entries('units by metric').map(([metric, one]) => {
      const { value } = one;
      return isMetric(value)
        ? ([metric, value] as const)
        : one.fail('expected {"unit": …, "better": "higher" or "lower"}');
    });
    return Object.fromEntries(pairs);
  }

  axes(at: JsonAt, cell: CommandCell | TrialCell, interfaces: readonly string[]): Axis[] {
    if (at.missing) at.fail('it is missing; expected an object from axes to their values');
    const axes = at.entries('an object from axes to their values').map(([name, value]) => {
      if (RESERVED.includes(name) || !/^[^{}\s=]+$/.test(name))
        value.fail(`an axis cannot have this name; ${RESERVED.join(', ')} and braces have a meaning of their own`);
      return this.axis(name, value, 'settings' in cell, interfaces);
    });
    return axes.length === 0 ? at.fail('expected at least one axis') : axes;
  }

  axis(name: string, at: JsonAt, trialCell: boolean, interfaces: readonly string[]): Axis {
    const trial = trialCell && isTrialSetting(name);
    const device = !trial && interfaces.length > 0 && DEVICE_SETTINGS.includes(name);
    const shared = at.isObject && Array.isArray(at.get('values').value);
    if (shared) at.only('values', 'apply', 'undo', 'read');
    const setting = shared ? commandSetting(at) : undefined;
    const list = shared ? at.get('values') : at;
    const values = Array.isArray(list.value)
      ? list.items('values').map((item): AxisValue => {
          const label = item.scalar('a string, a number, true or false');
          if (trial)
            item.read(() => {
              checkTrialSetting(name, label);
            });
          return {
            label,
            ...(device && !setting && { device: deviceSetting(name, item) }),
            ...(setting && { commands: setting }),
          };
        })
      : this.labelled(list, interfaces);
    const labels = values.map(({ label }) => String(label));
    const twice = labels.find((label, i) => labels.indexOf(label) !== i);
    if (values.length === 0) at.fail('expected at least one value');
    if (twice !== undefined) at.fail(`the value ${twice} is there twice`);
    return { name, trial: trial && Array.isArray(list.value), values };
  }

  labelled(at: JsonAt, interfaces: readonly string[]): AxisValue[] {
    const what = 'a list of values, or an object from labels to settings';
    return at.entries(what).map(([label, value]): AxisValue => {
      value.only('set', 'apply', 'undo', 'read', 'words');
      const [set, words] = [value.get('set'), value.get('words')];
      if (!set.missing && interfaces.length === 0)
        set.fail('there are no interfaces to set it on: name them in "interfaces"');
      const setting = commandSetting(value);
      return {
        label,
        ...(!set.missing && { device: deviceSettings(set) }),
        ...(setting && { commands: setting }),
        ...(!words.missing && { words: wordList(words) }),
      };
    });
  }

  /** Refuses an axis that changes nothing: its cells would differ in name alone. */
  checkUse(axes: readonly Axis[], cell: CommandCell | TrialCell, interfaces: readonly string[]): void {
    const settings = axes.flatMap(({ values }) => values.flatMap((value) => value.commands ?? []));
    const lines = settings.flatMap(({ apply }) => [...apply]);
    if ('command' in cell) lines.push(cell.command);
    const used = new Set(lines.flatMap(placeholders));
    for (const { name, trial, values } of axes) {
      const does = trial || used.has(name) || values.some((value) => value.device ?? value.commands);
      if (does) continue;
      const advice =
        'settings' in cell
          ? `settings of a trial are ${TRIAL_SETTING_NAMES.join(', ')}; any other needs commands to apply and to undo it`
          : `put {${name}} into cell.command, or give commands to apply and to undo it` +
            (DEVICE_SETTINGS.includes(name) && interfaces.length === 0 ? ', or name "interfaces" to set it on' : '');
      this.root.get('axes').get(name).fail(`nothing uses it: ${advice}`);
    }
  }
}

/**
 * Reads a matrix from JSON text.
 * @throws UsageError that names `file` and the path of what is wrong in it
 */
export function parseMatrix(text: string, file: string): Matrix {
  return new Reader(file, text).matrix();
}

/** What is said of a file that cannot be read. */
export const MATRIX_FILE = 'a matrix file (docs/matrix.md)';

/** Reads a matrix file. @throws UsageError */
export function readMatrix(file: string): Matrix {
  return parseMatrix(readText(file, MATRIX_FILE), file);
}
