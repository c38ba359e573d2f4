import type { Worker } from 'node:worker_threads';
import { Control } from './control.js';
import { deferred, type Deferred } from './deferred.js';
import { newWorker } from './new-thread.js';
import { PortError, RunError, UsageError } from '../text/errors.js';
import type { PortInfo } from '../ports/port-info.js';
import type { Failure, Order, Word } from './protocol.js';
import { ThreadWatch } from './watch.js';

/** A run on a thread's ports. */
export interface Running<Report, Ended> {
  /** Links were awaited and frames flow. */
  readonly running: Promise<undefined>;
  /**
   * The run ended by itself or because stop() was called. Rejects when it failed: with a RunError, which holds what was
   * counted until then, where frames had flowed.
   */
  readonly ended: Promise<Ended>;
  /** The state now; the final one when the run ends meanwhile. */
  readonly report: () => Promise<Report>;
  /** Sends what is in the tx rings and ends the run. */
  readonly stop: () => void;
}

interface ThreadOptions<Opened, Report, Ended> {
  /** File of the thread's code, which calls serve(). */
  url: URL;
  /** What the thread is called in errors and debuggers. */
  name: string;
  /** Plain data for what it opens. */
  job: object;
  /** The final state of a run. */
  last: (ended: Ended) => Report;
  /** The ports that are watched while it runs. */
  ports?: (opened: Opened) => readonly PortInfo[];
  onSay?: ((sentence: string) => void) | undefined;
}

/** A run as the thread's words settle it. */
interface Current<Report, Ended> {
  readonly control: Control;
  readonly running: Deferred<undefined>;
  readonly ended: Deferred<Ended>;
  asked: Deferred<Report>[];
}

/** A thread with ports of its own, on which it makes one run after the other. */
export class Thread<Opened, Run, Report, Ended> {
  readonly #options: ThreadOptions<Opened, Report, Ended>;
  readonly #opened = deferred<Opened>();
  readonly #closed = deferred<undefined>();
  #worker: Worker | undefined;
  #run: Current<Report, Ended> | undefined;
  #watch: ThreadWatch | undefined;
  /** Why there will be no more runs. */
  #dead: Error | undefined;

  constructor(options: ThreadOptions<Opened, Report, Ended>) {
    const { url, name, job } = (this.#options = options);
    // A thread that cannot be started fails as one that ends: whoever started others with it stops those.
    try {
      this.#worker = newWorker(url, job, name);
      this.#worker.on('message', (word: Word<Opened, Report, Ended>) => {
        this.#hear(word);
      });
      this.#worker.on('error', (error: Error) => {
        this.#die(startError(error, name));
      });
      this.#worker.on('exit', (code) => {
        if (code === 0) this.#closed.resolve(undefined);
        this.#die(new Error(`the thread ${name} ended with code ${code}`)); // after close() this finds all settled
      });
    } catch (error) {
      this.#die(startError(error as Error, name));
    }
  }

  /** What was opened. Rejects with UsageError or PortError. */
  get opened(): Promise<Opened> {
    return this.#opened.promise;
  }

  /** Starts a run, once the ports are open; the one before has to be over. */
  start(run: Run, control = new Control()): Running<Report, Ended> {
    const current: Current<Report, Ended> = { control, running: deferred(), ended: deferred(), asked: [] };
    this.#run = current;
    if (this.#dead !== undefined) this.#fail(this.#dead);
    this.#order({ type: 'start', run, shared: control.shared });
    const { running, ended } = current;
    return {
      running: running.promise,
      ended: ended.promise,
      report: () => {
        const question = deferred<Report>();
        current.asked.push(question);
        control.askReport();
        return Promise.race([question.promise, ended.promise.then((last) => this.#options.last(last))]);
      },
      stop: () => {
        control.stop();
      },
    };
  }

  /** No run follows: once the present one is over the ports are closed and the thread ends. Rejects when that fails. */
  finish(): Promise<undefined> {
    this.#order({ type: 'close' });
    return this.#closed.promise;
  }

  /** Ends the run that is on, closes the ports and ends the thread. */
  close(): Promise<undefined> {
    this.#run?.control.stop();
    return this.finish();
  }

  #order(order: Order<Run>): void {
    this.#worker?.postMessage(order);
  }

  #hear(word: Word<Opened, Report, Ended>): void {
    const { onSay = () => undefined, ports } = this.#options;
    const run = this.#run;
    switch (word.type) {
      case 'opened':
        this.#opened.resolve(word.opened);
        break;
      case 'running':
        run?.running.resolve(undefined);
        if (ports !== undefined && run !== undefined)
          void this.opened.then((opened) => {
            if (this.#run === run) this.#watch = new ThreadWatch(run.control, ports(opened), onSay);
          });
        break;
      case 'say':
        onSay(word.sentence);
        break;
      case 'report':
        for (const question of run?.asked.splice(0) ?? []) question.resolve(word.report);
        break;
      case 'end':
        run?.ended.resolve(word.ended);
        this.#over();
        break;
      case 'fail':
        this.#fail(errorOf(word));
    }
  }

  /** The run is over; what was asked meanwhile is answered by its end. */
  #over(): void {
    this.#watch?.close();
    this.#run = undefined;
  }

  /** Of a run, or of opening or closing where there is none. */
  #fail(error: Error): void {
    this.#opened.reject(error);
    const run = this.#run;
    if (run === undefined) this.#closed.reject(error);
    else for (const promise of [run.running, run.ended, ...run.asked]) promise.reject(error);
    this.#over();
  }

  #die(error: Error): void {
    this.#dead ??= error;
    this.#fail(this.#dead);
    this.#closed.reject(this.#dead);
  }
}

/** A thread that makes one run. */
export interface RunningThread<Opened, Report, Ended> extends Running<Report, Ended> {
  /** The ports are open. Rejects with UsageError or PortError. */
  readonly opened: Promise<Opened>;
}

/** Starts a thread for one run; its ports are closed again when `ended` settles. */
export function startThread<Opened, Report, Ended>(
  options: ThreadOptions<Opened, Report, Ended>,
  control?: Control,
): RunningThread<Opened, Report, Ended> {
  const thread = new Thread<Opened, undefined, Report, Ended>(options);
  const run = thread.start(undefined, control);
  const closed = thread.finish();
  // What a run failed by is told, not what closing did after it.
  const ended = Promise.allSettled([run.ended, closed]).then(() => run.ended.then((last) => closed.then(() => last)));
  ended.catch(() => undefined);
  return { ...run, opened: thread.opened, ended };
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

function errorOf<Ended>({ usage, message, port, code, ended }: Failure<Ended>): Error {
  if (usage) return new UsageError(message);
  const options = code === undefined ? {} : { code };
  return ended === undefined ? new PortError(message, port, options) : new RunError(message, port, ended, options);
}
