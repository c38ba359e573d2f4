import { LATEST_NS, STARTED_NS, SYSTEM_NS, USER_NS, type Control } from '../threads/control.js';
import { runLoop, type Work } from '../threads/loop.js';
import { clock, native, POLLIN } from '../shim/native.js';
import type { Port } from '../ports/port.js';
import { StallWatch } from '../forward/stall.js';
import type { WaitMode } from '../forward/wait.js';
import { statsLeft, type RunEnd, type Tell } from '../threads/serve.js';
import type { Engine } from './engines.js';
import type { GenReport } from './gen-report.js';
import type { GenEnded } from './job.js';

/** A sender sleeps only where its next frame is further away than this, ns, and wakes this much before. */
const AHEAD_NS = 200_000;
/** Longest sleep, ns: signals are noticed this late at the latest. */
const LONGEST_NS = 10e6;

/** How the thread of an engine waits. Returns whether it slept. */
function rester(engine: Engine, port: Port, mode: WaitMode): (moved: boolean) => boolean {
  const list = Int32Array.from(port.fds.flatMap((fd) => [fd, POLLIN]));
  return (moved) => {
    if (moved) return false;
    const ahead = engine.wait(clock[0]);
    // Below 0 a frame has become due since the turn.
    if (ahead !== 0) {
      if (ahead > AHEAD_NS) native.sleepNs(Math.floor(Math.min(ahead - AHEAD_NS / 2, LONGEST_NS)));
      return ahead > AHEAD_NS;
    }
    // Nothing to do until somebody else has done something, who may need this CPU for it.
    if (mode === 'busy') native.yieldCpu();
    else if (port.fds.length > 0) native.poll(list, port.fds.length, LONGEST_NS / 1e6);
    else native.sleepNs(port.napNs);
    return mode !== 'busy';
  };
}

/** An engine as a thread's work. Every turn goes by the time at which it begins. */
function engineWork(engine: Engine, port: Port, mode: WaitMode, report: () => GenReport): Work<GenReport> {
  const stalls = new StallWatch(port.tx.map((ring) => ({ ring, port: port.name, blocked: () => ring.space === 0 })));
  let able = true;
  return {
    turns: 1,
    ports: [port],
    turn: () => engine.turn(clock[0]),
    rest: rester(engine, port, mode),
    over: () => engine.over(clock[0]),
    watch: (t, say) => {
      stalls.look(t, say);
    },
    flush: () => {
      if (!able || port.txPending() === 0) return true;
      able = false;
      port.txsync();
      able = true;
      return port.txPending() === 0;
    },
    report,
  };
}

/**
 * Runs an engine until it is over, or asked to stop, or its port fails.
 * @param ns ends it after so many nanoseconds; 0: never
 */
export function runEngine(
  engine: Engine,
  port: Port,
  control: Control,
  tell: Tell<GenReport>,
  { wait, ns }: { wait: WaitMode; ns: number },
): RunEnd<GenEnded> {
  const { run } = control;
  const report = (stats: Record<string, number>): GenReport => ({
    ...engine.report(),
    ns: run[LATEST_NS] - run[STARTED_NS],
    stats,
    userNs: run[USER_NS],
    systemNs: run[SYSTEM_NS],
  });
  const work = engineWork(engine, port, wait, () => report(port.stats()));
  const { ended: reason, failure } = runLoop(work, control, tell, ns);
  return { ended: { reason, report: report(failure === undefined ? port.stats() : statsLeft(port)) }, failure };
}
