/** The side of a thread that runs ports: what its code is made of, see thread.ts for the side that started it. */
import { cpus } from 'node:os';
import { parentPort, workerData } from 'node:worker_threads';
import { PortError, UsageError } from '../text/errors.js';
import { Control } from './control.js';
import { native, now } from '../shim/native.js';
import type { Port } from '../ports/port.js';
import type { Failure, Order, Word } from './protocol.js';

/** What a thread says while it runs. */
export interface Tell<Report> {
  readonly running: () => void;
  readonly say: (sentence: string) => void;
  readonly report: (report: Report) => void;
}

/** How a run ended; `failure` where frames flowed and then a port failed. */
export interface RunEnd<Ended> {
  ended: Ended;
  failure?: { error: unknown } | undefined;
}

/** What a thread has opened, and makes its runs on. */
export interface Served<Opened, Run, Report, Ended> {
  readonly opened: Opened;
  readonly run: (run: Run, control: Control, tell: Tell<Report>) => RunEnd<Ended>;
  readonly close: () => void;
}

type Opening<T> = T | Promise<T>;

/**
 * Opens what the thread is for, makes the runs it is sent, and closes: to be called once, at the end of its file. Orders
 * that come while it opens wait.
 */
export function serve<Opened, Run, Report, Ended>(
  open: (job: never, say: (sentence: string) => void) => Opening<Served<Opened, Run, Report, Ended>>,
): void {
  const port = parentPort!;
  const post = (word: Word<Opened, Report, Ended>): void => {
    port.postMessage(word);
  };
  const attempt = (action: () => void): void => {
    try {
      action();
    } catch (error) {
      post(failureOf(error));
    }
  };
  const tell: Tell<Report> = {
    running: () => {
      post({ type: 'running' });
    },
    say: (sentence) => {
      post({ type: 'say', sentence });
    },
    report: (report) => {
      post({ type: 'report', report });
    },
  };
  const offer = (served: Served<Opened, Run, Report, Ended>): void => {
    post({ type: 'opened', opened: served.opened });
    port.on('message', (order: Order<Run>) => {
      attempt(() => {
        if (order.type === 'close') {
          served.close();
          return;
        }
        const { ended, failure } = served.run(order.run, new Control(order.shared), tell);
        post(failure === undefined ? { type: 'end', ended } : { ...failureOf(failure.error), ended });
      });
      if (order.type === 'close') port.close();
    });
  };
  attempt(() => {
    const served = open(workerData as never, tell.say);
    if (!(served instanceof Promise)) offer(served);
    else
      served.then(offer).catch((error: unknown) => {
        post(failureOf(error));
      });
  });
}

/** What is known of an error; one that nobody foresaw keeps its stack. */
function failureOf(error: unknown): Failure {
  const { message, stack, code, port = '' } = error as Error & { code?: string; port?: string };
  const usage = error instanceof UsageError;
  const foreseen = usage || error instanceof PortError || code !== undefined;
  return { type: 'fail', usage, message: foreseen ? message : (stack ?? message), port, code };
}

/** Something that is to be closed. */
interface Closing {
  close?(): void;
}

/** Closes all, whatever closing one of them throws. @throws the first of these errors */
export function closeAll(opened: readonly Closing[]): void {
  const failures: unknown[] = [];
  for (const one of opened) {
    try {
      one.close?.();
    } catch (error) {
      failures.push(error);
    }
  }
  if (failures.length > 0) throw failures[0];
}

/** What `make` makes of what was opened. Where it throws, that is closed, and it is its error that is told. */
export function orClose<T>(opened: readonly Closing[], make: () => T): T {
  try {
    return make();
  } catch (error) {
    try {
      closeAll(opened);
    } catch {
      // `error` is what came first.
    }
    throw error;
  }
}

/** @throws UsageError when the machine has no such CPU, or none for this process */
export function pin(cpu: number): void {
  if (cpu < 0) return;
  try {
    native.pin(cpu);
  } catch (error) {
    throw new UsageError(
      `no thread can run on CPU ${cpu}: ${(error as Error).message}; this machine has ${cpus().length}, numbered from 0`,
    );
  }
}

/** Seconds that links take to come up at most after a NIC entered netmap mode; upstream's tools wait as long. */
export const LINK_WAIT_S = 4;

/** Waits for links that are down, for `seconds` at most or until `stopping`. Returns the ports whose links still are. */
export function linksDown(ports: readonly Port[], seconds: number, stopping = (): boolean => false): Port[] {
  const down = (): Port[] => ports.filter((port) => port.hasLink && !port.linkUp());
  const deadline = now() + seconds * 1e9;
  let left = down();
  for (; left.length > 0 && !stopping() && now() < deadline; left = down()) native.sleepNs(10e6);
  return left;
}

/**
 * Waits for links that are down, for `seconds` at most, and says which are still down then.
 * @param control ends the wait when it asks to stop
 */
export function waitForLinks(
  ports: readonly Port[],
  seconds = LINK_WAIT_S,
  control: Control,
  say: (sentence: string) => void,
): void {
  const down = linksDown(ports, 0);
  if (down.length > 0 && seconds > 0)
    say(`waiting up to ${seconds} s for the link of ${down.map(({ name }) => name).join(' and ')}`);
  for (const port of linksDown(ports, seconds, () => control.stopping))
    if (!control.stopping) say(`${port.name}: the link is down; frames flow once it is up`);
}

/** Statistics of a port that may be what failed: none where it cannot tell them any more. */
export function statsLeft(port: Port): Record<string, number> {
  try {
    return port.stats();
  } catch {
    return {};
  }
}
