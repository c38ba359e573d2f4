import { Worker } from 'node:worker_threads';
import { Control } from '../control.js';
import { deferred, type Deferred } from '../deferred.js';
import { PortError, UsageError } from '../errors.js';
import type { EndReason } from '../loop.js';
import { parsePortSpec } from '../portspec.js';
import type { PortInfo } from '../portinfo.js';
import type { GenReport } from './report.js';
import type { GenJob, GenMessage, GenSettings } from './worker.js';

/** What was opened. */
export interface GenOpened {
  port: PortInfo;
  /** The address frames are sent from. */
  sourceMac: string;
}

export interface GenEnded {
  reason: EndReason;
  report: GenReport;
}

export interface RunningGenerator {
  readonly opened: Promise<GenOpened>;
  /** The link is up or was waited for, and frames flow. */
  readonly running: Promise<undefined>;
  /** The run ended by itself or because stop() was called. Rejects when it failed. */
  readonly ended: Promise<GenEnded>;
  /** The state now; the final one when the run ends meanwhile. */
  report(): Promise<GenReport>;
  /** Sends what is in the tx rings, closes the port and ends. */
  stop(): void;
}

/**
 * Runs the generator in a worker thread.
 * @throws UsageError when the port name says nothing
 */
export function startGenerator(
  settings: GenSettings,
  onSay: (sentence: string) => void = () => undefined,
): RunningGenerator {
  parsePortSpec(settings.name);
  const control = new Control();
  const job: GenJob = { ...settings, shared: control.shared };
  const worker = new Worker(new URL('./worker.js', import.meta.url), { workerData: job, name: 'pkt-gen' });
  const opened = deferred<GenOpened>();
  const running = deferred<undefined>();
  const ended = deferred<GenEnded>();
  let asked: Deferred<GenReport>[] = [];

  const answer = (report: GenReport): void => {
    for (const question of asked) question.resolve(report);
    asked = [];
  };
  const fail = (error: Error): void => {
    for (const promise of [opened, running, ended, ...asked]) promise.reject(error);
    asked = [];
  };
  worker.on('message', (message: GenMessage) => {
    switch (message.type) {
      case 'open':
        opened.resolve(message);
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
        ended.resolve({ reason: message.reason, report: message.report });
        answer(message.report);
        break;
      case 'fail':
        fail(
          message.usage
            ? new UsageError(message.message)
            : new PortError(message.message, message.port, message.code === undefined ? {} : { code: message.code }),
        );
    }
  });
  worker.on('error', fail);
  worker.on('exit', (code) => {
    fail(new Error(`the generator's thread ended with code ${code}`)); // after 'end' or 'fail' this finds all settled
  });

  return {
    opened: opened.promise,
    running: running.promise,
    ended: ended.promise,
    report() {
      const question = deferred<GenReport>();
      asked.push(question);
      control.askReport();
      return Promise.race([question.promise, ended.promise.then(({ report }) => report)]);
    },
    stop() {
      control.stop();
    },
  };
}
