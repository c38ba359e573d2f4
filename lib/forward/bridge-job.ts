/** What a bridge's thread is given, and what it says of its ports and of its end; plain data. */
import { COUNTERS } from './counters.js';
import type { EndReason } from '../threads/loop.js';
import type { Outside } from '../ports/port.js';
import type { PortInfo } from '../ports/port-info.js';
import type { BridgeSettings } from './settings.js';

/** What the main thread asks for; plain data. */
export interface WorkerJob extends BridgeSettings {
  /** Of both directions; see countersIn(). */
  counters: SharedArrayBuffer;
  /** Of the programs: COUNTERS_MAX doubles. */
  programCounters: SharedArrayBuffer;
  /** Two port names; or one, or the same twice: that port and its host stack. */
  names: readonly string[];
}

/** A direction in which frames can flow. */
export interface DirectionInfo {
  /** Index of its counters. */
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
  /** Names of the programs' counters, in the order of their cells. */
  programCounters: readonly string[];
}

/** A port's own statistics, by name. */
export type PortCounters = Record<string, number>;

export interface Ended {
  reason: EndReason | 'failed';
  /** Each port's own statistics, in the order in which they were opened. */
  stats: PortCounters[];
  /** Frames outside the rings of each side, where something counts them. */
  outside: (Outside | null)[];
  /** What was wrong with a source when it ended, such as a truncated capture file; a sentence each. */
  problems: string[];
}

/** The counters of the two directions in the memory that both threads see. */
export function countersIn(shared: SharedArrayBuffer): readonly [Float64Array, Float64Array] {
  const both = new Float64Array(shared);
  return [both.subarray(0, COUNTERS), both.subarray(COUNTERS)];
}
