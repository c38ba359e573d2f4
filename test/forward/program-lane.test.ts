// A lane with a program before it: each frame is judged once and goes where the program says, whatever room there is.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import * as counted from '../../lib/forward/counters.js';
import { BURST_SPENT, EMPTY } from '../../lib/forward/lane-words.js';
import { ProgramLane, type Judge } from '../../lib/forward/program-lane.js';
import { Frame } from '../../lib/programs/frame.js';
import { BACK, DIVERT, DROP, FORWARD, type OnFrame } from '../../lib/programs/program.js';
import { MOREFRAG, RING_TAIL } from '../../lib/rings/abi.js';
import { Memory } from '../../lib/rings/memory.js';
import type { Ring } from '../../lib/rings/ring.js';

const SLOTS = 16;

/** An rx ring, and tx rings to go on by, back by, and to the third port by. */
class Bench {
  readonly counters = new Float64Array(counted.COUNTERS);
  readonly rx: Ring;
  readonly on: Ring;
  readonly back: Ring;
  readonly third: Ring;
  readonly lane: ProgramLane;
  readonly #memories: Memory[];

  constructor(onFrame: OnFrame, options: { copy?: boolean; failed?: Judge['failed']; exits?: boolean } = {}) {
    const { copy = false, exits = true, failed = rethrow } = options;
    const plan = { rx: [SLOTS], tx: [SLOTS, SLOTS, SLOTS] };
    const near = new Memory({ plans: [plan], bufSize: 128 });
    const far = new Memory({ plans: [plan], bufSize: 128 });
    this.#memories = [near, near, far, far];
    const [ours, theirs] = [near.carve(plan), far.carve(plan)];
    [this.rx] = ours.rx;
    [this.on, this.back, this.third] = copy ? theirs.tx : ours.tx;
    const frame = Object.assign(new Frame(this.rx.u8, this.rx.bufSize), { port: 'left' });
    const judge = { onFrame, frame, failed, ...(exits && { back: this.back, third: this.third }) };
    this.lane = new ProgramLane(this.rx, this.on, judge, { counters: this.counters });
  }

  /** The port shows a frame of so many slots, whose first byte is `mark`. Returns whether there was room for it. */
  deliver(mark: number, slots = 1): boolean {
    const { rx } = this;
    if (rx.numSlots - 1 - rx.space < slots) return false;
    for (let k = 0; k < slots; k++) {
      rx.setLenFlags(rx.tail, 60, k + 1 < slots ? MOREFRAG : 0);
      rx.data(rx.tail).fill(mark);
      rx.i32[rx.base + RING_TAIL] = rx.after(rx.tail);
    }
    return true;
  }

  /** Marks of the frames in a tx ring, whose slots come back. */
  take(ring: Ring): number[] {
    const marks: number[] = [];
    let first = true;
    for (let i = ring.after(ring.tail); i !== ring.head; i = ring.after(i)) {
      if (first) marks.push(ring.data(i)[0]);
      first = (ring.slotFlags(i) & MOREFRAG) === 0;
    }
    ring.i32[ring.base + RING_TAIL] = ring.after(ring.head, ring.numSlots - 1);
    return marks;
  }

  move(burst = 1024): number {
    const taken = this.lane.move(burst);
    this.lane.settle();
    return taken;
  }

  /** Counts by name, those that are not 0. */
  get reasons(): Record<string, number> {
    return Object.fromEntries(
      [...counted.NOT_FORWARDED].map(([at, { name }]) => [name, this.counters[at]] as const).filter(([, n]) => n > 0),
    );
  }

