// Forwarding between two rings, against a model: nothing lost or duplicated uncounted, order kept, buffers owned once.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MOREFRAG } from '../../lib/rings/abi.js';
import {
  BAD_BUFFER,
  BAD_RING,
  COUNTERS,
  FRAMES,
  NO_TX_ROOM,
  TOO_MANY_SLOTS,
  TX_FULL,
} from '../../lib/forward/counters.js';
import { forwarder, isZeroCopy } from '../support/forwarder.js';
import { Memory } from '../../lib/rings/memory.js';
import { Region } from '../../lib/rings/region.js';
import { Ring } from '../../lib/rings/ring.js';
import { RingPair, type Fragment, type PairOptions } from '../support/ring-pair.js';

const WILD = [-(2 ** 31), -1, 0, 1, 2 ** 31 - 1];

/** The buffers of both sides, named. */
const SIDES: readonly [string, Pick<PairOptions, 'rxBuf' | 'txBuf' | 'copy' | 'offsetMask'>][] = [
  ['zero-copy', { rxBuf: 64, txBuf: 64, copy: false }],
  ['zero-copy with data offsets', { rxBuf: 64, txBuf: 64, copy: false, offsetMask: 0xff }],
  ['copy', { rxBuf: 64, txBuf: 64, copy: true }],
  ['copy to larger buffers', { rxBuf: 64, txBuf: 256, copy: true }],
  ['copy to smaller buffers', { rxBuf: 256, txBuf: 64, copy: true }],
  ['copy with data offsets', { rxBuf: 128, txBuf: 64, copy: true, offsetMask: 0xff }],
];

function withPair(options: PairOptions, use: (pair: RingPair) => void): void {
  const pair = new RingPair(options);
  try {
    use(pair);
  } finally {
    pair.close();
  }
}

