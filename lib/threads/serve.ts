/** The side of a thread that runs ports: what its code is made of, see thread.ts for the side that started it. */
import { cpus } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { PortError, UsageError } from '../text/errors.js';
import type { Control } from './control.js';
import { native, now } from '../shim/native.js';
import type { Port } from '../ports/port.js';
import type { ThreadMessage } from './thread.js';

type Post<Opened, Report, Ended> = (message: ThreadMessage<Opened, Report, Ended>) => void;

/** Frames flowed, and then a port failed. */
export class Failed<Ended> {
  constructor(
    readonly error: unknown,
    /** What had been counted until then. */
    readonly ended: Ended,
  ) {}
}

/** Does the thread's job and sends its last word: what `work` returns, or why it failed. */
export function serve<Opened, Report, Ended>(work: (post: Post<Opened, Report, Ended>) => Ended | Failed<Ended>): void {
  const post: Post<Opened, Report, Ended> = (message) => {
    parentPort!.postMessage(message);
  };
  try {
    const ended = work(post);
    if (ended instanceof Failed) post({ ...failure(ended.error), ended: ended.ended });
    else post({ type: 'end', ended });
  } catch (error) {
    post(failure(error));
  }
}

/** What is known of an error; one that nobody foresaw keeps its stack. */
export function failure(error: unknown): Extract<ThreadMessage<never, never, never>, { type: 'fail' }> {
  const { message, stack, code, port = '' } = error as Error & { code?: string; port?: string };
  const usage = error instanceof UsageError;
  const foreseen = usage || error instanceof PortError || code !== undefined;
  return { type: 'fail', usage, message: foreseen ? message : (stack ?? message), port, code };
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
const LINK_WAIT_S = 4;

/**
 * Waits for links that are down, for `seconds` at most (undefined: 4), and says which are still down then.
 * @param control ends the wait when it asks to stop
 */
export function waitForLinks(
  ports: readonly Port[],
  seconds: number | undefined,
  control: Control,
  say: (sentence: string) => void,
): void {
  const linked = ports.filter((port) => port.hasLink);
  const most = seconds ?? LINK_WAIT_S;
  const deadline = now() + most * 1e9;
  const down = linked.filter((port) => !port.linkUp()).map(({ name }) => name);
  if (down.length > 0 && most > 0) say(`waiting up to ${most} s for the link of ${down.join(' and ')}`);
  while (!control.stopping && now() < deadline && linked.some((port) => !port.linkUp())) native.sleepNs(10e6);
  if (control.stopping) return;
  for (const port of linked) {
    if (!port.linkUp()) say(`${port.name}: the link is down; frames flow once it is up`);
  }
}

/** Statistics of a port that may be what failed: none where it cannot tell them any more. */
export function statsLeft(port: Port): Record<string, number> {
  try {
    return port.stats();
  } catch {
    return {};
  }
}
