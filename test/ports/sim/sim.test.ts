// The simulated port on its virtual clock: every figure here is worked out by hand from rates, sizes and times.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Bridge, nicSide } from '../../../lib/forward/bridge.js';
import { SLOTS, TOO_MANY_SLOTS } from '../../../lib/forward/counters.js';
import { openPort, openPorts } from '../../../lib/ports/open.js';
import type { Port } from '../../../lib/ports/port.js';

/** Runs a→b for `us` microseconds of both virtual clocks: one a sync, so two a turn; rx ends one before the end. */
function bridged(a: string, b: string, us: number) {
  const [from, to] = openPorts([`sim:a@clock=virtual,${a}`, `sim:b@clock=virtual,load=0,${b}`]);
  const bridge = new Bridge(nicSide(from), nicSide(to), { oneWay: true });
  for (let i = 0; i < us; i += 2) bridge.turn();
  const result = {
    rx: from.stats(),
    tx: to.stats(),
    counters: bridge.counters[0],
    txPending: to.txPending(),
    queued: from.rx.reduce((sum, ring) => sum + ring.space, 0) + to.txPending(),
  };
  from.close();
  to.close();
  return result;
}

/** Nothing wrong with what left, but for what was lost before it came. */
function isClean({ rx, tx }: ReturnType<typeof bridged>): void {
  const { duplicates, reordered, corrupt, foreign, badSlots } = tx;
  assert.deepEqual([duplicates, reordered, corrupt, foreign, badSlots, rx['badSlots']], [0, 0, 0, 0, 0, 0]);
}

/** Consumes all a port shows, and returns how many slots that was. */
function consume(port: Port): number {
  port.rxsync();
  let slots = 0;
  for (const ring of port.rx) {
    slots += ring.space;
    ring.advance(ring.space);
  }
  return slots;
}

describe('sim: report R2, interrupt moderation against ring size', () => {
  const TICKS = 100;
  const us = TICKS * 124;
  /** 64-byte frames at 10 Gbit/s: 84 bytes each on the wire, 67.2 ns. */
  const offered = Math.floor(((us - 1) * 1000) / 67.2);

  it('loses 44.56 % with 1024 slots and 124 µs: 1023 of the 1845 frames of an interval find a slot', () => {
    const run = bridged('slots=1024,itr=124us', 'slots=4096', us);
    assert.equal(run.rx['offered'], offered);
    // Every interval fills the ring, the last one too.
    assert.equal(run.rx['missed'], offered - TICKS * 1023);
    assert.equal(Math.round((100 * run.rx['missed']) / offered), 45); // 44.56
    isClean(run);
  });

  it('loses nothing with 2048 slots and 124 or 80 µs', () => {
    for (const itr of [124, 80]) {
      const run = bridged(`slots=2048,itr=${itr}us`, 'slots=4096', us);
      assert.deepEqual([run.rx['offered'], run.rx['missed'], run.tx['lost']], [offered, 0, 0]);
      isClean(run);
    }
  });

  it('shows nothing between two ticks, at any rate', () => {
    for (const [rate, atTick] of [
      ['10G', Math.floor(124_000 / 67.2)],
      ['max', 2047],
    ] as const) {
      const port = openPort(`sim:a@clock=virtual,slots=2048,itr=124us,rate=${rate}`);
      for (let us = 1; us < 124; us++) assert.equal(consume(port), 0, `${rate}, ${us} µs`);
      assert.equal(consume(port), atTick, rate);
      for (let us = 125; us < 248; us++) assert.equal(consume(port), 0, `${rate}, ${us} µs`);
      port.close();
    }
  });
});

