import { LATEST_NS, LONGEST_GAP_NS, STARTED_NS } from '../../threads/control.js';
import { now } from '../../shim/native.js';
import { startBridge, type RunningBridge } from '../../forward/start.js';
import type { Opened } from '../../forward/bridge-job.js';
import { BRIDGE_HELP, parseBridge, type BridgeCommand } from './bridge-options.js';
import { interfaceCounts } from './balance.js';
import { EXIT } from '../exit.js';
import type { Output } from '../output.js';
import type { Stop } from '../signals.js';
import {
  countersJson,
  directionNames,
  intervalText,
  openedJson,
  openedText,
  programsText,
  summaryText,
  type Flow,
} from './summary.js';
import { onVirtualClock, portStatsText, type PortStats } from '../port-text.js';
import { portTool, untilEnded } from '../port-tool.js';
import { traffic } from '../traffic.js';

/** The tool. */
export const bridge = portTool('bridge', BRIDGE_HELP, parseBridge, ({ ports }) => ports, run);

/** Bridges until a signal, a limit or the end of the sources. Returns the exit code; throws what failed. */
async function run(command: BridgeCommand, output: Output, stop: Stop): Promise<number> {
  const bridge = startBridge(command.ports, {
    ...command.settings,
    onSay: (sentence) => {
      output.say(sentence);
    },
  });
  stop.onWish(() => {
    bridge.stop();
  });
  const timed = !onVirtualClock(command.ports);
  const opened = await bridge.opened;
  output.text(openedText(opened, command.verbose));
  output.json({ type: 'open', ...openedJson(opened) });
  await bridge.running;
  const interval = new Intervals(opened, bridge, timed, command.verbose);
  const { ended, failure } = await untilEnded(bridge, command.statsSeconds ?? 0, async (stopped) => {
    const stats = await bridge.stats();
    if (!stopped()) interval.print(stats, output);
  });
  const { reason, stats, outside, problems } = ended;
  const { counters, run } = bridge;
  // A bridge that fails early has not come to read the clock: its time is unknown, not 0.
  const seconds = run[LATEST_NS] > 0 ? (run[LATEST_NS] - run[STARTED_NS]) / 1e9 : null;
  const zero = new Float64Array(counters[0].length);
  const flows = opened.directions.map((direction) => {
    const flowed = traffic(zero, counters[direction.index], seconds, timed);
    return {
      ...directionNames(opened, direction),
      ...flowed,
      ...interfaceCounts(flowed, outside[direction.index], outside[1 - direction.index]),
    };
  });
  const ports = portStats(opened, stats);
  const longestGapNs = timed && run[LONGEST_GAP_NS] > 0 ? run[LONGEST_GAP_NS] : undefined;
  const programs = bridge.programs();
  const counted = countersJson(programs);
  const summary = { type: 'summary', reason, seconds, longestGapNs, directions: flows, ports, ...counted, problems };
  output.result(summaryText(seconds, longestGapNs, flows, ports, command.verbose) + programsText(programs), summary);
  for (const problem of problems) output.error(`bridge: ${problem}\n`);
  if (failure !== undefined) throw failure;
  return problems.length > 0 ? EXIT.failed : EXIT.ok;
}

function portStats({ ports }: Opened, stats: readonly Record<string, number>[]): PortStats[] {
  return ports.map(({ name }, i) => ({ name, stats: stats[i] }));
}

/** Statistics since the last time they were printed. */
class Intervals {
  readonly #opened: Opened;
  readonly #bridge: RunningBridge;
  #at: number;
  #counters: Float64Array[];
  #stats: Record<string, number>[];
  #programs: Record<string, number> = {};

  constructor(
    opened: Opened,
    bridge: RunningBridge,
    readonly timed: boolean,
    readonly verbose: number,
  ) {
    this.#opened = opened;
    this.#bridge = bridge;
    this.#at = 0;
    this.#counters = bridge.counters.map((counters) => new Float64Array(counters.length));
    this.#stats = opened.ports.map(() => ({}));
  }

  print(stats: Record<string, number>[], output: Output): void {
    const at = now();
    const counters = this.#bridge.counters.map((live) => live.slice());
    const started = this.#bridge.run[STARTED_NS];
    if (started === 0) return;
    const intervalSeconds = (at - (this.#at || started)) / 1e9;
    const seconds = (at - started) / 1e9;
    const flows: Flow[] = this.#opened.directions.map((direction) => {
      const { index } = direction;
      return {
        ...directionNames(this.#opened, direction),
        ...traffic(this.#counters[index], counters[index], intervalSeconds, this.timed),
      };
    });
    const ports = portStats(
      this.#opened,
      stats.map((after, i) => deltas(this.#stats[i], after)),
    );
    for (const flow of flows) output.text(intervalText(seconds, flow));
    for (const port of ports) output.text(portStatsText(this.verbose > 0 ? port : lossesOf(port)));
    const programs = deltas(this.#programs, this.#bridge.programs());
    output.text(programsText(programs));
    output.json({ type: 'stats', seconds, intervalSeconds, directions: flows, ports, ...countersJson(programs) });
    this.#programs = this.#bridge.programs();
    this.#at = at;
    this.#counters = counters;
    this.#stats = stats;
  }
}

/** What each counter grew by; what is no count but an extreme (`longestGapNs`) stays as it is. */
function deltas(before: Record<string, number>, after: Record<string, number>): Record<string, number> {
  return Object.fromEntries(
    Object.entries(after).map(([key, value]) => [key, key.endsWith('Ns') ? value : value - (before[key] ?? 0)]),
  );
}

/** Those of a port's counters that tell of frames that came to nothing. */
function lossesOf({ name, stats }: PortStats): PortStats {
  const losses = Object.entries(stats).filter(([key]) => /miss|drop|lost|full|refused|unwritten/i.test(key));
  return { name, stats: Object.fromEntries(losses) };
}
