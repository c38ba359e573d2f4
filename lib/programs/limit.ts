import { FCS_BYTES } from '../text/units.js';
import { DROP, FORWARD, type ProgramFactory } from './program.js';

/** What a token bucket lets through. */
export interface Limit {
  /** Bits per second of frames with their FCS, 1 or more. */
  readonly rate: number;
  /** Bytes that may pass at once after a pause, 64 or more: at least as long as the longest frame that is to pass. */
  readonly burst: number;
}

/** Forwards frames as fast as a token bucket fills, and drops the others. Each thread has a bucket of its own. */
export function limit({ rate, burst }: Limit): ProgramFactory {
  const bitsPerNs = rate / 1e9;
  return (setup) => {
    const dropped = setup.counter('dropped');
    // In an array: numbers with fractions that a closure keeps in variables are allocated anew at each change.
    const bucket = new Float64Array([burst * 8, 0]);
    let filled = false;
    return (frame) => {
      const bits = (frame.length + FCS_BYTES) * 8;
      const since = filled ? frame.time - bucket[1] : 0;
      filled = true;
      const tokens = Math.min(burst * 8, bucket[0] + since * bitsPerNs);
      bucket[1] = frame.time;
      bucket[0] = bits <= tokens ? tokens - bits : tokens;
      if (bits <= tokens) return FORWARD;
      dropped.add();
      return DROP;
    };
  };
}
