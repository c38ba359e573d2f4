/** What an experiment is: its sizes and ports, how they are bridged, and the settings that its results are told apart by. */
import type { FrameSize } from '../../text/units.js';
import type { WaitMode } from '../../forward/wait.js';
import type { SimSpec } from '../../names/portspec.js';
import type { Cell } from '../results/result.js';
import type { TrialOptions } from './trial.js';

/**
 * Slots of the embedded default's rings: what 10G controllers of the ix and ixl families allow at most. At line rate
 * and 64 bytes they fill in 275 µs, so that a machine with other work to do holds the loop up without losing frames.
 */
export const SLOTS = 4096;
/**
 * Its buffers, in bytes: 2,048 as everywhere and one cache line more, or the first line of every frame falls into the
 * same few sets of the caches (docs/performance.md).
 */
const BUF = 2112;
const defaultPort = (name: string): string => `sim:${name}@slots=${SLOTS},buf=${BUF}`;
/** The two ports that are measured when none is named, on the command line and in a matrix. */
export const DEFAULT_PORTS: readonly [string, string] = [defaultPort('a'), defaultPort('b')];

/** What is measured at, and how a bridge of this process does its work. */
export interface Setup {
  sizes: FrameSize[];
  /** Speed of the link over which frames arrive, bits per second. */
  rate: number;
  oneWay: boolean;
  burst: number;
  copy: boolean;
  wait: WaitMode;
  cpu: number | undefined;
}

/** The same for two simulated ports; frames arrive at both. */
export interface SimSetup extends Setup {
  names: readonly [string, string];
  specs: readonly [SimSpec, SimSpec];
}

/** Speed of a link that nothing names a speed for, bits per second. */
export const DEFAULT_RATE = 1e10;
export const DEFAULT_WAIT: WaitMode = 'busy';
/** What a trial of this setup is always told. */
export function trialOptions(setup: SimSetup, size: FrameSize): Omit<TrialOptions, 'seconds'> {
  const { names, oneWay, burst, copy, wait, cpu } = setup;
  return { names, size, oneWay, burst, copy, wait, ...(cpu === undefined ? {} : { cpu }) };
}

/** The settings that results of this setup are told apart by. */
export function setupCell(setup: SimSetup, size: FrameSize): Cell {
  const { names, oneWay, burst, copy } = setup;
  return { size, a: names[0], b: names[1], oneWay, burst, ...(copy && { copy }), ...waitCell(setup) };
}

/** A setting at its default is in no cell: results from before it was told still compare. */
export function waitCell({ wait }: Setup): Cell {
  return wait === DEFAULT_WAIT ? {} : { wait };
}
