import { LATEST_NS, STARTED_NS } from '../../threads/control.js';
import { now } from '../../shim/native.js';
import { RunError } from '../../text/errors.js';
import { startBridge, type RunningBridge } from '../../forward/start.js';
import type { Ended, Opened } from '../../forward/bridge-job.js';
import { BRIDGE_HELP, parseBridge, type BridgeCommand } from './bridge-options.js';
import { interfaceCounts } from './balance.js';
import { every } from '../every.js';
import { EXIT } from '../exit.js';
import type { Output } from '../output.js';
import type { Stop } from '../signals.js';
import { directionNames, intervalText, openedJson, openedText, summaryText, type Flow } from './summary.js';
import { portStatsText, stdoutTaken, type PortStats } from '../port-text.js';
import type { Tool } from '../tool.js';
import { traffic } from '../traffic.js';
import { version } from '../version.js';

/** The tool. */
export const bridge: Tool = async (args, output, stop) => {
  const command = parseBridge(args);
  switch (command.action) {
    case 'help':
      output.text(BRIDGE_HELP);
      return EXIT.ok;
    case 'version':
      output.text(`bridge ${version()}\n`);
      return EXIT.ok;
    case 'run':
      output.asJson = command.json;
      output.stdoutTaken = stdoutTaken(command.ports);
      return run(command, output, stop);
  }
};

/** Bridges until a signal, a limit or the end of the sources. Returns the exit code; throws what failed. */
async function run(command: BridgeCommand, output: Output, stop: Stop): Promise<number> {
  const say = (sentence: string): void => {
    output.json({ type: 'say', sentence });
    if (!command.json) output.error(`${sentence}\n`);
  };
  const bridge = startBridge(command.ports, { ...command.settings, onSay: say });
  stop.onWish(() => {
    bridge.stop();
  });
  let stopStats = (): void => undefined;
  try {
    const opened = await bridge.opened;
    output.text(openedText(opened, command.verbose));
    output.json({ type: 'open', ...openedJson(opened) });
    await bridge.running;
    const { statsSeconds } = command;
    if (statsSeconds !== undefined) {
      const interval = new Intervals(opened, bridge, command.verbose);
      stopStats = every(statsSeconds, async (stopped) => {
        const stats = await bridge.stats();
        if (!stopped()) interval.print(stats, output);
      });
    }
    const ended = await bridge.ended.catch((error: unknown) => {
      if (error instanceof RunError) return error as RunError<Ended>;
      throw error;
    });
    stopStats();
    // A bridge that failed has forwarded all the same.
    const { reason, stats, outside, problems } = ended instanceof RunError ? ended.ended : ended;
    const { counters, run } = bridge;
    // A bridge that fails early has not come to read the clock: its time is unknown, not 0.
    const seconds = run[LATEST_NS] > 0 ? (run[LATEST_NS] - run[STARTED_NS]) / 1e9 : null;
    const zero = new Float64Array(counters[0].length);
    const flows = opened.directions.map((direction) => {
      const flowed = traffic(zero, counters[direction.index], seconds);
      return {
        ...directionNames(opened, direction),
        ...flowed,
        ...interfaceCounts(flowed, outside[direction.from], outside[direction.to]),
      };
    });
    const ports = portStats(opened, stats);
    const summary = { type: 'summary', reason, seconds, directions: flows, ports, problems };
    output.result(summaryText(seconds, flows, ports, command.verbose), summary);
    for (const problem of problems) output.error(`bridge: ${problem}\n`);
    if (ended instanceof RunError) throw ended;
    return problems.length > 0 ? EXIT.failed : EXIT.ok;
  } finally {
    stopStats();
  }
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

  constructor(
    opened: Opened,
    bridge: RunningBridge,
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
        ...traffic(this.#counters[index], counters[index], intervalSeconds),
      };
    });
    const ports = portStats(
      this.#opened,
      stats.map((after, i) => deltas(this.#stats[i], after)),
    );
    for (const flow of flows) output.text(intervalText(seconds, flow));
    for (const port of ports) output.text(portStatsText(this.verbose > 0 ? port : lossesOf(port)));
    output.json({ type: 'stats', seconds, intervalSeconds, directions: flows, ports });
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
