import type { Control } from '../threads/control.js';
import { native } from '../shim/native.js';

/** Where the threads of a run wait for each other, so that they start together and none has all frames to itself. */
export class StartLine {
  readonly #there: Int32Array;

  /** @param shared the same for all threads of a run */
  constructor(
    readonly threads: number,
    readonly shared = new SharedArrayBuffer(4),
  ) {
    this.#there = new Int32Array(shared);
  }

  /** Returns when every thread is there, or when this one is asked to stop, as it is where another failed. */
  wait(control: Control): void {
    Atomics.add(this.#there, 0, 1);
    while (Atomics.load(this.#there, 0) < this.threads && !control.stopping) native.sleepNs(100e3);
  }
}
