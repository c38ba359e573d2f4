/** One result: what was measured, where on the axes of its test, and on what. docs/results.md is the schema in words. */
import type { HistogramJson } from '../../stats/histogram.js';
import type { Surroundings } from './surroundings.js';

/** The version that is written, and the newest that is read. docs/results.md describes it. */
export const RESULT_VERSION = 1;

export const KINDS = ['forward', 'throughput', 'latency', 'loss', 'burst', 'matrix', 'samples'] as const;
export type ResultKind = (typeof KINDS)[number];

/** Where a result stands on the axes of its test: packet size, ring size, offload setting… */
export type Cell = Record<string, string | number | boolean>;

/** Where a result of a matrix comes from. */
interface MatrixRun {
  name: string;
  /** SHA-256 of the matrix, repeats left out: results of different matrices do not mix. */
  digest: string;
  /** What the order of the runs was drawn from. */
  seed: number;
  /** The command's words, or the names of the ports and the settings, as they were in this run. */
  ran: string[];
}

/** Which run of which comparison of two set-ups this is; its side is in the cell. */
export interface AbRun {
  /** SHA-256 of both commands: results of different comparisons do not mix. */
  digest: string;
  /** What the order of the runs was drawn from. */
  seed: number;
  /** The round, within which both sides were measured in one random order, and the place in it. */
  round: number;
  place: number;
  /** The command's words. */
  ran: string[];
}

/** How a number of a result is shown and judged. */
export interface Metric {
  unit: string;
  label?: string;
  /** Which way is good. Without it the metric is shown but never judged. */
  better?: 'higher' | 'lower';
  /**
   * How two runs are set against each other: by ratio, or by difference where zero is an everyday value (a loss ratio)
   * and a ratio to it says nothing. Default: ratio.
   */
  scale?: 'ratio' | 'difference';
  /** With `scale: 'difference'`: the smallest difference worth telling, in the metric's unit; changes below are noise. */
  matters?: number;
}

/** One core's time between two readings, shares 0..1; the rest to 1 was idle (or the hypervisor's). */
export interface CoreShares {
  core: number;
  user: number;
  system: number;
  irq: number;
  softirq: number;
}

/** One line of a result file. */
export interface Result {
  v: 1;
  kind: ResultKind;
  cell: Cell;
  /** 0 for the first run of the cell, 1 for the second… */
  repeat: number;
  metrics: Record<string, number>;
  /** Unit and direction of metrics that the tool does not know by name. */
  units?: Record<string, Metric>;
  /** Readings within one run, oldest first, by metric. */
  samples?: Record<string, number[]>;
  /** Seconds covered by each reading in `samples`. */
  sample_s?: number;
  histogram?: HistogramJson;
  /** Line rate of the link in Gbit/s, for shares of line rate. */
  link_gbps?: number;
  note?: string;
  /** What each core did meanwhile, whoever used it: shares 0 to 1. */
  cores?: CoreShares[];
  /** Which run of which matrix this is. */
  matrix?: MatrixRun;
  /** Which run of which comparison of two set-ups this is. */
  ab?: AbRun;
  surroundings?: Surroundings;
  /** ISO 8601, UTC. */
  time: string;
}

/** A result and where it was read. */
export interface ResultLine {
  file: string;
  /** Counted from 1. */
  line: number;
  result: Result;
}

/** A name for a cell that is the same whatever the order of its axes. */
export function cellKey(cell: Cell): string {
  const axes = Object.keys(cell).sort();
  return axes.map((axis) => `${axis}=${cell[axis]}`).join(' ');
}