  [Symbol.dispose](): void {
    for (const memory of this.#memories) memory.release();
  }
}

function rethrow(error: unknown): never {
  throw error;
}
const byMark: OnFrame = (frame) => (frame.u8(0) & 3) as 0 | 1 | 2 | 3;

function using(bench: Bench, use: (bench: Bench) => void): void {
  try {
    use(bench);
  } finally {
    bench[Symbol.dispose]();
  }
}

for (const copy of [false, true])
  describe(`a program before a lane: ${copy ? 'copying' : 'exchanging'}`, () => {
    it('each frame goes where its verdict says, and is counted there', () => {
      using(new Bench(byMark, { copy }), (bench) => {
        for (const mark of [0, 4, 1, 2, 3, 8, 6]) bench.deliver(mark);
        assert.equal(bench.move(), 7);
        assert.equal(bench.lane.stopped, EMPTY);
        assert.deepEqual(
          [bench.take(bench.on), bench.take(bench.back), bench.take(bench.third)],
          [[0, 4, 8], [2, 6], [3]],
        );
        assert.deepEqual(bench.reasons, { dropped: 1, sentBack: 2, diverted: 1 });
        assert.equal(bench.counters[counted.FRAMES], 3);
      });
    });

    it('the burst bounds a call; what was judged and has no room is not judged again', () => {
      let judged = 0;
      const count: OnFrame = () => (judged++, FORWARD);
      using(new Bench(count, { copy }), (bench) => {
        for (let k = 0; k < 10; k++) bench.deliver(k);
        assert.deepEqual([bench.move(4), bench.lane.stopped, judged], [4, BURST_SPENT, 4]);
        assert.deepEqual([bench.move(), judged], [6, 10]);
        for (let k = 10; k < 22; k++) bench.deliver(k);
        assert.deepEqual([bench.move(), bench.lane.stopped], [5, 1], 'of 15 slots 10 are taken');
        assert.equal(bench.lane.waitsFor, bench.on);
        for (let k = 0; k < 5; k++) bench.move();
        assert.equal(judged, 22);
        const first = bench.take(bench.on);
        assert.equal(bench.move(), 7);
        assert.deepEqual(
          [...first, ...bench.take(bench.on)],
          Array.from({ length: 22 }, (_, k) => k),
        );
        assert.equal(judged, 22);
      });
    });

    it('a frame that waits for room on its way back holds those behind it, and says where it waits', () => {
      using(new Bench(byMark, { copy }), (bench) => {
        for (let k = 0; k < 15; k++) bench.deliver(2);
        bench.move();
        bench.deliver(6);
        bench.deliver(0);
        assert.deepEqual([bench.move(), bench.lane.stopped, bench.lane.waitsFor], [0, 1, bench.back]);
        assert.equal(bench.take(bench.back).length, 15);
        assert.deepEqual([bench.move(), bench.lane.stopped, bench.lane.waitsFor], [2, EMPTY, undefined]);
        assert.deepEqual([bench.take(bench.back), bench.take(bench.on)], [[6], [0]]);
      });
    });

    it('frames of several slots are judged by their first and go whole; one that has not ended waits', () => {
      const seen: [number, number][] = [];
      const look: OnFrame = (frame) => (seen.push([frame.size, frame.length]), byMark(frame));
      using(new Bench(look, { copy }), (bench) => {
        bench.deliver(0, 3);
        bench.deliver(1, 2);
        bench.deliver(2, 4);
        const { rx } = bench;
        rx.setLenFlags(rx.tail, 60, MOREFRAG);
        rx.data(rx.tail).fill(5);
        rx.i32[rx.base + RING_TAIL] = rx.after(rx.tail);
        assert.deepEqual([bench.move(), bench.lane.stopped], [9, EMPTY]);
        assert.deepEqual(seen, [
          [60, 180],
          [60, 120],
          [60, 240],
        ]);
        assert.deepEqual([bench.take(bench.on), bench.take(bench.back)], [[0], [2]]);
        bench.deliver(5);
        assert.equal(bench.move(), 2);
        assert.deepEqual(bench.reasons, { dropped: 2, sentBack: 1 });
      });
    });

    it('empty slots and slots that are wrong are the lane’s to count', () => {
      using(new Bench(byMark, { copy }), (bench) => {
        const { rx } = bench;
        bench.deliver(1);
        rx.setLenFlags(rx.tail, 0, 0);
        rx.i32[rx.base + RING_TAIL] = rx.after(rx.tail);
        bench.deliver(4);
        rx.i32[rx.slotWord(rx.after(rx.head, 2))] = 0x7fff_ffff;
        bench.deliver(8);
        assert.equal(bench.move(), 4);
        assert.deepEqual([bench.take(bench.on), bench.reasons], [[8], { badBuffer: 1, dropped: 1 }]);
        assert.equal(bench.counters[counted.ZERO_SLOTS], 1);
      });
    });

    it('what a program writes is what is sent, longer and shorter frames too', () => {
      const edit: OnFrame = (frame) => {
        if (frame.u8(0) === 1) frame.insert(12, 4);
        else if (frame.u8(0) === 2) frame.remove(12, 20);
        frame.setU8(0, 0x77);
        return FORWARD;
      };
      using(new Bench(edit, { copy }), (bench) => {
        for (const mark of [1, 2, 3]) bench.deliver(mark);
        bench.move();
        const slots = [0, 1, 2].map((k) => bench.on.after(bench.on.tail, k + 1));
        assert.deepEqual(
          slots.map((slot) => bench.on.len(slot)),
          [64, 40, 60],
        );
        assert.deepEqual(bench.take(bench.on), [0x77, 0x77, 0x77]);
        assert.equal(bench.counters[counted.BYTES], 164);
      });
    });
  });

describe('a program that fails', () => {
  it('its frame gets the verdict that was asked for, and the others their own', () => {
    const failures: string[] = [];
    const failed: Judge['failed'] = (error, frame) => {
      failures.push(`${(error as Error).message} at ${frame.u8(0)}`);
      return DROP;
    };
    const throwing: OnFrame = (frame) => {
      if (frame.u8(0) === 5) throw new Error('five');
      return frame.u8(0) === 6 ? (undefined as never) : FORWARD;
    };
    using(new Bench(throwing, { failed }), (bench) => {
      for (const mark of [4, 5, 6, 7]) bench.deliver(mark);
      assert.equal(bench.move(), 4);
      assert.deepEqual(bench.take(bench.on), [4, 7]);
      assert.deepEqual(failures, [
        'five at 5',
        'the verdict was undefined; it must be FORWARD, DROP, BACK or DIVERT at 6',
      ]);
      assert.deepEqual(bench.reasons, { dropped: 2 });
    });
  });

  it('a verdict that has nowhere to go is a failure that says so', () => {
    for (const [verdict, words] of [
      [BACK, /BACK, and left cannot send/],
      [DIVERT, /DIVERT, and there is no third port/],
    ] as const)
      using(new Bench(() => verdict, { exits: false }), (bench) => {
        bench.deliver(1);
        assert.throws(() => bench.move(), words);
        assert.equal(bench.rx.space, 1, 'the frame is still there');
      });
  });
});

describe('a program before a lane, whatever comes and whatever room there is', () => {
  const step = fc.oneof(
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('deliver' as const), n: fc.integer({ min: 1, max: 5 }) }) },
    { weight: 4, arbitrary: fc.record({ kind: fc.constant('move' as const), n: fc.integer({ min: 1, max: 20 }) }) },
    { weight: 2, arbitrary: fc.record({ kind: fc.constant('take' as const), n: fc.integer({ min: 0, max: 2 }) }) },
  );

  it('every frame is judged once, in order, leaves once by its exit, in order, and no buffer is lost', () => {
    fc.assert(
      fc.property(fc.boolean(), fc.array(step, { maxLength: 80 }), (copy, steps) => {
        const judged: number[] = [];
        const look: OnFrame = (frame) => (judged.push(frame.u8(0)), byMark(frame));
        using(new Bench(look, { copy }), (bench) => {
          const exits = [bench.on, bench.back, bench.third];
          const left = [[], [], []] as number[][];
          const delivered: number[] = [];
          const buffers = (): number[] =>
            [bench.rx, ...exits].flatMap((ring) => Array.from({ length: SLOTS }, (_, i) => ring.bufIdx(i))).sort();
          const before = buffers();
          const drain = (k: number): void => void left[k].push(...bench.take(exits[k]));
          for (const { kind, n } of steps) {
            if (kind === 'deliver') {
              const mark = (delivered.length * 7 + n) & 0xff;
              if (bench.deliver(mark, n)) delivered.push(mark);
            } else if (kind === 'move') bench.move(n);
            else drain(n);
          }
          for (let k = 0; k < 40; k++) {
            [0, 1, 2].forEach(drain);
            bench.move();
          }
          [0, 1, 2].forEach(drain);
          assert.deepEqual(judged, delivered);
          const going = (verdict: number): number[] => delivered.filter((mark) => (mark & 3) === verdict);
          assert.deepEqual(left, [going(FORWARD), going(BACK), going(DIVERT)]);
          assert.equal(bench.counters[counted.FRAMES] + counted.notForwarded(bench.counters), delivered.length);
          assert.equal(bench.counters[counted.DROPPED], going(DROP).length);
          assert.deepEqual(buffers(), before);
        });
      }),
    );
  });
});
