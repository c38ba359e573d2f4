/** What a run of the generator is to do, and what it says; plain data that threads exchange. */
import type { EndReason } from '../threads/loop.js';
import type { PortOptions } from '../ports/port.js';
import type { PortInfo } from '../ports/port-info.js';
import type { PortSpec } from '../names/portspec.js';
import type { WaitMode } from '../forward/wait.js';
import type { Flow } from './headers.js';
import type { GenReport } from './gen-report.js';

export type GenMode = 'tx' | 'rx' | 'ping' | 'pong';

/** What a run is to do; plain data. */
export interface GenSettings {
  /** The port. */
  name: string;
  mode: GenMode;
  promisc: boolean;
  /** Seconds to wait for the link; undefined: 4 for ports with a link. */
  linkWait: number | undefined;
  wait: WaitMode;
  /** Frames after which the run ends; 0: none. */
  frames: number;
  seconds: number;
  /** Threads, each with rings of its own. */
  threads: number;
  /** CPU that the first thread runs on, the others on those that follow; -1: any. */
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
  /** 0..65535; of the first ring, the others follow. */
  stream: number;
  /** A capture to send instead, how much faster than its own timing, how often, and at which rate in bits a second. */
  replay: { file: string; speed: number; loops: number; wireRate: number | undefined } | undefined;
}

/** One thread's share of it: rate, rings, stream and CPU are its own. */
export interface GenJob extends GenSettings {
  port: PortSpec;
  options: PortOptions;
  /** From quotaFor(). */
  quota: SharedArrayBuffer;
  /** Of a StartLine. */
  start: SharedArrayBuffer;
}

/** What was opened. */
export interface GenOpened {
  port: PortInfo;
  /** The address frames are sent from. */
  sourceMac: string;
}

export interface GenEnded {
  reason: EndReason | 'failed';
  report: GenReport;
}
