import { Control } from './control.js';
import { deferred, type Deferred } from './deferred.js';
import { newWorker } from './new-thread.js';
import { PortError, RunError, UsageError } from '../text/errors.js';

/**
 * What a thread that runs ports says to the one that started it: what it opened, that frames flow, what a person
 * should know, its state when it is asked, and its last word.
 */
export type ThreadMessage<Opened, Report, Ended> =
  | { type: 'open'; opened: Opened }
  | { type: 'running' }
  | { type: 'say'; sentence: string }
  | { type: 'report'; report: Report }
  | { type: 'end'; ended: Ended }
  | {
      type: 'fail';
      usage: boolean;
      message: string;
      port: string;
      code?: string | undefined;
      /** What had been counted until then; absent where no frame had flowed. */
      ended?: Ended | undefined;
    };

/** A thread with open ports. */
export interface Running<Opened, Report, Ended> {
  /** The ports are open. Rejects with UsageError or PortError. */
  readonly opened: Promise<Opened>;
  /** Links were awaited and frames flow. */
  readonly running: Promise<undefined>;
  /**
   * The run ended by itself or because stop() was called. Rejects when it failed: with a RunError, which holds what was
   * counted until then, where frames had flowed.
   */
  readonly ended: Promise<Ended>;
  /** The state now; the final one when the run ends meanwhile. */
  readonly report: () => Promise<Report>;
  /** Sends what is in the tx rings, closes the ports and ends. */
  readonly stop: () => void;
}

export interface ThreadOptions<Report, Ended> {
  /** File of the thread's code. */
  url: URL;
  /** What the thread is called in errors and debuggers. */
  name: string;
  /** Plain data for the thread, beside the control block's `shared`. */
  job: object;
  control: Control;
  onSay: (sentence: string) => void;
  /** The final state. */
  last: (ended: Ended) => Report;
}

/** Starts a thread whose code uses serve(). */
export function startThread<Opened, Report, Ended>({
  url,
  name,
  job,
  control,
  onSay,
  last,
}: ThreadOptions<Report, Ended>): Running<Opened, Report, Ended> {
  const opened = deferred<Opened>();
  const running = deferred<undefined>();
  const ended = deferred<Ended>();
  let asked: Deferred<Report>[] = [];

  const answer = (report: Report): void => {
    for (const question of asked) question.resolve(report);
    asked = [];
  };
  const fail = (error: Error): void => {
    for (const promise of [opened, running, ended, ...asked]) promise.reject(error);
    asked = [];
  };
  const hear = (message: ThreadMessage<Opened, Report, Ended>): void => {
    switch (message.type) {
      case 'open':
        opened.resolve(message.opened);
        break;
      case 'running':
        running.resolve(undefined);
        break;
      case 'say':
        onSay(message.sentence);
        break;
      case 'report':
        answer(message.report);
        break;
      case 'end':
        ended.resolve(message.ended);
        answer(last(message.ended));
        break;
      case 'fail':
        fail(errorOf(message));
    }
  };
  // A thread that cannot be started fails as one that ends: whoever started others with it stops those.
  try {
    const worker = newWorker(url, { ...job, shared: control.shared }, name);
    worker.on('message', hear);
    worker.on('error', (error: Error) => {
      fail(startError(error, name));
    });
    worker.on('exit', (code) => {
      fail(new Error(`the thread ${name} ended with code ${code}`)); // after 'end' or 'fail' this finds all settled
    });
  } catch (error) {
    fail(startError(error as Error, name));
  }

  return {
    opened: opened.promise,
    running: running.promise,
    ended: ended.promise,
    report() {
      const question = deferred<Report>();
      asked.push(question);
      control.askReport();
      return Promise.race([question.promise, ended.promise.then(last)]);
    },
    stop() {
      control.stop();
    },
  };
}

/** Says what is missing where a thread could not be started, which Node tells by a code alone; other errors stay as they are. */
function startError(error: NodeJS.ErrnoException, name: string): Error {
  const { code, message } = error;
  if (code !== 'ERR_WORKER_INIT_FAILED') return error;
  const why = `the thread ${name} could not be started: ${message}`;
  return Object.assign(
    new Error(
      `${why}; this user may have no more threads or open files (ulimit -u, ulimit -n): allow more, or use fewer`,
    ),
    { code },
  );
}

function errorOf<Ended>(failed: Extract<ThreadMessage<unknown, unknown, Ended>, { type: 'fail' }>): Error {
  const { message, port, code, ended } = failed;
  if (failed.usage) return new UsageError(message);
  const options = code === undefined ? {} : { code };
  return ended === undefined ? new PortError(message, port, options) : new RunError(message, port, ended, options);
}