describe('sim: report R3, frames of several slots', () => {
  it('takes exactly the slots asked for, for any number that fits', () => {
    for (const frags of [1, 2, 3, 7, 16, 33, 50, 60]) {
      const port = openPort(`sim:a@clock=virtual,rate=max,count=3,slots=256,frags=${frags}`);
      assert.equal(consume(port), 3 * frags, `frags=${frags}`);
      port.close();
    }
  });

  it('arrives whole and in order through forward, zero-length slots counted and passed over', () => {
    for (const options of ['frags=4', 'frags=3,skip=5', 'skip=2', 'size=9018,skip=10', 'frags=5,skip=7,budget=32']) {
      const run = bridged(`rate=max,count=5000,${options}`, 'rate=max', 12000);
      assert.deepEqual(
        [run.rx['offered'], run.rx['missed'], run.tx['sent'], run.tx['lost']],
        [5000, 0, 5000, 0],
        options,
      );
      assert.equal(run.counters[TOO_MANY_SLOTS], 0);
      isClean(run);
      const carrying = options.includes('9018') ? 5 : Number(/frags=(\d+)/.exec(options)?.[1] ?? 1);
      assert.equal(run.counters[SLOTS], 5000 * carrying);
      const skip = Number(/skip=(\d+)/.exec(options)?.[1] ?? Infinity);
      // Of z + c slots every skip-th has no frame, and the last slot has one.
      assert.equal(run.rx['zeroSlots'], Math.floor((5000 * carrying - 1) / (skip - 1)), options);
    }
  });

  it('refuses what could never arrive', () => {
    assert.throws(() => openPort('sim:a@skip=1'), {
      name: 'UsageError',
      message: /every slot would be without a frame/,
    });
    assert.throws(() => openPort('sim:a@frags=4,skip=3,slots=6'), { name: 'UsageError', message: /slots=7 or more/ });
    openPort('sim:a@frags=4,skip=3,slots=7').close();
  });
});

describe('sim: rate, load and sizes', () => {
  const US = 997;

  it('offers what the wire carries, to the frame', () => {
    for (const [rate, bits] of [
      ['10G', 1e10],
      ['25G', 25e9],
      ['100G', 1e11],
    ] as const)
      for (const size of [64, 65, 128, 512, 1280, 1518])
        for (const [load, share] of [
          ['100%', 1],
          ['37%', 0.37],
        ] as const) {
          const port = openPort(`sim:a@clock=virtual,rate=${rate},size=${size},load=${load}`);
          for (let us = 0; us < US; us++) consume(port);
          const ns = (8e9 / bits / share) * (size + 20);
          assert.ok(
            Math.abs((US * 1000) / ns - Math.round((US * 1000) / ns)) > 1e-6,
            'no frame ends with the last step',
          );
          assert.equal(port.stats()['offered'], Math.floor((US * 1000) / ns), `${rate} ${size} ${load}`);
          port.close();
        }
  });

  it('offers a mix in its proportions, each frame when its last bit is there', () => {
    // 7 × 64, 4 × 576, 1 × 1518: 7·84 + 4·596 + 1·1538 = 4510 bytes, 3608 ns a round of 12.
    const run = bridged('size=64*7+576*4+1518,count=1200', 'rate=max', 400);
    assert.deepEqual([run.rx['offered'], run.tx['sent']], [1200, 1200]);
    assert.equal(run.tx['sentBytes'], 100 * (7 * 60 + 4 * 572 + 1514));
    isClean(run);
    const port = openPort('sim:a@clock=virtual,step=3608ns,size=64*7+576*4+1518');
    for (let round = 1; round <= 50; round++) {
      consume(port);
      const offered = port.stats()['offered'];
      assert.ok(Math.abs(offered - 12 * round) <= 1, `${offered} after round ${round}`); // the last may end a rounding later
    }
    port.close();
  });

  it('shares its rate between rings, and count between them to the frame', () => {
    for (const count of [1, 2, 3, 100, 1001]) {
      const run = bridged(`rings=3,count=${count}`, 'rings=3,rate=max', 200);
      assert.deepEqual([run.rx['offered'], run.tx['sent'], run.tx['lost']], [count, count, 0]);
    }
  });

  it('misses nothing at rate=max, and ends sync() whatever is lost on purpose', () => {
    const run = bridged('rate=max', 'rate=max', 100);
    assert.equal(run.rx['missed'], 0);
    assert.equal(run.rx['offered'], run.tx['sent'] + run.queued);
    const all = bridged('rate=max,drop=100%', 'rate=max', 100);
    assert.equal(all.rx['dropped'], all.rx['offered']);
    assert.equal(all.tx['sent'], 0);
  });

  it('sends no faster than slots per tx timer', () => {
    // 100 ticks of 90 µs, 255 slots each: far below the wire's 1339 frames a tick. The first come before any tick.
    const run = bridged('slots=4096', 'slots=256,txtimer=90us', 9000);
    assert.ok(Math.abs(run.tx['sent'] - 100 * 255) <= 255, String(run.tx['sent']));
  });
});

