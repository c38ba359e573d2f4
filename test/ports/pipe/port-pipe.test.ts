// Pipes in shared memory: netmap's ring rules between two ends, in one process and across processes, whatever dies.
import assert from 'node:assert/strict';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, readdirSync, rmSync, statSync, truncateSync } from 'node:fs';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Worker } from 'node:worker_threads';
import { BUF_CHANGED, MOREFRAG, RING_CUR, RING_HEAD } from '../../../lib/rings/abi.js';
import { BYTES, BAD_BUFFER, COUNTERS, FRAMES, ZERO_SLOTS } from '../../../lib/forward/counters.js';
import { PortError } from '../../../lib/text/errors.js';
import { forwarder, isZeroCopy } from '../../support/forwarder.js';
import { openPort } from '../../../lib/ports/open.js';
import type { Port } from '../../../lib/ports/port.js';
import { consWord, prodWord } from '../../../lib/ports/pipe/pipe-layout.js';
import { FrameChecker, putFrame } from '../../support/pipe-frames.js';
import { randomStream } from '../../support/random.js';

const FOLDER = process.platform === 'linux' ? '/dev/shm' : '/tmp';
const CHILD = fileURLToPath(new URL('../../support/pipe-child.js', import.meta.url));

let tests = 0;
/** A name that no other test, and no other run beside this one, uses. */
function freshName(): string {
  return `test-${process.pid}-${++tests}`;
}
function files(name: string): string[] {
  return readdirSync(FOLDER).filter((file) => file.startsWith(`netmap-bridge.${process.geteuid!()}.${name}`));
}
function memoryPath(name: string): string {
  return `${FOLDER}/netmap-bridge.${process.geteuid!()}.${name}`;
}

const opened: Port[] = [];
const children: ChildProcess[] = [];
function open(name: string): Port {
  const port = openPort(name);
  opened.push(port);
  return port;
}
/** Both ends of pipe 1, and what puts frames on the one and takes them from the other. */
function pair(name: string, slots: number): [Port, Port] {
  return [open(`pipe:${name}{1@slots=${slots}`), open(`pipe:${name}}1@slots=${slots}`)];
}
function spawn(...args: string[]): ChildProcess {
  const child = fork(CHILD, args);
  children.push(child);
  return child;
}
async function message(child: ChildProcess): Promise<Record<string, unknown>> {
  const [received] = (await once(child, 'message')) as [Record<string, unknown>];
  return received;
}
async function kill(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, 'exit');
  child.kill('SIGKILL');
  await exit;
}

afterEach(async () => {
  for (const port of opened.splice(0)) port.close();
  for (const child of children.splice(0)) await kill(child);
  for (const file of files(`test-${process.pid}-`)) rmSync(`${FOLDER}/${file}`, { force: true });
});

/** Sends slots of the given lengths, in one go. */
function send(port: Port, ...lengths: number[]): void {
  const tx = port.tx[0];
  for (const length of lengths) {
    tx.u8[tx.dataStart(tx.head)] = length & 0xff;
    tx.setLenFlags(tx.head, length);
    tx.advance(1);
  }
  port.txsync();
}
/** Lengths of all slots that have arrived, taken and given back. */
function take(port: Port): number[] {
  port.rxsync();
  const rx = port.rx[0];
  const lengths: number[] = [];
  while (rx.space > 0) {
    lengths.push(rx.len(rx.head));
    rx.advance(1);
  }
  port.rxsync();
  return lengths;
}
/** Every buffer that the slots of these ports name, sorted. */
function buffers(...ports: Port[]): number[] {
  return ports
    .flatMap((port) => [...port.tx, ...port.rx])
    .flatMap((ring) => Array.from({ length: ring.numSlots }, (_, i) => ring.bufIdx(i)))
    .sort((a, b) => a - b);
}
/** Both ends of the first `pipes` pipes own buffers 2 … 4 × slots × pipes + 1, each once. */
function assertAudit(slots: number, ...ports: Port[]): void {
  assert.deepEqual(
    buffers(...ports),
    Array.from({ length: 2 * slots * ports.length }, (_, i) => i + 2),
  );
}

