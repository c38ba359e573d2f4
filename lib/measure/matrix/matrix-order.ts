/** The cells of a matrix and the order of its runs. */

/** A generator of whole numbers 0..2³²−1: Marsaglia's xorshift32 (Journal of Statistical Software 8(14), 2003). */
function xorshift(seed: number): () => number {
  let state = seed >>> 0 || 1;
  return () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return (state >>>= 0);
  };
}

/** Spreads close seeds apart: the finaliser of MurmurHash3 (Appleby, public domain). */
function spread(seed: number): number {
  let h = seed >>> 0;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** 0..count−1 in an order that depends on the seed and the repeat alone; every order is as likely as any other. */
export function shuffled(count: number, seed: number, repeat: number): number[] {
  const random = xorshift(spread(spread(seed) + repeat));
  const order = Array.from({ length: count }, (_, i) => i);
  for (let i = count - 1; i > 0; i--) {
    const limit = 0x1_0000_0000 - (0x1_0000_0000 % (i + 1));
    let drawn = random();
    while (drawn >= limit) drawn = random();
    const j = drawn % (i + 1);
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}

/** Every choice of one index an axis, the last axis changing fastest. `lengths` has the number of values of each axis. */
export function product(lengths: readonly number[]): number[][] {
  return lengths.reduce<number[][]>(
    (cells, length) => cells.flatMap((cell) => Array.from({ length }, (_, i) => [...cell, i])),
    [[]],
  );
}
