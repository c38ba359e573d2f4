import type { Result } from '../results/result.js';

/** The part of a result that a cell's run supplies. */
export type Measured = Pick<
  Result,
  'metrics' | 'units' | 'samples' | 'sample_s' | 'histogram' | 'link_gbps' | 'note' | 'cores'
>;

/** What was printed is not what was expected. */
export class ReadingError extends Error {
  override readonly name = 'ReadingError';
}