describe('rings of a pipe', () => {
  it('starts with slots − 1 free tx slots and nothing to read', () => {
    const [a, b] = pair(freshName(), 8);
    assert.equal(a.tx[0].space, 7);
    assert.equal(b.rx[0].space, 0);
    assert.equal(a.driver, 'pipe');
    assert.deepEqual([a.hasLink, a.linkUp(), a.ended(), a.txPending()], [false, true, false, 0]);
    assertAudit(8, a, b);
  });

  it('exchanges buffers and copies nothing', () => {
    const [a, b] = pair(freshName(), 8);
    const sent = a.tx[0].bufIdx(0);
    const spare = b.rx[0].bufIdx(0);
    send(a, 100);
    b.rxsync();
    assert.equal(b.rx[0].bufIdx(0), sent);
    assert.equal(a.tx[0].bufIdx(0), spare);
    assert.equal(b.rx[0].data(0)[0], 100);
    assertAudit(8, a, b);
  });

  it('is full at slots − 1, and gets a slot back for each that the reader gives back', () => {
    const [a, b] = pair(freshName(), 4);
    send(a, 60, 61, 62);
    assert.equal(a.tx[0].space, 0);
    b.rxsync();
    assert.equal(b.rx[0].space, 3);
    b.rx[0].advance(2);
    a.txsync();
    assert.equal(a.tx[0].space, 0, 'not given back before the reader syncs');
    b.rxsync();
    a.txsync();
    assert.equal(a.tx[0].space, 2);
  });

  for (const slots of [2, 3, 8])
    it(`keeps order, lengths and flags over every wrap, both ways (${slots} slots)`, () => {
      const [a, b] = pair(freshName(), slots);
      const flags: number[] = [];
      let length = 60;
      for (let turn = 0; turn < 50; turn++) {
        const n = 1 + (turn % (slots - 1));
        for (const [from, to] of [
          [a, b],
          [b, a],
        ] as const) {
          const lengths = Array.from({ length: n }, () => length++);
          for (const [k, len] of lengths.entries()) {
            from.tx[0].setLenFlags(from.tx[0].head, len, (k + 1 < n ? MOREFRAG : 0) | BUF_CHANGED);
            from.tx[0].advance(1);
          }
          from.txsync();
          to.rxsync();
          const rx = to.rx[0];
          assert.equal(rx.space, n);
          for (let k = 0; k < n; k++) flags.push(rx.slotFlags(rx.after(rx.head, k)) ^ (k + 1 < n ? MOREFRAG : 0));
          assert.deepEqual(take(to), lengths);
          from.txsync();
        }
      }
      assert.ok(
        flags.every((flag) => flag === 0),
        'only MOREFRAG crosses',
      );
      assertAudit(slots, a, b);
    });

  it('lets frames of one memory pass from pipe to pipe without copying', () => {
    const name = freshName();
    const [a, b] = pair(name, 8);
    const c = open(`pipe:${name}{2@slots=8`);
    const d = open(`pipe:${name}}2@slots=8`);
    assert.equal(b.region.id, `pipe:${name}`);
    assert.ok(isZeroCopy(b.rx[0], c.tx[0]));
    const counters = new Float64Array(COUNTERS);
    const forward = forwarder(b.rx[0], c.tx[0], counters);
    const checker = new FrameChecker();
    for (let n = 0; n < 1000;) {
      while (n < 1000 && putFrame(a.tx[0], 0, n)) n++;
      a.txsync();
      b.rxsync();
      forward(3);
      c.txsync();
      d.rxsync();
      checker.takeAll(d.rx[0]);
    }
    for (let k = 0; k < 20; k++) {
      b.rxsync();
      forward(8);
      c.txsync();
      d.rxsync();
      checker.takeAll(d.rx[0]);
    }
    assert.deepEqual([checker.frames, checker.faults], [1000, []]);
    assert.equal(counters[FRAMES], 1000);
    assertAudit(8, a, b, c, d);
  });

  it('puts a ring back whose head was left outside, and counts it', () => {
    const [a, b] = pair(freshName(), 8);
    send(a, 60);
    for (const word of [RING_HEAD, RING_CUR])
      for (const value of [-1, 8, 0x7fffffff, 0]) {
        a.tx[0].i32[a.tx[0].base + word] = value;
        a.txsync();
        assert.deepEqual([a.tx[0].head, a.tx[0].cur], [1, 1]);
      }
    assert.equal(a.stats()['reinits'], 8);
    assert.deepEqual(take(b), [60]);
  });
});

