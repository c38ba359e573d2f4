// What a believable result rests on: every fault that a forwarder can make is seen, and forwarding makes no garbage.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { SLOT_BUF_IDX, SLOT_WORDS } from '../../lib/rings/abi.js';
import { forwarder } from '../support/forwarder.js';
import { openPorts } from '../../lib/ports/open.js';
import type { Ring } from '../../lib/rings/ring.js';

const FRAMES = 16;

/** Brings FRAMES frames into b's tx ring, lets `harm` do its work there, sends, and returns what the check counted. */
function after(harm: (tx: Ring) => void, options = ''): Record<string, number> {
  const ports = openPorts([
    `sim:a@rate=max,clock=virtual,slots=256,count=${FRAMES}${options}`,
    `sim:b@rate=max,clock=virtual,slots=256,load=0`,
  ]);
  const [a, b] = ports;
  a.rxsync();
  forwarder(a.rx[0], b.tx[0], new Float64Array(16))(256);
  harm(b.tx[0]);
  b.txsync();
  const { sent, lost, duplicates, reordered, corrupt, foreign } = b.stats();
  for (const port of ports) port.close();
  return { sent, lost, duplicates, reordered, corrupt, foreign };
}

const CLEAN = { sent: FRAMES, lost: 0, duplicates: 0, reordered: 0, corrupt: 0, foreign: 0 };

function exchangeBuffers(ring: Ring, i: number, j: number): void {
  const [x, y] = [i, j].map((slot) => ring.slot0 + slot * SLOT_WORDS + SLOT_BUF_IDX);
  [ring.i32[x], ring.i32[y]] = [ring.i32[y], ring.i32[x]];
}

function flip(ring: Ring, slot: number, byte: number): void {
  ring.u8[ring.dataStart(slot) + byte] ^= 0x10;
}

describe('integrity: what is done to a frame between two simulated ports is counted', () => {
  it('counts nothing when nothing is done', () => {
    assert.deepEqual(
      after(() => undefined),
      CLEAN,
    );
  });

  it('tells two exchanged frames: the second comes too early, the first late', () => {
    assert.deepEqual(
      after((tx) => {
        exchangeBuffers(tx, 3, 4);
      }),
      { ...CLEAN, reordered: 1 },
    );
  });

  it('tells a frame that is late by many', () => {
    const reversed = after((tx) => {
      for (let i = 0; i < FRAMES / 2; i++) exchangeBuffers(tx, i, FRAMES - 1 - i);
    });
    assert.deepEqual(reversed, { ...CLEAN, reordered: FRAMES - 1 });
  });

  it('tells a frame sent twice in place of another', () => {
    assert.deepEqual(
      after((tx) => {
        tx.i32[tx.slotWord(5) + SLOT_BUF_IDX] = tx.bufIdx(4);
      }),
      { ...CLEAN, duplicates: 1, lost: 1 },
    );
  });

  it('tells frames that never left', () => {
    const short = after((tx) => {
      // Everything after slot 9 moves up by three.
      for (let i = 10; i < FRAMES - 3; i++) exchangeBuffers(tx, i, i + 3);
      tx.moveTo(FRAMES - 3);
    });
    assert.deepEqual(short, { ...CLEAN, sent: FRAMES - 3, lost: 3 });
  });

  it('tells one changed bit, at every byte that carries the stamp', () => {
    const covered = [...range(12, 24), ...range(56, 60)];
    for (const byte of covered) {
      const counted = after((tx) => {
        flip(tx, 7, byte);
      });
      // A frame that is not known by its stamp any more is also one that did not come.
      const verdict = byte < 14 ? { foreign: 1 } : { corrupt: 1 };
      assert.deepEqual(counted, { ...CLEAN, lost: 1, ...verdict }, `byte ${byte}`);
    }
  });

  it('tells a changed bit in the marks inside a long frame', () => {
    const size = ',size=1518'; // 1,514 bytes: marks at 256, 512, 768, 1,024 and 1,280, and in the last whole word
    for (const byte of [256, 513, 770, 1027, 1280, 1508]) {
      const counted = after((tx) => {
        flip(tx, 7, byte);
      }, size);
      assert.deepEqual(counted, { ...CLEAN, lost: 1, corrupt: 1 }, `byte ${byte}`);
    }
  });

  it('tells a frame that was cut or made longer', () => {
    for (const len of [56, 59, 61, 64, 1500]) {
      const counted = after((tx) => {
        tx.setLenFlags(7, len);
      });
      assert.deepEqual(counted, { ...CLEAN, lost: 1, corrupt: 1 }, `${len} bytes`);
    }
  });

  it('tells two frames that exchanged a slot', () => {
    const counted = after((tx) => {
      exchangeBuffers(tx, 1, 3); // the second slots of the first two frames
    }, ',size=4000,frags=2');
    assert.deepEqual(counted, { ...CLEAN, lost: 2, corrupt: 2 });
  });
});

function range(from: number, to: number): number[] {
  return Array.from({ length: to - from }, (_, i) => from + i);
}

describe('integrity: no garbage', () => {
  const child = fileURLToPath(new URL('../support/gc-child.js', import.meta.url));
  for (const [what, warmup, a, b] of [
    ['checked', 10e6, 'sim:a@rate=max', 'sim:b@rate=max'],
    ['unchecked', 10e6, 'sim:a@rate=max,check=off', 'sim:b@rate=max,check=off'],
    ['copied', 10e6, 'sim:a@rate=max,check=off', 'sim:b@rate=max,check=off,buf=4096'],
    ['by the clock', 10e6, 'sim:a@rate=100G', 'sim:b@rate=100G'],
    // Numbers of nanoseconds that V8 would keep as small integers end at 2^31, after 2.1 s: 35 million frames of these.
    ['by the clock, after seconds', 45e6, 'sim:a@load=50%', 'sim:b@load=50%'],
  ] as const) {
    it(`forwards 20 million frames without a garbage collection: ${what}`, () => {
      const run = spawnSync(process.execPath, ['--trace-gc', '--expose-gc', child, a, b, String(warmup), '20e6'], {
        encoding: 'utf8',
      });
      const [, between] = /BEGIN\n([^]*)END\n/.exec(run.stdout) ?? [];
      assert.equal(between, '', `${run.stderr}${run.stdout}`);
    });
  }
});
