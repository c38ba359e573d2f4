import { clock, native, now } from '../shim/native.js';
import { ThreadUsage } from '../shim/thread-usage.js';
import { ThreadWait } from '../shim/thread-wait.js';
import type { Port } from '../ports/port.js';
import {
  BUSY_TURNS,
  CYCLES,
  LATEST_NS,
  LONGEST_GAP_NS,
  STARTED_NS,
  SYSTEM_NS,
  TIMED_NS,
  TIMED_TURNS,
  TURNS,
  USER_NS,
  WAITED_NS,
  type Control,
} from './control.js';
import { LinkWatch } from './link-watch.js';
import type { RunEnd, Tell } from './serve.js';

/** What a loop turns, and how it waits. */
export interface Turning {
  /** Turns between two looks at the clock, at most. With 1, `clock[0]` is now in every turn. */
  readonly turns: number;
  /** One turn. Returns the slots moved. */
  turn(): number;
  /** Called between turns and a look, with whether anything moved since the last. Returns whether it slept of its own will. */
  rest(moved: boolean): boolean;
}

/** What is run in a thread: turns, and what there is to see to between them. */
export interface Work<Report> extends Turning {
  readonly ports: readonly Port[];
  /** Why the run is over by itself. Asked at every look at the clock. */
  over(): EndReason | undefined;
  /** Looks at what is slow to find out, at CLOCK_MONOTONIC `t`, ns. */
  watch(t: number, say: (sentence: string) => void): void;
  /** Sends what is in the tx rings. Returns whether all has left; where a port failed, what of the others had to leave. */
  flush(): boolean;
  report(): Report;
  /** Takes in rings that the ports have opened meanwhile; absent where it cannot. */
  grow?(): void;
}

/** Why a loop ended: it was asked to, its sources ended, or the frames or the time that it was given are spent. */
export type EndReason = 'stopped' | 'ended' | 'frames' | 'time';

/** Turns between two looks at the clock where turns need no time of their own; an idle one takes less than a microsecond. */
export const PASS_TURNS = 64;
/**
 * Slots after which the clock is looked at, however few turns moved them: some milliseconds where each needs a closer
 * look. A look after every 1,024 slots cost unlimited simulated ports 6 %.
 */
const PASS_SLOTS = 8192;
/** Where looks are further apart than this, ns, the next pass has half as many turns. */
const PASS_NS = 100e3;
/**
 * One turn of so many is timed, on average. Which one is drawn: turns after a look or a yield, where there is most to do,
 * are timed as often as others.
 */
const TIME_EVERY = 64;
/** A timed turn longer than this, ns, may have had no CPU for a while. */
const LONG_TURN_NS = 50e3;
/** ns between two looks at how long the thread has waited for a CPU. */
const WAIT_LOOK_NS = 1e6;
/** ns between two looks at what is slow to find out. */
const SLOW_LOOK_NS = 1e6;
/** ns between two looks at what has changed about the ports, and at links that only this thread can see. */
const PORT_LOOK_NS = 100e6;
/** ns that frames still in the tx rings are given to leave at the end. */
const FLUSH_NS = 1e9;

/**
 * Turns until `look`, called after each reading of the clock, gives a result. Between two readings lie a bounded number
 * of turns, a bounded number of slots, and where turns are slow, soon no more than one turn.
 * @param run TURNS, BUSY_TURNS, TIMED_TURNS, TIMED_NS and WAITED_NS are added to, LONGEST_GAP_NS is raised
 */
export function spin<Result>(work: Turning, run: Float64Array, look: () => Result | undefined): Result {
  const wait = new ThreadWait();
  try {
    return spinOn(work, run, wait, look);
  } finally {
    run[WAITED_NS] += wait.read();
    wait.close();
  }
}

function spinOn<Result>(work: Turning, run: Float64Array, wait: ThreadWait, look: () => Result | undefined): Result {
  let most = work.turns;
  let untilTimed = turnsUntilTimed();
  let looked = now();
  let waitLook = looked;
  for (;;) {
    let turns = 0;
    let busyTurns = 0;
    let slots = 0;
    do {
      const timed = --untilTimed === 0;
      const moved = timed ? timedTurn(work, run, wait) : work.turn();
      if (timed) untilTimed = turnsUntilTimed();
      if (moved > 0) busyTurns++;
      slots += moved;
    } while (++turns < most && slots < PASS_SLOTS);
    run[TURNS] += turns;
    run[BUSY_TURNS] += busyTurns;
    native.readClock();
    const ns = clock[0] - looked;
    looked += ns;
    run[LONGEST_GAP_NS] = Math.max(run[LONGEST_GAP_NS], ns);
    most = ns > PASS_NS ? Math.max(1, most >> 1) : Math.min(work.turns, 2 * most);
    const rested = work.rest(busyTurns > 0);
    if (rested || busyTurns === 0) {
      native.readClock();
      if (rested) looked = clock[0];
    }
    // Before the next turn: what was waited for until now is no part of it.
    if (clock[0] - waitLook > WAIT_LOOK_NS) {
      waitLook = clock[0];
      run[WAITED_NS] += wait.read();
    }
    const result = look();
    if (result === undefined) continue;
    run[LONGEST_GAP_NS] = Math.max(run[LONGEST_GAP_NS], clock[0] - looked);
    return result;
  }
}