for (const [name, side] of SIDES) {
  describe(`forward: ${name}`, () => {
    it('moves exactly what is there, has room and is asked for, at every wrap', () => {
      for (const rxSlots of [2, 3, 7])
        for (const txSlots of [2, 5])
          withPair({ ...side, rxSlots, txSlots }, (pair) => {
            const spans = [];
            for (let ready = 0; ready < rxSlots; ready++)
              for (let room = 0; room < txSlots; room++)
                for (const burst of [1, 2, 3, 2 ** 31 - 1]) spans.push({ ready, room, burst });
            let shown = 0;
            const deliver = () => {
              pair.deliver({ len: 1 + (shown++ % 60), more: false });
            };
            for (const { ready, room, burst } of spans)
              for (let start = 0; start < rxSlots * txSlots; start++) {
                pair.rotate(start);
                for (let i = 0; i < ready; i++) deliver();
                pair.drain(txSlots - 1 - room);
                assert.equal(pair.step(burst), Math.min(ready, room, burst));
                do pair.drain();
                while (pair.step(1024) > 0);
              }
          });
    });

    const bufSize = side.rxBuf;
    const slots = fc.oneof(fc.integer({ min: 2, max: 9 }), fc.constantFrom(32, 64, 65, 66, 67, 100, 128));
    const length = fc.oneof(
      { weight: 8, arbitrary: fc.integer({ min: 1, max: bufSize }) },
      { weight: 1, arbitrary: fc.constant(0) },
    );
    const offset = side.offsetMask === undefined ? fc.constant(0) : fc.integer({ min: 0, max: 40 });
    const fragments = fc.oneof(
      { weight: 8, arbitrary: fc.constant(1) },
      { weight: 3, arbitrary: fc.integer({ min: 2, max: 6 }) },
      { weight: 1, arbitrary: fc.integer({ min: 60, max: 70 }) },
    );
    /** A frame; one in ten has one thing wrong with it. */
    const frame = fragments.chain((n) =>
      fc.record({
        list: fc.array(fc.record({ len: length, offset }), { minLength: n, maxLength: n }),
        at: fc.nat(n - 1),
        wrong: fc.oneof(
          { weight: 18, arbitrary: fc.constant({}) },
          { weight: 1, arbitrary: fc.record({ corrupt: fc.constantFrom(...WILD, 'limit' as const) }) },
          { weight: 1, arbitrary: fc.record({ len: fc.constantFrom(bufSize + 1, 2048, 65535) }) },
        ),
      }),
    );
    const stream = fc.array(frame, { minLength: 1, maxLength: 40 });
    const turns = fc.array(
      fc.record({
        deliver: fc.oneof(fc.nat(6), fc.nat(140)),
        burst: fc.constantFrom(1, 2, 3, 8, 32, 64, 1024),
        keep: fc.oneof(fc.constant(0), fc.nat(8), fc.nat(128)),
      }),
      { minLength: 10, maxLength: 40 },
    );

    it('does what the model says with any frames, slot by slot', () => {
      const seen = { frames: 0, dropped: 0 };
      fc.assert(
        fc.property(slots, slots, fc.nat(200), stream, turns, (rxSlots, txSlots, start, frames, plan) => {
          withPair({ ...side, rxSlots, txSlots, start }, (pair) => {
            const queue: Fragment[] = frames.flatMap(({ list, at, wrong }) =>
              list.map(({ len, offset }, k): Fragment => {
                const good = { len: Math.min(len, bufSize - offset), offset, more: k < list.length - 1 };
                if (k !== at) return good;
                if ('corrupt' in wrong)
                  return { ...good, corrupt: wrong.corrupt === 'limit' ? pair.rx.bufLimit : wrong.corrupt };
                return { ...good, ...wrong };
              }),
            );
            for (const turn of plan) {
              for (let n = turn.deliver; n > 0 && pair.rxFree > 0; n--) {
                const next = queue.shift();
                if (next === undefined) break;
                pair.deliver(next);
              }
              pair.drain(turn.keep);
              pair.step(turn.burst);
            }
            // Then everything that has an end must come through.
            for (let idle = 0; idle < 2;) {
              while (pair.rxFree > 0 && queue.length > 0) pair.deliver(queue.shift()!);
              pair.drain();
              idle = pair.step(32) === 0 && queue.length === 0 ? idle + 1 : 0;
            }
            assert.equal(pair.pending.length, 0, 'every frame had its end');
            seen.frames += pair.counters[FRAMES];
            for (const reason of [BAD_BUFFER, TOO_MANY_SLOTS, NO_TX_ROOM]) seen.dropped += pair.counters[reason];
          });
        }),
        { numRuns: 80 },
      );
      assert.ok(seen.frames > 200 && seen.dropped > 20, `a test of something: ${JSON.stringify(seen)}`);
    });

    it('drops a frame of 65 slots whatever the burst, and moves one of 64', () => {
      for (const burst of [1, 63, 64, 65, 128, 1024])
        for (const before of [0, 3])
          withPair({ ...side, rxSlots: 256, txSlots: 300, start: 250 }, (pair) => {
            const frameOf = (n: number) => {
              for (let k = 1; k <= n; k++) pair.deliver({ len: 50, more: k < n });
            };
            for (const n of [...Array.from({ length: before }, () => 1), 64, 65, 2, 64]) frameOf(n);
            for (let k = 0; k < 200 && pair.pending.length > 0; k++) pair.step(burst);
            assert.deepEqual([pair.counters[FRAMES], pair.counters[TOO_MANY_SLOTS]], [before + 3, 1], `burst ${burst}`);
            assert.deepEqual(
              pair.sent.slice(-3).map(({ length }) => length),
              [64 * 50, 100, 64 * 50],
            );
          });
    });

    it('leaves a frame whose end has not come, without calling the tx ring full', () => {
      withPair({ ...side, rxSlots: 16, txSlots: 16 }, (pair) => {
        pair.deliver({ len: 60, more: false });
        pair.deliver({ len: 60, more: true });
        assert.equal(pair.step(32), 1);
        assert.equal(pair.step(32), 0);
        assert.equal(pair.counters[TX_FULL], 0);
        pair.deliver({ len: 4, more: false });
        assert.equal(pair.step(32), 2);
        assert.equal(pair.sent[1].length, 64);
      });
    });

    it('drops a frame that fills its ring without an end: it would block it for ever', () => {
      withPair({ ...side, rxSlots: 8, txSlots: 32 }, (pair) => {
        for (let k = 0; k < 7; k++) pair.deliver({ len: 60, more: true });
        assert.equal(pair.step(32), 7);
        assert.deepEqual([pair.counters[FRAMES], pair.counters[TOO_MANY_SLOTS]], [0, 1]);
      });
    });

    it('touches nothing when a head or tail lies outside its ring, and counts it', () => {
      for (const word of [5, 7])
        for (const which of ['rx', 'tx'] as const)
          for (const value of [-(2 ** 31), -1, 8, 9, 100, 2 ** 31 - 1])
            withPair({ ...side, rxSlots: 8, txSlots: 8 }, (pair) => {
              for (let k = 0; k < 5; k++) pair.deliver({ len: 60, more: k === 1 });
              const ring = pair[which];
              ring.i32[ring.base + word] = value;
              const before = [Buffer.from(pair.rx.u8), Buffer.from(pair.tx.u8)];
              assert.equal(pair.forward(1024), 0);
              assert.equal(Buffer.compare(before[0], pair.rx.u8), 0);
              assert.equal(Buffer.compare(before[1], pair.tx.u8), 0);
              assert.deepEqual([pair.counters[BAD_RING], pair.counters[FRAMES]], [1, 0], `${which} ${word}: ${value}`);
            });
    });

    it('reads a closed port as empty', () => {
      const pair = new RingPair({ ...side, rxSlots: 8, txSlots: 8 });
      for (let k = 0; k < 5; k++) pair.deliver({ len: 60, more: false });
      pair.close();
      assert.equal(pair.forward(32), 0);
    });
  });
}