describe('ends that come and go', () => {
  it('takes slots − 1 frames without a peer, and hands them to the next one', () => {
    const name = freshName();
    const a = open(`pipe:${name}{1@slots=4`);
    send(a, 60, 61, 62);
    a.txsync();
    assert.equal(a.tx[0].space, 0);
    a.close();
    const b = open(`pipe:${name}}1@slots=4`);
    assert.deepEqual(take(b), [60, 61, 62]);
    b.close();
    assert.deepEqual(files(name), []);
  });

  it('survives any number of reconnects of either end', () => {
    const name = freshName();
    let [a, b] = pair(name, 8);
    for (let turn = 0; turn < 30; turn++) {
      send(a, 60 + turn, 100 + turn, 200 + turn);
      b.rxsync();
      assert.equal(b.rx[0].len(b.rx[0].head), 60 + turn);
      b.rx[0].advance(1); // taken, and given back by close()
      if (turn % 2 === 0) {
        b.close();
        b = open(`pipe:${name}}1@slots=8`);
      } else {
        a.close();
        a = open(`pipe:${name}{1@slots=8`);
      }
      assert.deepEqual(take(b), [100 + turn, 200 + turn]);
      a.txsync();
      assert.equal(a.tx[0].space, 7);
      assertAudit(8, a, b);
    }
    assert.equal(a.stats()['repaired'], 0);
  });

  it('removes its files with the last end, unless frames wait', () => {
    const name = freshName();
    const [a, b] = pair(name, 8);
    assert.equal(statSync(memoryPath(name)).mode & 0o777, 0o600);
    a.close();
    assert.ok(existsSync(memoryPath(name)), 'the other end is open');
    send(b, 60);
    b.close();
    assert.ok(existsSync(memoryPath(name)), 'a frame waits');
    const again = open(`pipe:${name}{1@slots=8`);
    assert.deepEqual(take(again), [60]);
    again.close();
    assert.deepEqual(files(name), []);
  });

  it('reads as empty when the last port of a memory is closed, and refuses to sync', () => {
    const [a, b] = pair(freshName(), 8);
    send(a, 60);
    const rx = b.rx[0];
    take(b);
    a.close();
    b.close();
    b.close();
    assert.equal(rx.i32.length, 0);
    assert.deepEqual([rx.space, rx.head, rx.data(0).length], [0, 0, 0]);
    for (const sync of ['txsync', 'rxsync'] as const)
      assert.throws(() => {
        b[sync]();
      }, /pipe:.*: the port is closed/);
  });
});

