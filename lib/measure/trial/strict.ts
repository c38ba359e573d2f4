/** Trials whose forwarding thread was kept from running are made again. */
import { PortError } from '../../text/errors.js';
import { waitNote, type Bench } from './bench.js';

/** Times that a trial is made before the machine is called too busy. */
const TRIES = 5;

/**
 * The bench, but for trials that waitNote() marks: none of them counts.
 * @throws PortError by its run(), where the machine does not leave the thread its CPU
 */
export function strictBench(bench: Bench): Bench {
  return {
    ...bench,
    async run(load) {
      for (let left = TRIES; ; left--) {
        const trial = await bench.run(load);
        const note = waitNote(trial);
        if (note === undefined || load.signal?.aborted === true) return trial;
        if (left === 1)
          throw new PortError(
            `--strict: ${note}, in each of ${TRIES} trials; end what else runs on this machine, ` +
              'or give the thread a core of its own with --cpu',
            bench.title,
          );
      }
    },
  };
}
