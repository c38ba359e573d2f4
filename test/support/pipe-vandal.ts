/** A thread that maps a pipe's memory as any process of the same user can, and writes nonsense over it without end. */
import { workerData } from 'node:worker_threads';
import { MOREFRAG } from '../../lib/rings/abi.js';
import { native } from '../../lib/shim/native.js';
import { randomStream } from './random.js';

export interface Vandal {
  path: string;
  seed: number;
  /** Words [0, words) are written to: header, rings and slots. */
  words: number;
  /** Nothing else is written half of the time: words that say where to read and what was sent. */
  favourites: number[];
  /** [0]: words written so far; the thread ends when [1] is not 0. */
  progress: SharedArrayBuffer;
}

const { path, seed, words, favourites, progress } = workerData as Vandal;
const random = randomStream(seed);
const i32 = new Int32Array(native.mapShared(path, 0).buffer, 0, words);
const shared = new Int32Array(progress);
const pick = (below: number): number => Math.floor(random() * below);
while (Atomics.load(shared, 1) === 0) {
  const word = random() < 0.5 ? favourites[pick(favourites.length)] : pick(words);
  const good = i32[word];
  const wild = [pick(2 ** 32) | 0, pick(40) - 8, good + 1, good ^ (1 << pick(32)), good | MOREFRAG, 0xffff][pick(6)];
  i32[word] = wild;
  // Sometimes only for a moment, so that traffic goes on and nonsense comes between one reading and the next.
  for (let n = pick(50); n > 0; n--) Atomics.load(i32, word);
  if (random() < 0.7) i32[word] = good;
  Atomics.add(shared, 0, 1);
}
