import type { Bench, BenchLoad, BenchTrial } from '../trial/bench.js';
import { Interrupted } from '../trial/trial.js';

/** A search's trial; nothing where it was ended early: a search goes by trials of the lengths it asked for. */
export async function wholeTrial(bench: Bench, load: BenchLoad): Promise<BenchTrial | undefined> {
  try {
    const trial = await bench.run(load);
    return load.signal?.aborted === true ? undefined : trial;
  } catch (error) {
    if (error instanceof Interrupted) return undefined;
    throw error;
  }
}
