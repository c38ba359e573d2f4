/** The generator's thread: opens the port, waits for its link, runs the engine, and tells the main thread. */
import { parentPort, workerData } from 'node:worker_threads';
import { Control } from '../control.js';
import { PortError, UsageError } from '../errors.js';
import type { EndReason } from '../loop.js';
import { native, now } from '../native.js';
import { openPort } from '../open.js';
import type { Port } from '../port.js';
import { parsePortSpec } from '../portspec.js';
import { portInfo, type PortInfo } from '../portinfo.js';
import type { WaitMode } from '../wait.js';
import { PingEngine, PongEngine, RxEngine, TxEngine, type Engine } from './engines.js';
import { runEngine } from './loop.js';
import { Receiver } from './receiver.js';
import { Reflector } from './reflector.js';
import { Replay } from './replay.js';
import type { GenReport } from './report.js';
import { Sender, type Source } from './sender.js';
import { REPLY, REQUEST, swapHalf } from './tag.js';
import { makeTemplates } from './templates.js';
import type { Flow } from './headers.js';

export type GenMode = 'tx' | 'rx' | 'ping' | 'pong';

/** What the main thread asks for; plain data. */
export interface GenJob {
  shared: SharedArrayBuffer;
  name: string;
  mode: GenMode;
  promisc: boolean;
  /** Seconds to wait for the link; undefined: 4 for ports with a link. */
  linkWait: number | undefined;
  wait: WaitMode;
  /** Frames after which the run ends; 0: none. */
  frames: number;
  seconds: number;
  /** CPU to run on; -1: any. */
  cpu: number;
  burst: number;
  /** Frames a second; Infinity: as fast as possible; undefined: a capture's own timing. */
  rate: number | undefined;
  /** tx rings to use; 0: all. */
  rings: number;
  /** Where tx and ping send to; a source MAC of null is the interface's own. */
  flow: Omit<Flow, 'sourceMac'> & { sourceMac: Flow['sourceMac'] | null };
  /** Frame sizes in bytes with FCS, in the order in which they repeat. */
  sizes: number[];
  randomPayload: boolean;
  plain: boolean;
  /** 0..65535 */
  stream: number;
  /** A capture to send instead, how much faster than its own timing, and how often. */
  replay: { file: string; speed: number; loops: number } | undefined;
}

/** A job without what is made when it starts. */
export type GenSettings = Omit<GenJob, 'shared'>;

export type GenMessage =
  | { type: 'open'; port: PortInfo; sourceMac: string }
  | { type: 'running' }
  | { type: 'say'; sentence: string }
  | { type: 'report'; report: GenReport }
  | { type: 'end'; reason: EndReason; report: GenReport }
  | { type: 'fail'; usage: boolean; message: string; port: string; code?: string };

/** Links take up to this long to come up after a NIC entered netmap mode; upstream's tools wait as long. */
const LINK_WAIT_S = 4;

/** Locally administered, for ports without an address of their own. */
const ANY_MAC = Uint8Array.from([0x02, 0, 0, 0, 0, 0x01]);

function send(message: GenMessage): void {
  parentPort!.postMessage(message);
}

function waitForLink(port: Port, job: GenJob, control: Control): void {
  const deadline = now() + (job.linkWait ?? LINK_WAIT_S) * 1e9;
  while (!control.stopping && now() < deadline && port.hasLink && !port.linkUp()) native.sleepNs(10e6);
  if (port.hasLink && !port.linkUp())
    send({ type: 'say', sentence: `${port.name}: the link is down; starting all the same` });
}

/** The address of the interface behind a port. */
function ownMac(name: string): Uint8Array {
  const spec = parsePortSpec(name);
  if (spec.kind !== 'xdp' && spec.kind !== 'netmap' && spec.kind !== 'auto') return ANY_MAC;
  try {
    const ifname = spec.kind === 'netmap' ? spec.name : spec.ifname;
    const text = native.netdevMac(ifname, spec.kind === 'xdp' ? (spec.netns ?? '') : '');
    return text === null ? ANY_MAC : Uint8Array.from(text.split(':'), (byte) => parseInt(byte, 16));
  } catch {
    return ANY_MAC; // VALE ports and netmap pipes are no interfaces of the system
  }
}

function makeSource(port: Port, job: GenJob, flow: Flow): Source {
  if (job.replay !== undefined) return new Replay(port, job.replay, job.burst, job.rate);
  return makeSender(port, job, flow);
}

function makeSender(port: Port, job: GenJob, flow: Flow): Sender {
  const templates = makeTemplates(flow, job);
  const { burst, stream } = job;
  const rings = port.tx.slice(0, job.mode === 'ping' ? 1 : job.rings || port.tx.length);
  return new Sender(port, rings, { flow, templates, burst, stream, rate: job.rate ?? Infinity });
}

function makeEngine(port: Port, job: GenJob, flow: Flow): Engine {
  const most = job.frames > 0 ? job.frames : Infinity;
  const { mode } = job;
  if (mode !== 'rx' && port.tx.length === 0)
    throw new UsageError(`${port.name} sends nothing; -f ${mode} needs a port that does`);
  if (mode !== 'tx' && port.rx.length === 0)
    throw new UsageError(`${port.name} receives nothing; -f ${mode} needs a port that does`);
  switch (mode) {
    case 'tx':
      return new TxEngine(makeSource(port, job, flow), most);
    case 'rx':
      return new RxEngine(port, new Receiver(port, REQUEST), most);
    case 'ping':
      return new PingEngine(makeSender(port, job, flow), new Receiver(port, REPLY, swapHalf(job.stream)), most);
    case 'pong':
      return new PongEngine(port, new Reflector(port), most);
  }
}

function work(job: GenJob): void {
  if (job.cpu >= 0) native.pin(job.cpu);
  const control = new Control(job.shared);
  const port = openPort(job.name, { promisc: job.promisc });
  let engine: Engine | undefined;
  try {
    const sourceMac = job.flow.sourceMac ?? addressOf(ownMac(job.name));
    const flow = { ...job.flow, sourceMac };
    engine = makeEngine(port, job, flow);
    send({ type: 'open', port: portInfo(port), sourceMac: macText(sourceMac.bytes) });
    waitForLink(port, job, control);
    send({ type: 'running' });
    const { reason, report } = runEngine(engine, port, control, {
      wait: job.wait,
      ns: job.seconds * 1e9,
      say: (sentence) => {
        send({ type: 'say', sentence });
      },
      report: (report) => {
        send({ type: 'report', report });
      },
    });
    send({ type: 'end', reason, report });
  } finally {
    engine?.close?.();
    port.close();
  }
}

function addressOf(bytes: Uint8Array): Flow['sourceMac'] {
  const low = bytes.slice(2).reduce((value, byte) => value * 256 + byte, 0);
  return { bytes, low: { first: low, last: low } };
}

function macText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':');
}

try {
  work(workerData as GenJob);
} catch (error) {
  const { message, code, port = '' } = error as Error & { code?: string; port?: string };
  send({
    type: 'fail',
    usage: error instanceof UsageError,
    message:
      error instanceof UsageError || error instanceof PortError || code !== undefined
        ? message
        : String((error as Error).stack),
    port,
    ...(code === undefined ? {} : { code }),
  });
}
