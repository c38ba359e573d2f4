import { nicSide } from '../bridge.js';
import type { Control } from '../control.js';
import type { EndReason } from '../loop.js';
import { native, now } from '../native.js';
import type { Port } from '../port.js';
import { StallWatch } from '../stall.js';
import type { WaitMode } from '../wait.js';
import type { Engine } from './engines.js';
import type { GenReport } from './report.js';

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
/** poll.h, the same on Linux and FreeBSD. */
const POLLIN = 0x0001;

/** Runs an engine until it is over, or asked to stop. */
export function runEngine(
  engine: Engine,
  port: Port,
  control: Control,
  options: GenLoopOptions,
): { reason: EndReason; report: GenReport } {
  const stalls = new StallWatch({ a: nicSide(port), b: { port, rx: [], tx: [] } });
  const usage = new Float64Array(4);
  native.threadUsage(usage);
  const [user0, system0] = usage;
  const started = now();
  let looked = started;
  let reason: EndReason | undefined;
  const list = Int32Array.from(port.fds.flatMap((fd) => [fd, POLLIN, 0]));

  const report = (t: number): GenReport => {
    native.threadUsage(usage);
    return {
      ...engine.report(),
      ns: t - started,
      stats: port.stats(),
      userNs: usage[0] - user0,
      systemNs: usage[1] - system0,
    };
  };
  const look = (t: number): EndReason | undefined => {
    if (control.stopping) return 'stopped';
    if (options.ns > 0 && t - started >= options.ns) return 'time';
    stalls.look(t, (sentence) => {
      options.say(sentence);
    });
    if (control.takeReport()) options.report(report(t));
    return engine.over(t);
  };

  while (reason === undefined) {
    const t = now();
    const moved = engine.turn(t);
    if (moved === 0) {
      const ahead = engine.wait(t);
      if (ahead > AHEAD_NS) native.sleepNs(Math.floor(Math.min(ahead - AHEAD_NS / 2, LONGEST_NS)));
      else if (options.wait === 'poll' && ahead === 0) {
        if (port.fds.length > 0) native.poll(list, port.fds.length, LONGEST_NS / 1e6);
        else native.sleepNs(port.napNs);
      }
      reason = engine.over(t);
    }
    if (t - looked >= LOOK_NS) {
      looked = t;
      reason = look(t);
    }
  }
  // The rates are about the time in which frames were made, not about the flush.
  const ended = now();
  for (const deadline = ended + FLUSH_NS; port.txPending() > 0 && now() < deadline;) {
    port.txsync();
    native.sleepNs(1000);
  }
  return { reason, report: report(ended) };
}