describe('sim: report R6, a port that wedges', () => {
  it('completes no more tx after its frames, holds what it was given, and works again when it is opened anew', () => {
    for (const options of ['rings=1', 'rings=2', 'rings=1,check=off', 'rings=1,rate=max'])
      for (const frags of ['frags=0', 'frags=2'])
        for (let opened = 0; opened < 2; opened++) {
          const run = bridged(`${options},${frags},slots=512`, `${options},slots=256,wedge=1000`, 1000);
          assert.equal(run.tx['sent'], 1000, `${options},${frags}`);
          // Its tx rings are full, and what comes now finds no room.
          assert.ok(run.rx['missed'] > 0 || options.includes('max'));
          assert.ok(run.txPending >= 254 * (options.includes('rings=2') ? 2 : 1), String(run.txPending));
          isClean(run);
        }
  });
});

describe('sim: loss', () => {
  it('drops its share, the same frames for the same seed', () => {
    const run = (seed: number) => bridged(`drop=5%,seed=${seed},count=20000`, 'slots=4096', 2000);
    const [first, again, other] = [run(1), run(1), run(2)];
    assert.deepEqual(first.rx, again.rx);
    assert.notEqual(first.rx['dropped'], other.rx['dropped']);
    // 20000 × 5 % = 1000; five standard deviations of √(20000 · 0.05 · 0.95) = 30.8.
    assert.ok(Math.abs(first.rx['dropped'] - 1000) < 155, String(first.rx['dropped']));
    assert.equal(first.tx['sent'], 20000 - first.rx['dropped']);
    assert.ok(first.rx['dropped'] - first.tx['lost'] <= 3, 'all but those after the last that left are missed');
    isClean(first);
  });

  it('accounts for every frame when a slot comes back with a bad buffer', () => {
    for (const options of ['slots=64', 'slots=64,frags=2', 'slots=64,rate=max']) {
      const port = openPort(`sim:a@clock=virtual,${options}`);
      const [ring] = port.rx;
      ring.i32[ring.slotWord(5)] = -1;
      let shown = 0;
      for (let us = 0; us < 40; us++) {
        port.rxsync();
        for (let n = ring.space, i = ring.head; n > 0; n--, i = ring.after(i)) if (ring.len(i) > 0) shown++;
        ring.advance(ring.space);
      }
      const { offered, missed, badSlots } = port.stats();
      assert.equal(shown / (options.includes('frags') ? 2 : 1), offered - missed, options);
      assert.ok(badSlots > 0);
      port.close();
    }
  });

  it('is down for as long as it flaps, and nothing arrives then at any rate', () => {
    for (const rate of ['10G', 'max']) {
      const port = openPort(`sim:a@clock=virtual,rate=${rate},flap=100us/50us`);
      for (let us = 1; us <= 450; us++) {
        const slots = consume(port);
        const down = us % 150 >= 100;
        assert.equal(port.linkUp(), !down, `${us} µs`);
        if (down && us % 150 > 100) assert.equal(slots, 0, `${rate}: ${us} µs`);
      }
      port.close();
    }
  });
});
