/** The forwarding thread: opens the ports, waits for their links, runs the loop, and tells the main thread. */
import { workerData } from 'node:worker_threads';
import { endpoints } from '../ports/choose.js';
import { Bridge, hostSide, nicSide } from './bridge.js';
import { Control } from '../threads/control.js';
import { UsageError } from '../text/errors.js';
import { runLoop, type EndReason } from './loop.js';
import { openPorts } from '../ports/open.js';
import type { Port } from '../ports/port.js';
import { portInfo, type PortInfo } from '../ports/port-info.js';
import { Failed, pin, serve, statsLeft, waitForLinks } from '../threads/serve.js';
import type { ThreadMessage } from '../threads/thread.js';
import type { BridgeSettings } from './settings.js';

/** What the main thread asks for; plain data. */
export interface WorkerJob extends BridgeSettings {
  shared: SharedArrayBuffer;
  /** Two port names; or one, or the same twice: that port and its host stack. */
  names: readonly string[];
}

/** A direction in which frames can flow. */
export interface DirectionInfo {
  /** Index of its counters in Control.counters. */
  index: 0 | 1;
  /** Indices into the ports. */
  from: number;
  to: number;
  /** Numbers of the rings that are joined: rx, tx. */
  rings: [number, number][];
}

/** What was opened. */
export interface Opened {
  ports: PortInfo[];
  /** Why frames are copied; undefined: every pair of rings exchanges buffers. */
  whyCopy: string | undefined;
  directions: DirectionInfo[];
}

/** A port's own statistics, by name. */
export type PortCounters = Record<string, number>;

export interface Ended {
  reason: EndReason | 'failed';
  /** Each port's own statistics, in the order in which they were opened. */
  stats: PortCounters[];
  /** What was wrong with a source when it ended, such as a truncated capture file; a sentence each. */
  problems: string[];
}

/** Closes every port, whatever closing one of them throws. */
function closeAll(ports: readonly Port[]): void {
  const [first, ...rest] = ports;
  if ((first as Port | undefined) === undefined) return;
  try {
    first.close();
  } finally {
    closeAll(rest);
  }
}

function flows({ a, b, pairs }: Bridge, ports: readonly Port[]): DirectionInfo[] {
  const sides = [ports.indexOf(a.port), ports.indexOf(b.port)];
  return ([0, 1] as const)
    .filter((index) => pairs[index].length > 0)
    .map((index) => ({
      index,
      from: sides[index],
      to: sides[1 - index],
      rings: pairs[index].map(({ rx, tx }): [number, number] => [rx.id, tx.id]),
    }));
}

function work(
  job: WorkerJob,
  post: (message: ThreadMessage<Opened, PortCounters[], Ended>) => void,
): Ended | Failed<Ended> {
  pin(job.cpu);
  const control = new Control(job.shared);
  const say = (sentence: string): void => {
    post({ type: 'say', sentence });
  };
  const { specs, says } = endpoints(job.names, job.loop);
  says.forEach(say);
  const ports = openPorts(specs, { promisc: job.promisc, copy: job.copy });
  const counters = (): PortCounters[] => ports.map((port) => port.stats());
  const ended = (reason: Ended['reason'], stats: PortCounters[]): Ended => ({
    reason,
    stats,
    problems: ports.flatMap((port) => port.problem?.() ?? []),
  });
  try {
    const [a, b] = ports as [Port, Port | undefined];
    let other = nicSide(b ?? a);
    if (ports.length === 1 && !job.loop) {
      other = hostSide(a);
      if (other.rx.length === 0)
        throw new UsageError(
          `${a.name} has no host stack to be bridged to; name a second port, or loop it back with -L`,
        );
    }
    const bridge = new Bridge(nicSide(a), other, {
      burst: job.burst,
      copy: job.copy,
      oneWay: job.oneWay || job.loop,
      frames: job.frames,
      counters: control.counters,
    });
    const directions = flows(bridge, ports);
    if (directions.length === 0)
      throw new UsageError(
        `nothing can flow between ${ports.map(({ name }) => name).join(' and ')}: no side receives what the other can send`,
      );
    post({ type: 'open', opened: { ports: ports.map(portInfo), whyCopy: bridge.whyCopy, directions } });
    waitForLinks(ports, job.linkWait, control, say);
    post({ type: 'running' });
    try {
      const reason = runLoop(bridge, control, {
        wait: job.wait,
        ns: job.seconds * 1e9,
        say,
        report: () => {
          post({ type: 'report', report: counters() });
        },
      });
      return ended(reason, counters());
    } catch (error) {
      return new Failed(error, ended('failed', ports.map(statsLeft)));
    }
  } finally {
    closeAll(ports);
  }
}

serve((post) => work(workerData as WorkerJob, post));
