/** Runs one trial in a thread of its own and sends back what was counted. */
import { parentPort, workerData } from 'node:worker_threads';
import { UsageError } from '../../text/errors.js';
import { runJob } from './trial-run.js';
import type { TrialJob } from './trial.js';

try {
  parentPort!.postMessage({ result: runJob(workerData as TrialJob) });
} catch (error) {
  parentPort!.postMessage({ usage: error instanceof UsageError, message: (error as Error).message });
}
