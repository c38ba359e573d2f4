/** Whether a generator kept to its load. */
import { formatFrameRate } from '../../text/units.js';
import type { BenchTrial } from './bench.js';

/** A generator that falls short by more than this share of the asked load has not tested that load. */
const OFFER_TOLERANCE = 0.001;

/**
 * Whether a generator that offered `offered` of `due` frames fell short of its load. A trial that offered nothing has
 * tested nothing, however little was asked.
 */
export function fellShort(due: number, offered: number): boolean {
  return offered < Math.max(1, Math.floor(due * (1 - OFFER_TOLERANCE)));
}

/**
 * Where the generator fell short of `load` (frames/s; by the rule of the throughput search): "the generator offered 100 kpps
 * of 14.88 Mpps". Undefined where it did not.
 */
export function shortOffer(
  load: number,
  { due, offered, seconds }: Pick<BenchTrial, 'due' | 'offered' | 'seconds'>,
): string | undefined {
  if (!fellShort(due, offered)) return undefined;
  return `the generator offered ${formatFrameRate(offered / seconds)} of ${formatFrameRate(load)}`;
}

/** Said of a search in which the generator fell short. */
export const GENERATOR_LIMITED = 'the generator, not what was measured, may have been the limit';
