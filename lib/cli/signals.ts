import { constants } from 'node:os';

const STOPPING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Signals within this time, ms, are one wish: GNU timeout signals the process and then its group, and npx passes on what
 * the terminal has sent already.
 */
const SAME_WISH_MS = 1000;

/**
 * Calls `stop` at the first SIGINT, SIGTERM or SIGHUP. One that comes more than a second later ends the process at once
 * with 128 + its number; the system releases what it held. A file that reaches its size limit (SIGXFSZ) is an error of the
 * port that writes it instead. Returns a function that gives the signals back.
 */
export function onSignals(stop: () => void): () => void {
  let stopped: number | undefined;
  const handle = (signal: NodeJS.Signals): void => {
    if (stopped === undefined) {
      stopped = performance.now();
      stop();
    } else if (performance.now() - stopped > SAME_WISH_MS) {
      // exit() ends the threads, so that what only this process can undo is undone; it waits for one that is in a system
      // call, for ever where a network file system is gone. A third signal is no longer caught, and ends that.
      release();
      process.exit(128 + constants.signals[signal]);
    }
  };
  const ignore = (): void => undefined;
  const release = (): void => {
    process.off('SIGXFSZ', ignore);
    for (const signal of STOPPING) process.off(signal, handle);
  };
  process.on('SIGXFSZ', ignore);
  for (const signal of STOPPING) process.on(signal, handle);
  return release;
}
