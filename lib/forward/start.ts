import { Control } from '../threads/control.js';
import { UsageError } from '../text/errors.js';
import { parsePortSpec } from '../names/portspec.js';
import { settingsOf, type SomeSettings } from './settings.js';
import { startThread, type Running } from '../threads/thread.js';
import type { Ended, Opened, PortCounters, WorkerJob } from './bridge-worker.js';

/** What startBridge() may be told; every setting has the default of the `bridge` tool. */
export interface StartOptions extends SomeSettings {
  /** Called with what a person should know while the bridge runs. */
  onSay?: (sentence: string) => void;
}

/** A bridge that runs in a thread of its own. */
export interface RunningBridge extends Omit<Running<Opened, PortCounters[], Ended>, 'report'> {
  /** Counters, readable at any time while the thread runs and after. */
  readonly control: Control;
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
  const control = new Control();
  const job: Omit<WorkerJob, 'shared'> = { names, ...settingsOf(options) };
  const { report, ...thread } = startThread<Opened, PortCounters[], Ended>({
    url: new URL('./bridge-worker.js', import.meta.url),
    name: 'forward',
    job,
    control,
    onSay: (sentence) => options.onSay?.(sentence),
    last: ({ stats }) => stats,
  });
  return { ...thread, control, stats: report };
}
