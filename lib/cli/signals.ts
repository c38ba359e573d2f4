import { constants } from 'node:os';

const STOPPING = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const;

/**
 * Signals within this time, ms, are one wish: GNU timeout signals the process and then its group, and npx passes on what
 * the terminal has sent already.
 */
const SAME_WISH_MS = 1000;

/** The number of a signal by its name. */
export const signalNumber = (name: NodeJS.Signals): number => constants.signals[name];

/**
 * The wish that a tool stop: the first SIGINT, SIGTERM or SIGHUP. One that comes more than a second later ends the process
 * at once with 128 + its number; the system releases what it held. A file that reaches its size limit (SIGXFSZ) is an
 * error of the port that writes it instead.
 */
export class Stop {
  readonly #wish = new AbortController();
  #at = 0;

  constructor() {
    process.on('SIGXFSZ', ignore);
    for (const signal of STOPPING) process.on(signal, this.#hear);
  }

  /** Aborted by the wish; its reason is the name of the signal. */
  get signal(): AbortSignal {
    return this.#wish.signal;
  }

  /** Calls `stop` at the wish, or now where it has come. */
  onWish(stop: () => void): void {
    if (this.signal.aborted) stop();
    else this.signal.addEventListener('abort', stop, { once: true });
  }

  /** Gives signals their own effect back, once those of a wish have all come. */
  release(): void {
    const left = this.signal.aborted ? this.#at + SAME_WISH_MS - performance.now() : 0;
    if (left > 0) setTimeout(this.#release, left).unref();
    else this.#release();
  }

  readonly #release = (): void => {
    process.off('SIGXFSZ', ignore);
    for (const signal of STOPPING) process.off(signal, this.#hear);
  };

  readonly #hear = (signal: NodeJS.Signals): void => {
    if (!this.signal.aborted) {
      this.#at = performance.now();
      this.#wish.abort(signal);
    } else if (performance.now() - this.#at > SAME_WISH_MS) {
      // exit() ends the threads, so that what only this process can undo is undone; it waits for one that is in a system
      // call, for ever where a network file system is gone. A third signal is no longer caught, and ends that.
      this.#release();
      process.exit(128 + signalNumber(signal));
    }
  };
}

function ignore(): void {
  // The write that went too far fails, and tells.
}
