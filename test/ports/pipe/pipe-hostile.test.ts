// A peer that writes nonsense into a pipe's memory while we work on it, not only between two of our turns.
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { MOREFRAG, RING_CUR, RING_HEAD, RING_TAIL, SLOT_WORDS } from '../../../lib/rings/abi.js';
import { Bridge, nicSide } from '../../../lib/forward/bridge.js';
import { FRAMES } from '../../../lib/forward/counters.js';
import { PortError } from '../../../lib/text/errors.js';
import { parseEndpoint, parseMacRange } from '../../../lib/gen/range.js';
import { Sender } from '../../../lib/gen/sender.js';
import { makeTemplates } from '../../../lib/gen/templates.js';
import { native, now } from '../../../lib/shim/native.js';
import { openPort, openPorts } from '../../../lib/ports/open.js';
import type { Port } from '../../../lib/ports/port.js';
import { PipeFiles } from '../../../lib/ports/pipe/pipe-files.js';
import { consWord, ownerWord, prodWord, ringWord } from '../../../lib/ports/pipe/pipe-layout.js';
import { Receiver } from '../../../lib/gen/receiver.js';
import { REQUEST } from '../../../lib/gen/tag.js';
import type { Vandal } from '../../support/pipe-vandal.js';

const SLOTS = 64;
/** Words that are written over during one test. */
const WRITES = 150_000;

let tests = 0;

/** Runs `turn` until `WRITES` words of the pipe's memory have been written over meanwhile. */
async function beside(name: string, ports: readonly Port[], turn: () => void): Promise<void> {
  const [{ region }] = ports;
  const rings = ports.filter((port) => port.region === region).flatMap((port) => [...port.tx, ...port.rx]);
  const progress = new SharedArrayBuffer(8);
  const job: Vandal = {
    path: new PipeFiles(name).memory,
    seed: tests,
    words: rings[0].bufBase / 4,
    favourites: [
      ...[0, 1].flatMap((k) =>
        [0, 1].flatMap((side) => [
          ...[prodWord(k, side), consWord(k, side), ownerWord(k, side)],
          ...[0, 1].map((direction) => ringWord(k, side, direction)),
        ]),
      ),
      ...rings.flatMap(({ base, slot0, numSlots }) => [
        ...[RING_HEAD, RING_CUR, RING_TAIL].map((at) => base + at),
        ...Array.from({ length: SLOT_WORDS * numSlots }, (_, i) => slot0 + i),
      ]),
    ],
    progress,
  };
  const vandal = new Worker(fileURLToPath(new URL('../../support/pipe-vandal.js', import.meta.url)), {
    workerData: job,
  });
  const shared = new Int32Array(progress);
  const exit = once(vandal, 'exit');
  try {
    while (Atomics.load(shared, 0) < WRITES) {
      for (let n = 0; n < 200; n++) turn();
      await new Promise((resolve) => setImmediate(resolve));
    }
  } finally {
    Atomics.store(shared, 1, 1);
    await exit;
  }
}

/** Sends as much as there is room for: frames of one to three slots, lengths of 1 to 2,048 bytes. */
function fill(port: Port): void {
  const [tx] = port.tx;
  for (let n = tx.space; n > 0; n--) {
    tx.setLenFlags(tx.head, 1 + ((n * 577) % 2048), n % 3 === 0 ? MOREFRAG : 0);
    tx.advance(1);
  }
  port.txsync();
}

