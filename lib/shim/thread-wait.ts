import { closeSync, openSync, readSync } from 'node:fs';

/** How long the calling thread has waited for a CPU while it could have run. */
export class ThreadWait {
  /** ns since this was made, as of the latest read(); NaN where the system does not tell: Linux with CONFIG_SCHED_INFO does. */
  ns = NaN;
  readonly #text = Buffer.alloc(64);
  readonly #file: number | undefined;
  readonly #since: number = NaN;

  constructor() {
    try {
      this.#file = openSync('/proc/thread-self/schedstat', 'r');
    } catch {
      return;
    }
    this.#since = this.#sum();
    this.ns = 0;
  }

  /** Reads it again. Returns ns waited since the last reading; NaN where the system does not tell. */
  read(): number {
    const before = this.ns;
    this.ns = this.#sum() - this.#since;
    return this.ns - before;
  }

  close(): void {
    if (this.#file !== undefined) closeSync(this.#file);
  }

  /** Documentation/scheduler/sched-stats.rst: ns on a CPU, ns waiting for one, time slices. */
  #sum(): number {
    if (this.#file === undefined) return NaN;
    const length = readSync(this.#file, this.#text, 0, this.#text.length, 0);
    return Number(this.#text.toString('latin1', 0, length).split(' ')[1]);
  }
}
