/** The programs of one forwarding thread, one behind the other. */
import { verdictOnError, type OnError } from './failure.js';
import type { Frame } from './frame.js';
import { loadProgram } from './load.js';
import { Counters, FORWARD, makeProgram, type OnFrame, type Program, type Verdict } from './program.js';

export interface RunningPrograms {
  /** The verdict of the first that does not forward the frame. */
  readonly onFrame: OnFrame;
  readonly failed: (error: unknown, frame: Frame) => Verdict;
  /** Names of the counters, in the order of their cells. */
  readonly counters: readonly string[];
  readonly start: (now: number) => void;
  readonly tick: (now: number) => void;
  readonly stop: (now: number) => void;
}

/**
 * Loads and makes the programs that `texts` name.
 * @param cells where their counters count
 * @throws UsageError where one cannot be loaded, and what its factory throws
 */
export async function runPrograms(
  texts: readonly string[],
  onError: OnError,
  cells: Float64Array,
  say: (sentence: string) => void,
): Promise<RunningPrograms> {
  const counters = new Counters(cells);
  const setup = { thread: 0, counter: (name: string) => counters.counter(name) };
  const programs: Program[] = [];
  for (const text of texts) programs.push(makeProgram(await loadProgram(text), setup));
  const errors = counters.counter('errors');
  return {
    onFrame: chain(programs.map(({ frame }) => frame)),
    failed: verdictOnError(texts.join(', '), onError, errors, say),
    counters: counters.names,
    start: (now) => {
      for (const program of programs) program.start?.(now);
    },
    tick: (now) => {
      for (const program of programs) program.tick?.(now);
    },
    stop: (now) => {
      for (const program of programs) program.stop?.(now);
    },
  };
}

function chain(all: readonly OnFrame[]): OnFrame {
  if (all.length === 1) return all[0];
  return (frame) => {
    for (const onFrame of all) {
      const verdict = onFrame(frame);
      if (verdict !== FORWARD) return verdict;
    }
    return FORWARD;
  };
}
