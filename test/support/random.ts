import { randomStream } from '../../lib/stats/random.js';

export { randomStream };

/** Standard normal numbers from uniform ones (Box and Muller, 1958). */
export function normalStream(seed: number): () => number {
  const uniform = randomStream(seed);
  return () => Math.sqrt(-2 * Math.log(1 - uniform())) * Math.cos(2 * Math.PI * uniform());
}
