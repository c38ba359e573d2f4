import type { Worker } from 'node:worker_threads';
import { Control } from '../../threads/control.js';
import { deferred, type Deferred } from '../../threads/deferred.js';
import { PortError, UsageError } from '../../text/errors.js';
import type { GenReport } from '../../gen/gen-report.js';
import { newWorker } from '../../threads/new-thread.js';
import { parsePortSpec } from '../../names/portspec.js';
import type { WaitMode } from '../../forward/wait.js';
import type { EndJob, EndMessage, EndRun } from './end-worker.js';

type Shared<Run> = Run extends { shared: SharedArrayBuffer } ? Omit<Run, 'shared'> : never;

/** A run on a generator's or sink's port. */
export interface RunningEnd {
  /** Frames are sent, or waited for. */
  readonly running: Promise<undefined>;
  readonly ended: Promise<GenReport>;
  /** The state now; the final one when the run ends meanwhile. */
  report(): Promise<GenReport>;
  stop(): void;
}

/** A generator or sink in a thread of its own, whose port stays open from run to run. */
export class End {
  readonly #worker: Worker;
  readonly #open = deferred<undefined>();
  #running = deferred<undefined>();
  #ended = deferred<GenReport>();
  #asked: Deferred<GenReport>[] = [];
  #control = new Control();
  readonly #gone = deferred<undefined>();
  /** Why there will be no more runs. */
  #dead: Error | undefined;

  private constructor(
    readonly name: string,
    wait: WaitMode,
  ) {
    const job: EndJob = { name, wait };
    this.#worker = newWorker(new URL('./end-worker.js', import.meta.url), job, 'bench end');
    this.#worker.on('message', (message: EndMessage) => {
      this.#take(message);
    });
    this.#worker.on('error', (error) => {
      this.#dead = error;
    });
    this.#worker.on('exit', (code) => {
      this.#dead ??= new PortError(`${name}: its thread ended with code ${code}`, name);
      this.#fail(this.#dead); // after close() nobody waits
      this.#gone.resolve(undefined);
    });
  }

  /** Opens the port and waits for its link. @throws UsageError, PortError */
  static async open(name: string, wait: WaitMode): Promise<End> {
    parsePortSpec(name);
    const end = new End(name, wait);
    await end.#open.promise;
    return end;
  }

  /** Starts a run; the one before has to be over. */
  start(run: Shared<EndRun>): RunningEnd {
    this.#running = deferred();
    this.#ended = deferred();
    this.#asked = [];
    const [running, ended] = [this.#running, this.#ended];
    const control = new Control();
    this.#control = control;
    if (this.#dead !== undefined) this.#fail(this.#dead);
    this.#worker.postMessage({ ...run, shared: control.shared });
    return {
      running: running.promise,
      ended: ended.promise,
      report: () => {
        const question = deferred<GenReport>();
        this.#asked.push(question);
        control.askReport();
        return Promise.race([question.promise, ended.promise]);
      },
      stop: () => {
        control.stop();
      },
    };
  }

  /** Ends the run that is on, closes the port and ends the thread. */
  async close(): Promise<void> {
    this.#control.stop();
    this.#worker.postMessage({ kind: 'close' } satisfies EndRun);
    await this.#gone.promise;
  }

  #take(message: EndMessage): void {
    switch (message.type) {
      case 'open':
        this.#open.resolve(undefined);
        break;
      case 'running':
        this.#running.resolve(undefined);
        break;
      case 'report':
        for (const question of this.#asked) question.resolve(message.report);
        this.#asked = [];
        break;
      case 'end':
        this.#ended.resolve(message.report);
        break;
      case 'fail':
        this.#fail(message.usage ? new UsageError(message.message) : new PortError(message.message, this.name));
    }
  }

  #fail(error: Error): void {
    for (const promise of [this.#open, this.#running, this.#ended, ...this.#asked]) promise.reject(error);
    this.#asked = [];
  }
}
