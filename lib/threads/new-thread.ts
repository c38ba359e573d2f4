import { Worker } from 'node:worker_threads';

/** Starts a thread from a file of ours; `name` is what debuggers call it. */
export function newWorker(url: URL, workerData: object, name: string): Worker {
  // Of node's own options a thread takes over all but the one about a program given as a string (node -e).
  const execArgv = process.execArgv.filter(
    (word, i, words) => !word.startsWith('--input-type') && words[i - 1] !== '--input-type',
  );
  return new Worker(url, { workerData, name, execArgv });
}