function turnsUntilTimed(): number {
  return 1 + Math.floor(Math.random() * (2 * TIME_EVERY - 1));
}

/** A turn whose length counts, less what reading the clock takes, if it moves something and was not kept from a CPU. */
function timedTurn(work: Turning, run: Float64Array, wait: ThreadWait): number {
  native.readClock();
  const before = clock[0];
  native.readClock();
  const began = clock[0];
  const moved = work.turn();
  if (moved === 0) return 0;
  native.readClock();
  const ns = clock[0] - began - (began - before);
  if (ns > LONG_TURN_NS) {
    const waited = wait.read();
    run[WAITED_NS] += waited;
    if (waited > ns / 2) return moved;
  }
  run[TIMED_TURNS]++;
  run[TIMED_NS] += ns;
  return moved;
}

/** How a loop ended: by a reason of its own, or because a port failed. */
export type LoopEnd = RunEnd<EndReason | 'failed'>;

/**
 * Runs `work` until it is asked to stop, is over by itself, or `ns` have passed (0: no limit); then what is in the tx
 * rings is sent. Asked to stop before it begins, it moves nothing.
 */
export function runLoop<Report>(work: Work<Report>, control: Control, tell: Tell<Report>, ns: number): LoopEnd {
  const { run } = control;
  const usage = new ThreadUsage();
  const started = now();
  run[STARTED_NS] = run[LATEST_NS] = started;
  const links = new LinkWatch(linksOf(work.ports), started);
  let slowLook = started;
  let portLook = started;

  const readUsage = (): void => {
    usage.read();
    run[USER_NS] = usage.userNs;
    run[SYSTEM_NS] = usage.systemNs;
    run[CYCLES] = usage.cycles;
  };
  const lookSlowly = (t: number): void => {
    slowLook = t;
    readUsage();
    if (t - portLook >= PORT_LOOK_NS) {
      portLook = t;
      for (const port of work.ports) port.news?.().forEach(tell.say);
      links.look(t, tell.say);
    }
    if (control.takeLook()) {
      for (const port of work.ports) port.look?.(work.grow !== undefined);
      work.grow?.();
    }
    work.watch(t, tell.say);
    if (control.takeReport()) tell.report(work.report());
  };
  const look = (): EndReason | undefined => {
    const t = clock[0];
    run[LATEST_NS] = t;
    if (control.stopping) return 'stopped';
    if (ns > 0 && t - started >= ns) return 'time';
    if (t - slowLook >= SLOW_LOOK_NS) lookSlowly(t);
    return work.over();
  };

  let failure: RunEnd<unknown>['failure'];
  const attempt = <T>(action: () => T): T | undefined => {
    try {
      return action();
    } catch (error) {
      failure ??= { error };
      return undefined;
    }
  };
  const reason = control.stopping ? 'stopped' : attempt(() => spin(work, run, look));
  // Rates are about the time in which frames were moved, not about the flush.
  run[LATEST_NS] = now();
  // Where one port failed another is well: what is on its way there leaves, and is counted, before the failure is told.
  const deadline = now() + FLUSH_NS;
  const mayLeave = (): boolean => now() < deadline || work.ports.some((port) => port.settling?.() === true);
  for (; attempt(() => work.flush()) !== true && mayLeave(); run[TURNS]++) native.sleepNs(1000);
  readUsage();
  usage.close();
  return { ended: failure === undefined ? (reason ?? 'failed') : 'failed', failure };
}

/** Links that nobody can ask for from another thread: of ports that are no interface. */
function linksOf(ports: readonly Port[]): { name: string; up: () => boolean }[] {
  return ports
    .filter(({ hasLink, netdev }) => hasLink && netdev === undefined)
    .map((port) => ({ name: port.name, up: () => port.linkUp() }));
}