describe('between processes', () => {
  it('carries a million frames complete, in order and intact', { timeout: 120_000 }, async () => {
    const name = freshName();
    const frames = 1_000_000;
    const sender = spawn('send', `pipe:${name}{1`, String(frames));
    const receiver = spawn('receive', `pipe:${name}}1`, String(frames));
    await message(receiver);
    assert.deepEqual(await message(receiver), { frames, faults: [] });
    for (const child of [sender, receiver]) if (child.exitCode === null) await once(child, 'exit');
    assert.deepEqual([sender.exitCode, receiver.exitCode], [0, 0]);
    assert.deepEqual(files(name), []);
  });

  it('refuses an end that is open elsewhere, and says where', async () => {
    const name = freshName();
    const child = spawn('hold', `pipe:${name}{1`);
    await message(child);
    assert.throws(
      () => openPort(`pipe:${name}{1`),
      (error: PortError) =>
        error instanceof PortError &&
        error.code === 'EBUSY' &&
        error.message.includes(
          `already open in process ${child.pid}; close it there, open the other end (pipe:${name}}1)`,
        ),
    );
    const own = open(`pipe:${name}}1`);
    assert.throws(() => openPort(`pipe:${name}}1`), /already open in this process/);
    await kill(child);
    const after = open(`pipe:${name}{1`);
    assert.match(after.notes.join(), new RegExp(`^process ${child.pid} ended without closing pipe:`));
    assertAudit(1024, after, own);
  });

  it('refuses another number of slots while the memory is in use, and forgets one that nobody uses', async () => {
    const name = freshName();
    const child = spawn('hold', `pipe:${name}{1@slots=16`);
    await message(child);
    const refused = (error: PortError) =>
      error instanceof PortError && error.code === 'EEXIST' && /with 16 slots, not 32, .*slots=16/.test(error.message);
    assert.throws(() => openPort(`pipe:${name}}1@slots=32`), refused);
    const other = open(`pipe:${name}}1@slots=16`);
    assert.throws(() => openPort(`pipe:${name}{2@slots=32`), refused);
    send(other, 60);
    await kill(child);
    other.close();
    assert.throws(() => openPort(`pipe:${name}{1@slots=32`), refused, 'a frame waits');
    const reader = open(`pipe:${name}{1@slots=16`);
    assert.deepEqual(take(reader), [60]);
    reader.close();
    const left = spawn('hold', `pipe:${name}{1@slots=16`);
    await message(left);
    await kill(left);
    assert.ok(existsSync(memoryPath(name)), 'a killed process leaves its files');
    const fresh = open(`pipe:${name}{1@slots=32`);
    assert.equal(fresh.tx[0].space, 31);
    fresh.close();
    assert.deepEqual(files(name), []);
  });

  it('finds the buffer that a process killed in mid-exchange had in hand', async () => {
    const name = freshName();
    const a = open(`pipe:${name}{1@slots=8`);
    const d = open(`pipe:${name}}2@slots=8`);
    send(a, 77, 78);
    const child = spawn('tear', `pipe:${name}}1@slots=8`, `pipe:${name}{2@slots=8`);
    await once(child, 'exit');
    const b = open(`pipe:${name}}1@slots=8`);
    assert.equal(b.stats()['repaired'], 1);
    const c = open(`pipe:${name}{2@slots=8`);
    assert.equal(c.stats()['repaired'], 0);
    assertAudit(8, a, b, c, d);
    assert.deepEqual(take(b), [77, 78]);
  });

  it(
    'goes on after its bridge is killed, time and again: nothing altered, no buffer lost',
    { timeout: 120_000 },
    async () => {
      const name = freshName();
      const random = randomStream(24);
      const [near, far] = [open(`pipe:${name}{1@slots=64`), open(`pipe:${name}}2@slots=64`)];
      const bridged = [`pipe:${name}}1@slots=64`, `pipe:${name}{2@slots=64`] as const;
      const checker = new FrameChecker(true);
      let n = 0;
      const pump = () => {
        while (putFrame(near.tx[0], 0, n)) n++;
        near.txsync();
        far.rxsync();
        checker.takeAll(far.rx[0]);
        far.rxsync();
      };
      for (let turn = 0; turn < 25; turn++) {
        const child = spawn('bridge', ...bridged);
        const state = { forwarding: false };
        child.on('message', (said: { forwarding?: boolean }) => {
          state.forwarding ||= said.forwarding === true;
        });
        while (!state.forwarding) {
          pump();
          await sleep(0);
        }
        const before = checker.frames;
        for (let left = Math.floor(random() * 3000); left > 0; left--) pump();
        child.kill('SIGKILL');
        while (child.signalCode === null) {
          pump();
          await sleep(0);
        }
        assert.deepEqual(checker.faults, []);
        assert.ok(checker.frames >= before);
      }
      const [b, c] = [open(bridged[0]), open(bridged[1])];
      assertAudit(64, near, b, c, far);
      assert.ok(checker.frames > 1000, `${checker.frames} frames`);
      assert.ok(checker.gaps <= 50, `${checker.gaps} gaps: frames are lost only where a bridge was killed`);
    },
  );
});

