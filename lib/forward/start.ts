import { Control } from '../threads/control.js';
import { UsageError } from '../text/errors.js';
import { parsePortSpec } from '../names/portspec.js';
import { settingsOf, type SomeSettings } from './settings.js';
import { COUNTERS } from './counters.js';
import { checkProgram } from '../programs/load.js';
import { COUNTERS_MAX } from '../programs/program.js';
import { startThread, type RunningThread } from '../threads/thread.js';
import { countersIn, type Ended, type Opened, type PortCounters, type WorkerJob } from './bridge-job.js';

/** What startBridge() may be told; every setting has the default of the `bridge` tool. */
export interface StartOptions extends SomeSettings {
  /** Called with what a person should know while the bridge runs. */
  onSay?: (sentence: string) => void;
}

/** A bridge that runs in a thread of its own. */
export interface RunningBridge extends Omit<RunningThread<Opened, PortCounters[], Ended>, 'report'> {
  /** Counters a→b and b→a, readable at any time while the thread runs and after. */
  readonly counters: readonly [Float64Array, Float64Array];
  /** How far the run is, readable as they are: see lib/threads/control.ts. */
  readonly run: Float64Array;
  /** The programs' named counters now, once the bridge has opened. */
  programs(): Record<string, number>;
  /** Each port's own statistics now. Resolves with the final ones when the bridge ends meanwhile. */
  stats(): Promise<PortCounters[]>;
}

/**
 * Bridges two ports, or one port and its host stack, in a worker thread.
 * @throws UsageError when a port name says nothing, or an option is not what StartOptions says
 */
export function startBridge(names: readonly string[], options: StartOptions = {}): RunningBridge {
  if (names.length < 1 || names.length > 2)
    throw new UsageError(`a bridge joins one or two ports; ${names.length} given`);
  for (const name of names) parsePortSpec(name);
  const counters = new SharedArrayBuffer(2 * COUNTERS * Float64Array.BYTES_PER_ELEMENT);
  const programCounters = new SharedArrayBuffer(COUNTERS_MAX * Float64Array.BYTES_PER_ELEMENT);
  const settings = settingsOf(options);
  settings.programs.forEach(checkProgram);
  if (settings.third !== undefined) parsePortSpec(settings.third);
  const job: WorkerJob = { counters, programCounters, names, ...settings };
  let cells: readonly string[] = [];
  const control = new Control();
  const { report, ...thread } = startThread<Opened, PortCounters[], Ended>(
    {
      url: new URL('./bridge-worker.js', import.meta.url),
      name: 'forward',
      job,
      last: ({ stats }) => stats,
      ports: ({ ports }) => ports,
      onSay: options.onSay,
    },
    control,
  );
  void thread.opened.then(
    (opened) => (cells = opened.programCounters),
    () => undefined,
  );
  const values = new Float64Array(programCounters);
  const programs = (): Record<string, number> => Object.fromEntries(cells.map((name, i) => [name, values[i]]));
  return { ...thread, counters: countersIn(counters), run: control.run, stats: report, programs };
}