describe('forward: two rings', () => {
  const plan = { tx: [8], rx: [8] };

  it('exchange buffers only where an index means the same buffer to both', () => {
    const memory = new Memory({ plans: [plan], bufSize: 64 });
    const { tx, rx } = memory.carve(plan);
    assert.equal(isZeroCopy(rx[0], tx[0]), true);
    /** The tx ring with one header word changed, in a region that calls itself `id`. */
    const variant = (word: number, add: number, id = memory.region.id): Ring => {
      const words = Int32Array.from(memory.region.i32);
      words[tx[0].base + word] += add;
      return new Ring(new Region(id, words.buffer), tx[0].base);
    };
    assert.equal(isZeroCopy(rx[0], variant(0, 0)), true, 'another mapping of the same memory');
    assert.equal(isZeroCopy(rx[0], variant(0, 0, 'other')), false, 'another memory');
    assert.equal(isZeroCopy(rx[0], variant(0, 64)), false, 'buffers elsewhere');
    assert.equal(isZeroCopy(rx[0], variant(3, -32)), false, 'buffers of another size');
    assert.equal(isZeroCopy(rx[0], variant(14, 0xff)), false, 'data offsets on one side');
    memory.release();
    memory.release();
  });

  it('copy although buffers could be exchanged, when asked to', () => {
    const memory = new Memory({ plans: [plan], bufSize: 64 });
    const { tx, rx } = memory.carve(plan);
    const own = tx[0].bufIdx(0);
    rx[0].setLenFlags(0, 60);
    rx[0].u8.fill(7, rx[0].dataStart(0), rx[0].dataStart(0) + 60);
    rx[0].i32[rx[0].base + 7] = 1;
    assert.equal(forwarder(rx[0], tx[0], new Float64Array(COUNTERS), false)(32), 1);
    assert.equal(tx[0].bufIdx(0), own);
    assert.deepEqual(
      [...tx[0].data(0)],
      Array.from({ length: 60 }, () => 7),
    );
    memory.release();
    memory.release();
  });

  it('never copy into a buffer that is none, and count the frame', () => {
    for (const idx of [...WILD, 'limit' as const]) {
      const memories = [new Memory({ plans: [plan], bufSize: 64 }), new Memory({ plans: [plan], bufSize: 64 })];
      const rx = memories[0].carve(plan).rx[0];
      const tx = memories[1].carve(plan).tx[0];
      for (let i = 0; i < 3; i++) rx.setLenFlags(i, 60, i === 0 ? MOREFRAG : 0);
      rx.i32[rx.base + 7] = 3;
      tx.i32[tx.slotWord(1)] = idx === 'limit' ? tx.bufLimit : idx;
      const counters = new Float64Array(COUNTERS);
      assert.equal(forwarder(rx, tx, counters)(32), 3);
      assert.deepEqual(
        [counters[FRAMES], counters[BAD_BUFFER]],
        [1, 1],
        'the first frame needs slot 1, the second fits',
      );
      for (const memory of memories) {
        memory.release();
        memory.release();
      }
    }
  });

  it('carry offsets of any size without believing them', () => {
    const memory = new Memory({ plans: [plan], bufSize: 64, offsetMask: -1 });
    const { tx, rx } = memory.carve(plan);
    const counters = new Float64Array(COUNTERS);
    const forward = forwarder(rx[0], tx[0], counters);
    const offsets = [0, 4, 5, -1, -(2 ** 31), 2 ** 31 - 1, 0x7fff0000];
    offsets.forEach((offset, i) => {
      rx[0].setLenFlags(i, i % 2 === 0 ? 60 : 59);
      rx[0].i32[rx[0].slotWord(i) + 2] = offset;
    });
    rx[0].setLenFlags(3, 65535); // length and offset together overflow 32 bits
    rx[0].i32[rx[0].base + 7] = offsets.length;
    while (forward(32) > 0);
    assert.equal(rx[0].space, 0);
    // 60 bytes at 0; 59 at 4; 60 at 5 go one byte too far, and so do all the others.
    assert.deepEqual([counters[FRAMES], tx[0].offset(0), tx[0].offset(1), tx[0].head], [2, 0, 4, 2]);
    memory.release();
    memory.release();
  });
});