describe('a pipe whose memory is written over by somebody else at the same time', () => {
  async function run(others: string[], copy: boolean): Promise<void> {
    const name = `hostile-${process.pid}-${++tests}`;
    const end = (text: string) => `pipe:${name}${text}@slots=${SLOTS}`;
    const near = openPort(end('{1'));
    const bridged = openPorts([end('}1'), ...(others.length > 0 ? others : [end('{2')])]);
    const far = others.length > 0 ? [] : [openPort(end('}2'))];
    const ports = [near, ...bridged, ...far];
    try {
      const bridge = new Bridge(nicSide(bridged[0]), nicSide(bridged[1]), { copy });
      const sink = new Receiver(far[0] ?? near, REQUEST);
      await beside(name, ports, () => {
        fill(near);
        bridge.turn();
        sink.receive();
      });
      for (const counters of bridge.counters) for (const count of counters) assert.ok(count >= 0 && count < 2 ** 53);
      assert.ok(bridge.counters[0][FRAMES] > 0);
      for (const port of ports) for (const count of Object.values(port.stats())) assert.ok(count >= 0);
    } finally {
      for (const port of ports) port.close();
      new PipeFiles(name).remove();
    }
  }

  it('never throws in a bridge that exchanges buffers', () => run([], false));
  it('never throws in a bridge that copies', () => run([], true));
  it('never throws in a bridge to another kind of port', () => run(['sim:hostile@check=off'], true));
  it('never throws in a bridge to a capture', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'hostile-'));
    try {
      await run([`pcap:@out=${join(folder, 'out.pcap')}`], true);
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('never throws in a generator or a sink', async () => {
    const name = `hostile-${process.pid}-${++tests}`;
    const ports = ['{1', '}1'].map((text) => openPort(`pipe:${name}${text}@slots=${SLOTS}`));
    try {
      const flow = {
        sourceMac: parseMacRange('02:00:00:00:00:01'),
        destinationMac: parseMacRange('02:00:00:00:00:02'),
        vlans: [],
        source: parseEndpoint('10.0.0.1', 9),
        destination: parseEndpoint('10.0.0.2', 9),
      };
      const templates = makeTemplates(flow, { sizes: [64, 1518, 3000], randomPayload: false, plain: false });
      const sender = new Sender(ports[0], ports[0].tx, { flow, templates, burst: 32, rate: Infinity, stream: 1 });
      const sink = new Receiver(ports[1], REQUEST);
      await beside(name, ports, () => {
        sender.send(now(), 32);
        sink.receive();
      });
      assert.ok(sink.frames > 0);
    } finally {
      for (const port of ports) port.close();
      new PipeFiles(name).remove();
    }
  });

  it('opens, or says that the memory is damaged, and nothing else', async () => {
    const name = `hostile-${process.pid}-${++tests}`;
    const kept = openPort(`pipe:${name}{1@slots=${SLOTS}`);
    let [opened, refused, turns] = [0, 0, 0];
    try {
      await beside(name, [kept], () => {
        // 200 turns, then a visit of the event loop: one of them is enough.
        if (turns++ % 200 !== 0) return;
        try {
          openPort(`pipe:${name}}1@slots=${SLOTS}`).close();
          opened++;
        } catch (error) {
          assert.ok(error instanceof PortError && error.code === 'EIO', String(error));
          refused++;
        }
      });
      assert.ok(opened + refused > 0);
    } finally {
      kept.close();
      new PipeFiles(name).remove();
    }
  });
});

describe('a pipe’s memory that was written over while nobody had it open', () => {
  it('is made anew or gone on with, whatever it holds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.nat(), fc.oneof(fc.integer({ min: -4, max: 40 }), fc.integer())), { maxLength: 20 }),
        fc.boolean(),
        (writes, inHeader) => {
          const name = `hostile-${process.pid}-${++tests}`;
          const end = (text: string) => `pipe:${name}${text}1@slots=4`;
          const files = new PipeFiles(name);
          const first = openPort(end('{'));
          first.tx[0].setLenFlags(0, 60);
          first.tx[0].advance(1); // a frame that waits keeps the memory
          first.txsync();
          const limit = inHeader ? 64 : first.tx[0].bufBase / 4;
          first.close();
          const { handle, buffer } = native.mapShared(files.memory, 0);
          const words = new Int32Array(buffer);
          for (const [at, value] of writes) words[at % limit] = value;
          native.closeMemory(handle);
          const open: Port[] = [];
          try {
            for (const text of ['{', '}']) open.push(openPort(end(text)));
            const [a, b] = open;
            for (let n = 0; n < 10; n++) {
              fill(a);
              b.rxsync();
              while (b.rx[0].space > 0) b.rx[0].advance(1);
              b.rxsync();
            }
          } catch (error) {
            assert.ok(error instanceof PortError, String(error));
            assert.match(error.message, /is damaged; close every port|exists with \d+ slots|already has \d+ pipes/);
          } finally {
            for (const port of open) port.close();
            files.remove();
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
