// The loop times one turn of 64. What it makes of them is held against every turn timed, and against the scheduler's own
// account of the thread.
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { now } from '../../lib/shim/native.js';
import { busyNs, BUSY_TURNS, Control, TIMED_NS, TIMED_TURNS, TURNS, WAITED_NS } from '../../lib/threads/control.js';
import { median } from '../../lib/stats/rank.js';
import { spin, type Turning } from '../../lib/threads/loop.js';

/** Of a turn that took longer, the thread had no CPU for a part. */
const HELD_UP_NS = 200e3;
/** Linux: ns on a CPU, ns waiting for one. */
const SCHEDSTAT = '/proc/thread-self/schedstat';

function scheduled(): { ran: number; waited: number } {
  const [ran, waited] = readFileSync(SCHEDSTAT, 'utf8').split(' ').map(Number);
  return { ran, waited };
}

/** Work that has something to do in turns that `due` names, `ns` long, and times each of them. */
class TimedWork implements Turning {
  readonly turns = 64;
  /** Sum and number of the turns that moved something and were not held up. */
  busyNs = 0;
  busyTurns = 0;
  /** All turns since the last yield. */
  sinceIdle = 0;

  constructor(
    readonly due: (work: TimedWork) => boolean,
    readonly ns: number,
  ) {}

  turn(): number {
    this.sinceIdle++;
    if (!this.due(this)) return 0;
    const began = now();
    let ended = now();
    while (ended - began < this.ns) ended = now();
    if (ended - began < HELD_UP_NS) {
      this.busyNs += ended - began;
      this.busyTurns++;
    }
    return 1;
  }

  rest(): boolean {
    this.sinceIdle = 0;
    return false;
  }
}

function run(work: Turning, ns: number): Float64Array {
  const { run } = new Control();
  const end = now() + ns;
  spin(work, run, () => (now() > end ? true : undefined));
  return run;
}

describe('the time that moved something', () => {
  let seed = 1;
  const random = (): number => (seed = (seed * 48271) % 0x7fffffff) / 0x7fffffff;
  const situations: [string, (work: TimedWork) => boolean][] = [
    ['only in the turn after a yield', ({ sinceIdle }) => sinceIdle === 1],
    ['only in the last turn before a look', ({ sinceIdle }) => sinceIdle % 64 === 0],
    ['in one turn of 50, at random', () => random() < 0.02],
    ['in every second turn', ({ sinceIdle }) => sinceIdle % 2 === 0],
    ['in every turn', () => true],
  ];
  for (const [name, due] of situations)
    it(`agrees with every turn timed: ${name}`, () => {
      // Of several runs the middle one: interrupts make single turns longer than all others together.
      const ratios = Array.from({ length: 7 }, () => {
        const work = new TimedWork(due, 5e3);
        const counted = run(work, 80e6);
        assert.ok(counted[BUSY_TURNS] >= work.busyTurns && counted[BUSY_TURNS] <= counted[TURNS]);
        return (busyNs(counted) ?? NaN) / counted[BUSY_TURNS] / (work.busyNs / work.busyTurns);
      });
      const ratio = median(ratios);
      assert.ok(Math.abs(ratio - 1) < 0.1, `${ratio} of what every turn timed came to; ${ratios.join(' ')}`);
    });

  it('is nothing where nothing moved, and not known where no turn that did was timed', () => {
    assert.equal(busyNs(run(new TimedWork(() => false, 0), 1e6)), 0);
    assert.equal(busyNs({ [BUSY_TURNS]: 3, [TIMED_TURNS]: 0, [TIMED_NS]: 0, length: 4 }), undefined);
  });

  it('of work that never ends is the CPU time that the scheduler counted', { skip: !existsSync(SCHEDSTAT) }, () => {
    const before = scheduled();
    const counted = run(new TimedWork(() => true, 2e3), 600e6);
    const after = scheduled();
    const ran = after.ran - before.ran;
    const share = (busyNs(counted) ?? NaN) / ran;
    assert.ok(share > 0.85 && share < 1.1, `${share} of the ${ran} ns that the thread ran`);
    const waited = after.waited - before.waited;
    assert.ok(
      Math.abs(counted[WAITED_NS] - waited) < 2e6,
      `waited ${counted[WAITED_NS]} ns, the scheduler says ${waited}`,
    );
  });
});
