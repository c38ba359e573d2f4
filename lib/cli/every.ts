/** The longest time that a timer takes, ms: 24.8 days. */
const LONGEST_MS = 2 ** 31 - 1;

/**
 * Calls `action` every `seconds` until the returned function is called. The moments are multiples of the interval from
 * the start, however late each call was, so the lateness does not add up; a moment missed altogether is left out.
 */
export function every(seconds: number, action: (stopped: () => boolean) => Promise<void>): () => void {
  const period = seconds * 1000;
  const start = performance.now();
  let timer: NodeJS.Timeout;
  let done = false;
  const plan = (): void => {
    runAt(start + period * (Math.floor((performance.now() - start) / period) + 1));
  };
  /** A timer can be a fraction of a millisecond early, and has a longest time. */
  const runAt = (due: number): void => {
    const left = due - performance.now();
    if (left <= 0) run();
    else timer = setTimeout(runAt, Math.min(Math.ceil(left), LONGEST_MS), due);
  };
  const run = (): void => {
    // What fails meanwhile is told to whoever waits for the end.
    void action(() => done)
      .catch(() => undefined)
      .finally(() => {
        if (!done) plan();
      });
  };
  plan();
  return () => {
    done = true;
    clearTimeout(timer);
  };
}
