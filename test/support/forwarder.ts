// A lane as one function that has counted all it moved when it returns, for tests that read the counters then.
import { Lane } from '../../lib/forward/lane.js';
import type { Ring } from '../../lib/rings/ring.js';

export type Forward = (burst: number) => number;

export function isZeroCopy(rx: Ring, tx: Ring): boolean {
  return new Lane(rx, tx).whyCopy === undefined;
}

export function forwarder(rx: Ring, tx: Ring, counters: Float64Array, zeroCopy = true): Forward {
  const lane = new Lane(rx, tx, { counters, copy: !zeroCopy });
  return (burst) => {
    const taken = lane.move(burst);
    lane.settle();
    return taken;
  };
}
