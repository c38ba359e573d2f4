// A queue whose kernel is played by the test: what no real kernel can be made to do on demand.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { now } from '../../../lib/shim/native.js';
import { Kring } from '../../../lib/rings/kring.js';
import { Memory } from '../../../lib/rings/memory.js';
import { XdpQueue } from '../../../lib/ports/xdp/xdp-queue.js';
import { XdpRing } from '../../../lib/ports/xdp/xdp-ring.js';
import type { XdpSocket } from '../../../lib/ports/xdp/xdp-socket.js';

const SLOTS = 16;
/** Bytes at which a ring of the test has its counters, flags and descriptors. */
const [PRODUCER, CONSUMER, FLAGS, DESC] = [0, 64, 128, 192];

function ring(): XdpRing {
  return new XdpRing({
    buffer: new ArrayBuffer(DESC + SLOTS * 16),
    entries: SLOTS,
    producer: PRODUCER,
    consumer: CONSUMER,
    flags: FLAGS,
    desc: DESC,
  });
}

it('descriptors that the kernel found invalid are taken back without anybody asking for statistics', () => {
  const plan = { tx: [SLOTS], rx: [SLOTS], extraBuffers: SLOTS };
  const memory = new Memory({ plans: [plan], bufSize: 2048, offsetMask: 2047 });
  const carved = memory.carve(plan);
  const statistics = new Float64Array(6);
  const tx = ring();
  let asked = 0;
  const socket: XdpSocket = {
    handle: -1,
    fd: -1,
    fill: ring(),
    completion: ring(),
    rx: ring(),
    tx,
    zeroCopy: false,
    multiBuffer: false,
    busyPoll: false,
    wakeRx: () => 0,
    // The kernel consumes every descriptor, finds it invalid and completes none.
    wakeTx: () => {
      statistics[2] += tx.pending();
      tx.i32[CONSUMER / 4] = tx.mine;
      return 0;
    },
    statistics: () => {
      asked++;
      return statistics;
    },
    close: () => undefined,
  };
  const queue = new XdpQueue(
    new Kring(carved.rx[0]),
    new Kring(carved.tx[0]),
    socket,
    { up: true },
    1518,
    carved.extra,
  );
  const [out] = carved.tx;
  for (let i = 0; i < 3; i++) out.setLenFlags(i, 100 + i);
  out.advance(3);
  queue.txsync();
  assert.equal(queue.inFlight, 3);
  const started = now();
  do queue.txsync();
  while (queue.unsent().frames > 0);
  assert.equal(queue.inFlight, 0);
  assert.ok(now() - started < 1e9);
  assert.equal(asked, 1, 'not at every sync');
  assert.deepEqual(queue.refused, { frames: 3, bytes: 303 });
  assert.deepEqual(queue.unsent(), { frames: 0, bytes: 0 });
  assert.equal(out.space, SLOTS - 1);
  memory.release();
});
