import { nicSide } from '../forward/bridge.js';
import type { Control } from '../threads/control.js';
import { LinkWatch } from '../forward/link-watch.js';
import type { EndReason } from '../forward/loop.js';
import { native, now, POLLIN } from '../shim/native.js';
import type { Port } from '../ports/port.js';
import { StallWatch } from '../forward/stall.js';
import { ThreadUsage } from '../shim/thread-usage.js';
import type { WaitMode } from '../forward/wait.js';
import { Failed, statsLeft } from '../threads/serve.js';
import type { Engine } from './engines.js';
import type { GenReport } from './gen-report.js';
import type { GenEnded } from './job.js';

export interface GenLoopOptions {
  wait: WaitMode;
  /** Ends after this many nanoseconds; 0: never. */
  ns: number;
  /** Something a person should know, while the loop runs. */
  say(sentence: string): void;
  /** Asked for by the main thread. */
  report(report: GenReport): void;
}

/** ns between two looks at flags, limits and stalled rings. */
const LOOK_NS = 100_000;
/** ns that frames still in the tx rings are given to leave at the end. */
const FLUSH_NS = 1e9;
/** A sender sleeps only where its next frame is further away than this, ns, and wakes this much before. */
const AHEAD_NS = 200_000;
/** Longest sleep, ns: signals are noticed this late at the latest. */
const LONGEST_NS = 10e6;

/** Runs an engine until it is over, or asked to stop, or its port fails. */
export function runEngine(
  engine: Engine,
  port: Port,
  control: Control,
  options: GenLoopOptions,
): GenEnded | Failed<GenEnded> {
  const stalls = new StallWatch({ a: nicSide(port), b: { port, rx: [], tx: [] } });
  const usage = new ThreadUsage();
  const started = now();
  const links = new LinkWatch([port], started);
  const list = Int32Array.from(port.fds.flatMap((fd) => [fd, POLLIN, 0]));

  const report = (t: number, stats: Record<string, number>): GenReport => {
    usage.read();
    return { ...engine.report(), ns: t - started, stats, userNs: usage.userNs, systemNs: usage.systemNs };
  };
  const say = (sentence: string): void => {
    options.say(sentence);
  };
  const look = (t: number): EndReason | undefined => {
    if (control.stopping) return 'stopped';
    if (options.ns > 0 && t - started >= options.ns) return 'time';
    links.look(t, say);
    stalls.look(t, say);
    if (control.takeReport()) options.report(report(t, port.stats()));
    return engine.over(t);
  };
  const idle = (t: number): void => {
    const ahead = engine.wait(t);
    if (ahead > AHEAD_NS) native.sleepNs(Math.floor(Math.min(ahead - AHEAD_NS / 2, LONGEST_NS)));
    if (ahead !== 0) return;
    // Nothing to do until somebody else has done something, who may need this CPU for it.
    if (options.wait === 'busy') native.yieldCpu();
    else if (port.fds.length > 0) native.poll(list, port.fds.length, LONGEST_NS / 1e6);
    else native.sleepNs(port.napNs);
  };
  const spin = (): EndReason => {
    // Asked to stop while links or other threads were awaited, it moves nothing.
    if (control.stopping) return 'stopped';
    for (let looked = started; ;) {
      const t = now();
      let reason: EndReason | undefined;
      if (engine.turn(t) === 0) {
        idle(t);
        reason = engine.over(t);
      }
      if (t - looked >= LOOK_NS) {
        looked = t;
        reason = look(t);
      }
      if (reason !== undefined) return reason;
    }
  };

  // The rates are about the time in which frames were made, not about the flush.
  const flush = (): void => {
    for (const deadline = now() + FLUSH_NS; port.txPending() > 0 && (now() < deadline || port.settling?.() === true);) {
      port.txsync();
      native.sleepNs(1000);
    }
  };

  try {
    const reason = spin();
    const ended = now();
    flush();
    return { reason, report: report(ended, port.stats()) };
  } catch (error) {
    const ended = now();
    try {
      flush();
    } catch {
      // Nothing leaves any more; `error` says why.
    }
    return new Failed<GenEnded>(error, { reason: 'failed', report: report(ended, statsLeft(port)) });
  } finally {
    usage.close();
  }
}
