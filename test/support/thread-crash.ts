/**
 * Preloaded (`node --import`): lets the first thread that is started die in the midst of its work, by CRASH=exit, throw or
 * memory; with CRASH=start no other can be started, as Node says it where the system has no more threads. Every loop asks by Atomics.load whether it is to stop, so that is where it happens.
 */
import { syncBuiltinESMExports } from 'node:module';
import threads from 'node:worker_threads';

/** Looks before the end: ports are open by then, and frames flow. */
const LOOKS = 3000;

if (threads.isMainThread) {
  const { Worker } = threads;
  let started = 0;
  threads.Worker = class extends Worker {
    constructor(url: URL, options: threads.WorkerOptions = {}) {
      if (++started > 1 && process.env.CRASH === 'start')
        throw Object.assign(new Error('EAGAIN'), { code: 'ERR_WORKER_INIT_FAILED' });
      const env = { ...process.env, ...(started > 1 && { CRASH: '' }) };
      super(url, { ...options, env, resourceLimits: { maxOldGenerationSizeMb: 32 } });
    }
  };
  syncBuiltinESMExports();
} else {
  const load = Atomics.load.bind(Atomics);
  let looks = 0;
  const crash = (): void => {
    const hoard: number[][] = [];
    switch (process.env.CRASH) {
      case 'exit':
        process.exit(7);
        break;
      case 'throw':
        throw new Error('struck by lightning');
      case 'memory':
        for (;;) hoard.push(new Array<number>(10_000).fill(hoard.length));
    }
  };
  Atomics.load = ((array: Int32Array, index: number) => {
    if (++looks === LOOKS) crash();
    return load(array, index);
  }) as typeof Atomics.load;
}
