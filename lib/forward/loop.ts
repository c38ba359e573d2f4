import type { Bridge } from './bridge.js';
import { native } from '../shim/native.js';
import type { Control } from '../threads/control.js';
import { PASS_TURNS, runLoop, type LoopEnd, type Turning, type Work } from '../threads/loop.js';
import type { Tell } from '../threads/serve.js';
import { StallWatch, txRingsOf } from './stall.js';
import { PollWait, type WaitMode } from './wait.js';

/** A bridge as something to turn; `grown` is to be called when it has more lanes. */
export function turning(bridge: Bridge, mode: WaitMode): Turning & { grown?: () => void } {
  if (mode === 'poll') {
    let wait = new PollWait(bridge);
    // Where poll() syncs every port, it is the only call of a turn: it sends what was moved and shows what has come.
    const turn = wait.syncs ? (): number => bridge.move() : (): number => bridge.turn();
    return {
      turns: 1,
      turn,
      rest: (moved) => {
        if (moved && !wait.syncs) return false;
        wait.wait();
        return true;
      },
      grown: () => {
        wait = new PollWait(bridge);
      },
    };
  }
  return {
    turns: PASS_TURNS,
    turn: () => bridge.turn(),
    rest: (moved) => {
      // Nothing came for a while: whoever shares this CPU, the kernel's receiving threads first, may bring it sooner.
      if (!moved) native.yieldCpu();
      return false;
    },
  };
}

export interface LoopOptions<Report> {
  wait: WaitMode;
  /** Ends it after so many nanoseconds; 0: never. */
  ns: number;
  /** What a report tells. */
  stats: () => Report;
  /** Called about ten times a second, between turns, at CLOCK_MONOTONIC `t`, ns. */
  tick?: (t: number) => void;
}

/** ns between two ticks. */
const TICK_NS = 100e6;

/** A bridge as a thread's work, which is over when its sources are, or at its limit of frames. */
function bridgeWork<Report>(bridge: Bridge, { wait, stats, tick }: LoopOptions<Report>): Work<Report> {
  const { grown, ...turns } = turning(bridge, wait);
  let ticked = 0;
  let stalls = new StallWatch(txRingsOf(bridge));
  let finished = false;
  return {
    ...turns,
    ports: bridge.ports,
    over: () => (bridge.limitReached ? 'frames' : finished ? 'ended' : undefined),
    watch: (t, say) => {
      bridge.settle();
      stalls.look(t, say);
      finished = bridge.finished();
      if (t - ticked < TICK_NS) return;
      ticked = t;
      tick?.(t);
    },
    flush: () => bridge.flush(),
    report: () => {
      bridge.countRefused();
      return stats();
    },
    grow: () => {
      if (!bridge.grow()) return;
      stalls = new StallWatch(txRingsOf(bridge));
      grown?.();
    },
  };
}

/** Bridges until it is asked to stop, the sources end, or a limit is reached; every frame is in a counter then. */
export function bridgeUntilOver<Report>(
  bridge: Bridge,
  control: Control,
  tell: Tell<Report>,
  options: LoopOptions<Report>,
): LoopEnd {
  const end = runLoop(bridgeWork(bridge, options), control, tell, options.ns);
  bridge.countUnsent();
  return end;
}
