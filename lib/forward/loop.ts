import type { Bridge } from './bridge.js';
import {
  BUSY_NS,
  BUSY_TURNS,
  CYCLES,
  LATEST_NS,
  SAMPLED_NS,
  STARTED_NS,
  SYSTEM_NS,
  TURNS,
  USER_NS,
  type Control,
} from '../threads/control.js';
import { LinkWatch } from './link-watch.js';
import { clock, native, now } from '../shim/native.js';
import { StallWatch } from './stall.js';
import { ThreadUsage } from '../shim/thread-usage.js';
import { PollWait, type WaitMode } from './wait.js';

export interface LoopOptions {
  wait: WaitMode;
  /** Ends after this many nanoseconds; 0: never. */
  ns: number;
  /** Something a person should know, while the loop runs. */
  say(sentence: string): void;
  /** Asked for by the main thread: the ports' own statistics are to be sent. */
  report(): void;
}

/** Why a loop ended. */
export type EndReason = 'stopped' | 'ended' | 'frames' | 'time';

/** Turns between two looks at the clock, the flags and the limits. One turn is a microsecond or so. */
const LOOK_EVERY = 64;
/** ns between two looks at what is slow to find out: stalled rings, ended sources. */
const SLOW_LOOK_NS = 1e6;
/** ns that frames still in the tx rings are given to leave once the loop was asked to end. */
const FLUSH_NS = 1e9;

/**
 * Runs a bridge until it is asked to stop, its sources end, or a limit is reached.
 * @throws what a port threw, once everything has been counted
 */
export function runLoop(bridge: Bridge, control: Control, options: LoopOptions): EndReason {
  const { run } = control;
  const wait = options.wait === 'poll' ? new PollWait(bridge) : undefined;
  const stalls = new StallWatch(bridge);
  const usage = new ThreadUsage();
  const started = now();
  const links = new LinkWatch(new Set([bridge.a.port, bridge.b.port]), started);
  run[STARTED_NS] = started;
  let slowLook = started;
  const say = (sentence: string): void => {
    options.say(sentence);
  };

  const readUsage = (): void => {
    usage.read();
    run[USER_NS] = usage.userNs;
    run[SYSTEM_NS] = usage.systemNs;
    run[CYCLES] = usage.cycles;
  };
  const look = (): EndReason | undefined => {
    const t = clock[0];
    run[LATEST_NS] = t;
    if (control.stopping) return 'stopped';
    if (options.ns > 0 && t - started >= options.ns) return 'time';
    if (bridge.limitReached) return 'frames';
    if (t - slowLook < SLOW_LOOK_NS) return undefined;
    slowLook = t;
    readUsage();
    links.look(t, say);
    stalls.look(t, say);
    if (control.takeReport()) {
      bridge.countRefused();
      options.report();
    }
    return bridge.finished() ? 'ended' : undefined;
  };

  let failure: { error: unknown } | undefined;
  const attempt = <T>(action: () => T): T | undefined => {
    try {
      return action();
    } catch (error) {
      failure ??= { error };
      return undefined;
    }
  };
  const reason = attempt(() => spin(bridge, run, wait, look));
  // Where one port failed the other is well: what is on its way there leaves, and is counted, before the failure is told.
  const settling = (): boolean => bridge.a.port.settling?.() === true || bridge.b.port.settling?.() === true;
  for (const deadline = now() + FLUSH_NS; attempt(() => bridge.flush()) !== true && (now() < deadline || settling());)
    native.sleepNs(1000);
  bridge.countUnsent();
  readUsage();
  usage.close();
  if (reason !== undefined && failure === undefined) return reason;
  throw failure?.error;
}

/**
 * Turns the bridge until `look`, called every few turns after the clock was read, gives a result.
 * @param run  TURNS, BUSY_TURNS, SAMPLED_NS and BUSY_NS are added to
 * @param wait how to wait after a turn that moved nothing; absent: spin on
 */
export function spin<Result>(
  bridge: Bridge,
  run: Float64Array,
  wait: PollWait | undefined,
  look: () => Result | undefined,
): Result {
  for (;;) {
    let busyTurns = 0;
    let i = 1;
    for (; ; i++) {
      // One turn in LOOK_EVERY is timed: a sample of how much of the thread's time moves frames.
      const timed = i === LOOK_EVERY;
      if (timed) native.readClock();
      const t0 = clock[0];
      const moved = bridge.turn();
      if (moved > 0) busyTurns++;
      if (timed) {
        native.readClock();
        const ns = clock[0] - t0;
        run[SAMPLED_NS] += ns;
        if (moved > 0) run[BUSY_NS] += ns;
        break;
      }
      if (moved === 0 && wait !== undefined) {
        wait.wait();
        break;
      }
    }
    run[TURNS] += i;
    run[BUSY_TURNS] += busyTurns;
    // Nothing came for a while: whoever shares this CPU, the kernel's receiving threads first, may bring it sooner.
    if (busyTurns === 0 && wait === undefined) native.yieldCpu();
    native.readClock();
    const result = look();
    if (result !== undefined) return result;
  }
}
