// What a lane says about why it stopped, lanes that share a tx ring, and waiting for what they say.
import assert from 'node:assert/strict';
import { closeSync, openSync } from 'node:fs';
import { describe, it } from 'node:test';
import { LaneGroup } from '../../lib/forward/lane-group.js';
import { BURST_SPENT, EMPTY } from '../../lib/forward/lane-words.js';
import { Lane } from '../../lib/forward/lane.js';
import { PollWait, type Waiting } from '../../lib/forward/wait.js';
import type { Port } from '../../lib/ports/port.js';
import { MOREFRAG, RING_TAIL } from '../../lib/rings/abi.js';
import { Memory } from '../../lib/rings/memory.js';
import type { Ring } from '../../lib/rings/ring.js';
import { PortError } from '../../lib/text/errors.js';

function withRings(rx: number[], tx: number[], use: (rings: { rx: Ring[]; tx: Ring[] }) => void): void {
  const plan = { rx, tx };
  const memory = new Memory({ plans: [plan], bufSize: 64 });
  try {
    use(memory.carve(plan));
  } finally {
    memory.release();
    memory.release();
  }
}

/** The port shows `n` more slots of `len` bytes; `more`: all but the last have a successor. */
function deliver(ring: Ring, n: number, len = 60, more = false): void {
  for (let k = 0; k < n; k++) {
    const { tail } = ring;
    ring.setLenFlags(tail, len, more && k < n - 1 ? MOREFRAG : 0);
    ring.i32[ring.base + RING_TAIL] = ring.after(tail);
  }
}

/** The port gives back so many sent slots. */
function release(ring: Ring, n: number): void {
  ring.i32[ring.base + RING_TAIL] = ring.after(ring.tail, n);
}

for (const copy of [false, true])
  describe(`why a lane stops: ${copy ? 'copying' : 'exchanging'}`, () => {
    it('empty, burst spent, or slots of room that it waits for', () => {
      withRings([16], [16], ({ rx: [rx], tx: [tx] }) => {
        const lane = new Lane(rx, tx, { copy });
        assert.deepEqual([lane.move(4), lane.stopped], [0, EMPTY]);
        deliver(rx, 9);
        assert.deepEqual([lane.move(4), lane.stopped], [4, BURST_SPENT]);
        assert.deepEqual([lane.move(8), lane.stopped], [5, EMPTY]);
        deliver(rx, 12);
        assert.deepEqual([lane.move(100), lane.stopped], [6, 1], 'of 15 slots 9 are taken');
        release(tx, 15);
        assert.deepEqual([lane.move(100), lane.stopped], [6, EMPTY]);
      });
    });

    it('a frame of 8 slots before 3 free ones waits for 8', () => {
      withRings([32], [16], ({ rx: [rx], tx: [tx] }) => {
        const lane = new Lane(rx, tx, { copy });
        deliver(rx, 12);
        deliver(rx, 8, 60, true);
        assert.deepEqual([lane.move(100), lane.stopped], [12, 8]);
        release(tx, 4);
        assert.deepEqual([lane.move(100), lane.stopped], [0, 8]);
        release(tx, 1);
        assert.deepEqual([lane.move(100), lane.stopped], [8, EMPTY]);
      });
    });

    it('empty slots between frames do not end a call', () => {
      withRings([1020], [1020], ({ rx: [rx], tx: [tx] }) => {
        const lane = new Lane(rx, tx, { copy });
        for (let k = 0; k < 1018; k++) deliver(rx, 1, k % 2 === 0 ? 60 : 0);
        assert.deepEqual([lane.move(1024), lane.stopped], [1018, EMPTY]);
        assert.equal(tx.space, 1019 - 509);
      });
    });
  });

describe('lanes that share a tx ring', () => {
  /** Rx ring k's next frame has 20 + its number bytes; the order is told by what stands in the tx slots. */
  function race(load: readonly number[], freed: number, burst: number, turns: number): number[] {
    const moved = load.map(() => 0);
    withRings(
      load.map(() => 2048),
      [1024],
      ({ rx, tx: [tx] }) => {
        const group = new LaneGroup(rx.map((ring) => new Lane(ring, tx)));
        tx.i32[tx.base + RING_TAIL] = tx.head; // full
        for (let turn = 0; turn < turns; turn++) {
          rx.forEach((ring, k) => {
            deliver(ring, Math.min(load[k], 2047 - ring.space), 20 + k);
          });
          release(tx, Math.min(freed, 1023 - tx.space));
          const from = tx.head;
          const n = group.move(burst);
          let slots = 0;
          for (let i = from; i !== tx.head; i = tx.after(i), slots++) moved[tx.len(i) - 20]++;
          assert.equal(slots, n);
        }
      },
    );
    return moved;
  }

  it('take turns while it is full: shares within 1 %', () => {
    for (const freed of [7, 256, 1000])
      for (const burst of [32, 256, 1024]) {
        const turns = 2000;
        const moved = race([2047, 2047, 2047, 2047], freed, burst, turns);
        const all = moved.reduce((sum, n) => sum + n);
        assert.equal(all, turns * Math.min(freed, burst), `${freed} freed, burst ${burst}`);
        for (const n of moved)
          assert.ok(Math.abs(n - all / 4) <= Math.max(all / 400, burst / 4), `${moved.join(' ')} (${freed}, ${burst})`);
      }
  });

  it('a light one gets all it has beside heavy ones', () => {
    const moved = race([2047, 10, 2047], 300, 1024, 2000);
    assert.ok(20_000 - moved[1] <= 342, `of 20,000 frames ${moved[1]} came through`);
    assert.ok(Math.abs(moved[0] - moved[2]) <= 342, moved.join(' '));
  });
});

describe('waiting', () => {
  const port = (name: string, fds: number[]): Port =>
    ({ name, fds, napNs: 1e6, rxsync: () => undefined }) as unknown as Port;

  it('a broken descriptor ends the run with its reason', () => {
    withRings([16], [16], ({ rx: [rx], tx: [tx] }) => {
      const waiting: Waiting = {
        sides: [
          { port: port('left', [1 << 20]), rx: [rx], tx: [] },
          { port: port('right', []), rx: [], tx: [tx] },
        ],
        lanes: [[new Lane(rx, tx)], []],
      };
      assert.throws(
        () => {
          new PollWait(waiting).wait();
        },
        (error) => error instanceof PortError && error.port === 'left' && error.message.includes('POLLNVAL'),
      );
    });
  });

  it('more descriptors than 256', () => {
    const fds = Array.from({ length: 300 }, () => openSync('/dev/null', 'r'));
    try {
      withRings([16], [16], ({ rx: [rx], tx: [tx] }) => {
        const sides = [
          { port: port('a', fds), rx: [rx], tx: [] },
          { port: port('b', []), rx: [], tx: [tx] },
        ];
        const wait = new PollWait({ sides, lanes: [[new Lane(rx, tx)], []] });
        wait.wait(); // /dev/null is always readable
      });
    } finally {
      fds.forEach(closeSync);
    }
  });
});
