import { randomStream } from '../stats/random.js';
import { DROP, FORWARD, type ProgramFactory } from './program.js';

/** Which frames a sample has: every N-th one, or each with a probability. */
type Sample = { readonly every: number } | { readonly share: number; readonly seed: number };

/** Forwards a sample of the frames and drops the others. `share` picks the same frames for the same seed. */
export function sample(which: Sample): ProgramFactory {
  return (setup) => {
    const dropped = setup.counter('dropped');
    const picks = 'every' in which ? everyNth(which.every) : shareOf(which.share, randomStream(which.seed));
    return () => {
      if (picks()) return FORWARD;
      dropped.add();
      return DROP;
    };
  };
}

/** The first of every `n`. */
function everyNth(n: number): () => boolean {
  let left = 0;
  return () => {
    left = left === 0 ? n - 1 : left - 1;
    return left === n - 1;
  };
}

function shareOf(share: number, random: () => number): () => boolean {
  return () => random() < share;
}
