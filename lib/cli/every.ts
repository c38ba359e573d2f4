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
    const due = start + period * (Math.floor((performance.now() - start) / period) + 1);
    timer = setTimeout(() => {
      // A timer can be a fraction of a millisecond early: it would fire again for the same moment.
      if (performance.now() < due) timer = setTimeout(run, 1);
      else run();
    }, due - performance.now());
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
