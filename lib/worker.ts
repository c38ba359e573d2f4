/** The forwarding thread: opens the ports, waits for their links, runs the loop, and tells the main thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { cpus } from 'node:os';
import { endpoints } from './auto.js';
import { Bridge, hostSide, nicSide } from './bridge.js';
import { Control } from './control.js';
import { UsageError } from './errors.js';
import { runLoop, type EndReason } from './loop.js';
import { native, now } from './native.js';
import { openPorts } from './open.js';
import type { Port } from './port.js';
import { portInfo, type PortInfo } from './portinfo.js';
import type { WaitMode } from './wait.js';

/** What the main thread asks for; plain data. */
export interface WorkerJob {
  shared: SharedArrayBuffer;
  /** Two port names; or one, or the same twice: that port and its host stack. */
  names: readonly string[];
  /** With one port: send what it receives back out of it, instead of bridging it to its host stack. */
  loop: boolean;
  burst: number;
  copy: boolean;
  oneWay: boolean;
  promisc: boolean;
  /** Seconds to wait for the links; undefined: 4 for ports with a link. */
  linkWait: number | undefined;
  wait: WaitMode;
  frames: number;
  seconds: number;
  /** CPU to run on; -1: any. */
  cpu: number;
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

export type WorkerMessage =
  | {
      type: 'open';
      ports: PortInfo[];
      /** Why frames are copied; undefined: every pair of rings exchanges buffers. */
      whyCopy: string | undefined;
      directions: DirectionInfo[];
    }
  | { type: 'running' }
  | { type: 'say'; sentence: string }
  | { type: 'stats'; stats: Record<string, number>[] }
  | { type: 'end'; reason: EndReason; stats: Record<string, number>[]; problems: string[] }
  | { type: 'fail'; usage: boolean; message: string; port: string; code?: string };

/** Links take up to this long to come up after a NIC entered netmap mode; upstream's tools wait as long. */
const LINK_WAIT_S = 4;

function waitForLinks(ports: readonly Port[], job: WorkerJob, control: Control): void {
  const linked = ports.filter((port) => port.hasLink);
  const seconds = job.linkWait ?? LINK_WAIT_S;
  const deadline = now() + seconds * 1e9;
  const down = linked.filter((port) => !port.linkUp()).map(({ name }) => name);
  if (down.length > 0 && seconds > 0)
    send({ type: 'say', sentence: `waiting up to ${seconds} s for the link of ${down.join(' and ')}` });
  while (!control.stopping && now() < deadline && linked.some((port) => !port.linkUp())) native.sleepNs(10e6);
  for (const port of linked) {
    if (!port.linkUp())
      send({ type: 'say', sentence: `${port.name}: the link is down; forwarding starts all the same` });
  }
}

function send(message: WorkerMessage): void {
  parentPort!.postMessage(message);
}

function pin(cpu: number): void {
  try {
    native.pin(cpu);
  } catch (error) {
    throw new UsageError(
      `no thread can run on CPU ${cpu}: ${(error as Error).message}; this machine has ${cpus().length}, numbered from 0`,
    );
  }
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

function work(job: WorkerJob): void {
  if (job.cpu >= 0) pin(job.cpu);
  const control = new Control(job.shared);
  const { specs, says } = endpoints(job.names, job.loop);
  for (const sentence of says) send({ type: 'say', sentence });
  const ports = openPorts(specs, { promisc: job.promisc });
  let end: WorkerMessage;
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
    const stats = (): Record<string, number>[] => ports.map((port) => port.stats());
    const directions = flows(bridge, ports);
    if (directions.length === 0)
      throw new UsageError(
        `nothing can flow between ${ports.map(({ name }) => name).join(' and ')}: no side receives what the other can send`,
      );
    send({ type: 'open', ports: ports.map(portInfo), whyCopy: bridge.whyCopy, directions });
    waitForLinks(ports, job, control);
    send({ type: 'running' });
    const reason = runLoop(bridge, control, {
      wait: job.wait,
      ns: job.seconds * 1e9,
      say: (sentence) => {
        send({ type: 'say', sentence });
      },
      report: () => {
        send({ type: 'stats', stats: stats() });
      },
    });
    end = { type: 'end', reason, stats: stats(), problems: ports.flatMap((port) => port.problem?.() ?? []) };
  } finally {
    closeAll(ports);
  }
  send(end); // only now: closing can still fail
}

try {
  work(workerData as WorkerJob);
} catch (error) {
  const { message, code, port = '' } = error as Error & { code?: string; port?: string };
  send({ type: 'fail', usage: error instanceof UsageError, message, port, ...(code === undefined ? {} : { code }) });
}