describe('shared words that somebody damaged', () => {
  for (const value of [-1, 8, 0x7fffffff, -0x80000000, 5])
    it(`does not believe a published word of ${value}`, () => {
      const [a, b] = pair(freshName(), 8);
      send(a, 60, 61, 62);
      assert.deepEqual(take(b), [60, 61, 62]);
      send(a, 63);
      // Given back up to slot 3; sent up to slot 4.
      a.region.i32[consWord(0, 0)] = value;
      a.txsync();
      assert.equal(a.stats()['badIndex'], 1);
      assert.equal(a.tx[0].space, 6, 'the last good word counts');
      b.rxsync();
      a.txsync();
      assert.equal(a.stats()['badIndex'], 1, 'the reader has put its word right');
      if (value === 5) return; // one slot more than was sent is no nonsense to the reader
      a.region.i32[prodWord(0, 0)] = value;
      b.rxsync();
      assert.equal(b.stats()['badIndex'], 1);
      assert.equal(b.rx[0].space, 1);
      a.txsync();
      assert.deepEqual(take(b), [63]);
      assert.equal(b.stats()['badIndex'], 1);
      assertAudit(8, a, b);
    });

  for (const [what, damage] of [
    ['an index', { at: 0, values: [0, 1, -1, 0x7fffffff] }],
    ['a length', { at: 1, values: [2049, 0xffff] }],
  ] as const)
    for (const value of damage.values)
      for (const victim of [0, 1, 2])
        it(`drops the whole frame for ${what} of ${value} in slot ${victim} of its three`, () => {
          const [a, b] = pair(freshName(), 8);
          const tx = a.tx[0];
          for (const [i, len] of [60, 200, 201, 202, 61].entries())
            tx.setLenFlags(i, len, i === 1 || i === 2 ? MOREFRAG : 0);
          const word = tx.slotWord(1 + victim) + damage.at;
          const good = tx.i32[word];
          tx.i32[word] = damage.at === 0 ? value : (good & ~0xffff) | value;
          tx.advance(5);
          a.txsync();
          b.rxsync();
          assert.equal(a.stats()['badFrames'], 1);
          assert.deepEqual(
            [0, 1, 2, 3, 4].map((i) => [b.rx[0].len(i), b.rx[0].slotFlags(i)]),
            [60, 0, 0, 0, 61].map((len) => [len, 0]),
          );
          const counters = new Float64Array(COUNTERS);
          const forward = forwarder(b.rx[0], b.tx[0], counters);
          while (forward(8) > 0);
          assert.deepEqual([counters[FRAMES], counters[ZERO_SLOTS]], [2, 3]);
        });

  it('sends no frame before it is whole: one that goes bad in a later slot arrives not at all, not cut short', () => {
    const [a, b] = pair(freshName(), 8);
    const tx = a.tx[0];
    tx.setLenFlags(0, 200, MOREFRAG);
    tx.advance(1);
    a.txsync();
    b.rxsync();
    assert.equal(b.rx[0].space, 0);
    tx.setLenFlags(1, 2049);
    tx.setLenFlags(2, 60);
    tx.advance(2);
    a.txsync();
    b.rxsync();
    assert.deepEqual(a.refused!(), { frames: 1, bytes: 200 + 2049 });
    const counters = new Float64Array(COUNTERS);
    const forward = forwarder(b.rx[0], b.tx[0], counters);
    while (forward(8) > 0);
    assert.deepEqual([counters[FRAMES], counters[BYTES], counters[ZERO_SLOTS]], [1, 60, 2]);
    assertAudit(8, a, b);
  });

  it('drops a frame that fills the ring without an end, and what comes of it later', () => {
    const [a, b] = pair(freshName(), 4);
    const tx = a.tx[0];
    const add = (len: number, more: boolean): void => {
      tx.setLenFlags(tx.head, len, more ? MOREFRAG : 0);
      tx.advance(1);
    };
    for (const len of [100, 101, 102]) add(len, true);
    a.txsync();
    assert.deepEqual(take(b), [0, 0, 0]);
    b.rxsync();
    a.txsync();
    add(103, true);
    a.txsync();
    add(104, false);
    add(60, false);
    a.txsync();
    assert.deepEqual(take(b), [0, 0, 60]);
    assert.deepEqual(a.refused!(), { frames: 1, bytes: 100 + 101 + 102 + 103 + 104 });
  });

  it('tells what the other end has not taken yet, without waiting for its next sync', () => {
    const [a, b] = pair(freshName(), 8);
    const untaken = () => a.stats()['untaken'];
    assert.equal(untaken(), 0);
    send(a, 60, 61, 62, 63, 64);
    assert.equal(untaken(), 5);
    b.rxsync();
    assert.equal(untaken(), 5);
    b.rx[0].advance(3);
    assert.equal(untaken(), 2);
    b.rxsync();
    assert.equal(untaken(), 2);
    b.rx[0].advance(2);
    assert.equal(untaken(), 0);
    assert.equal(a.txPending(), 0);
  });

  it('gives no bytes for a buffer outside the memory that arrived, and takes no such buffer back', () => {
    const [a, b] = pair(freshName(), 4);
    send(a, 60);
    b.rxsync();
    const rx = b.rx[0];
    rx.i32[rx.slotWord(0)] = 0x7fffffff;
    assert.deepEqual([rx.slotValid(0), rx.data(0).length], [false, 0]);
    const counters = new Float64Array(COUNTERS);
    forwarder(rx, b.tx[0], counters)(4);
    assert.equal(counters[BAD_BUFFER], 1);
    b.rxsync();
    a.txsync();
    send(a, 61, 62, 63);
    assert.deepEqual(take(b), [61, 62, 63]);
    a.txsync();
    send(a, 64, 65); // slot 0 has no buffer to give for the first
    assert.deepEqual(take(b), [0, 65]);
    assert.equal(a.stats()['badFrames'], 1);
    assert.ok(buffers(a).every((idx) => idx >= 2 && idx < 18));
    // The slot is the sender's now: the next sender finds the buffer that is missing from it.
    a.close();
    const again = open(a.name);
    assert.equal(again.stats()['repaired'], 1);
    assertAudit(4, again, b);
  });

  it('never throws in a sync, whatever is scribbled over header and rings', () => {
    const name = freshName();
    const [a, b] = pair(name, 16);
    const random = randomStream(7);
    const rings = a.tx[0].bufBase / 4;
    const counters = new Float64Array(COUNTERS);
    const forward = forwarder(b.rx[0], b.tx[0], counters);
    for (let n = 0; n < 20_000; n++) {
      const wild = random() < 0.5 ? Math.floor(random() * 40) - 8 : Math.floor((random() - 0.5) * 2 ** 32);
      a.region.i32[Math.floor(random() * rings)] = wild;
      a.region.i32[[consWord, prodWord][n & 1](0, (n >> 1) & 1)] = wild;
      if (a.tx[0].space > 0) a.tx[0].advance(1);
      a.txsync();
      b.rxsync();
      forward(16);
      b.txsync();
      a.rxsync();
      for (let i = 0; i < 16; i++) assert.ok(a.rx[0].data(i).length <= 2048);
    }
    a.close();
    b.close();
    // Its magic number is gone with the rest: nobody uses it, so it is made anew.
    assertAudit(16, ...pair(name, 16));
  });

  it('makes the memory anew where a left-over is cut short and nobody uses it', async () => {
    const name = freshName();
    const child = spawn('hold', `pipe:${name}{1@slots=8`);
    await message(child);
    await kill(child);
    truncateSync(memoryPath(name), 4096);
    const [a, b] = pair(name, 8);
    send(a, 60);
    assert.deepEqual(take(b), [60]);
  });

  it('trusts no memory that others may write', () => {
    const name = freshName();
    const a = open(`pipe:${name}{1@slots=8`);
    send(a, 60);
    a.close();
    chmodSync(memoryPath(name), 0o666);
    assert.throws(() => openPort(`pipe:${name}}1@slots=8`), /another user's, or open to others/);
    rmSync(memoryPath(name));
  });
});

describe('many pipes, many threads', () => {
  it('has room for 16 pipes of a name, and reuses one that nobody uses', () => {
    const name = freshName();
    const ports = Array.from({ length: 16 }, (_, k) => open(`pipe:${name}{p${k}@slots=4`));
    assert.throws(() => openPort(`pipe:${name}{p16@slots=4`), /already has 16 pipes \(p0, .*p15\), all in use/);
    ports[5].close();
    open(`pipe:${name}}p16@slots=4`);
    const peer = open(`pipe:${name}{p16@slots=4`);
    send(peer, 60);
    assert.throws(() => openPort(`pipe:${name}{p5@slots=4`), /already has 16 pipes/);
  });

  it('opens the largest rings: offsets stay below 2 GiB', () => {
    const [a, b] = pair(freshName(), 65536);
    assert.ok(a.region.buffer.byteLength < 2 ** 31);
    send(a, 60);
    assert.deepEqual(take(b), [60]);
  });

  it('carries frames between threads, and lets go of the end of a thread that was stopped', async () => {
    const name = freshName();
    const code = `
      const { openPort } = await import(${JSON.stringify(new URL('../../../lib/ports/open.js', import.meta.url).href)});
      const { putFrame } = await import(${JSON.stringify(new URL('../../support/pipe-frames.js', import.meta.url).href)});
      const port = openPort('pipe:${name}{1');
      for (let n = 0; ; port.txsync()) while (putFrame(port.tx[0], 0, n)) n++;
    `;
    const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(code)}`));
    const b = open(`pipe:${name}}1`);
    const checker = new FrameChecker();
    while (checker.frames < 100_000) {
      b.rxsync();
      checker.takeAll(b.rx[0]);
      await sleep(0);
    }
    assert.throws(() => openPort(`pipe:${name}{1`), /already open in this process/);
    await worker.terminate();
    assert.deepEqual(checker.faults, []);
    const a = open(`pipe:${name}{1`);
    assertAudit(1024, a, b);
  });
});
