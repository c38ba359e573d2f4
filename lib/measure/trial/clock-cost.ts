import { now } from '../../shim/native.js';

/** What reading the clock costs: the mean of many readings in a row, ns. The quickest of several rounds counts. */
export function clockCost(rounds = 20, readings = 5000): number {
  let best = Infinity;
  for (let round = 0; round < rounds; round++) {
    const start = now();
    for (let i = 1; i < readings; i++) now();
    best = Math.min(best, (now() - start) / readings);
  }
  return best;
}
