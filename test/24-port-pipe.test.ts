// Pipes in shared memory: netmap's ring rules between two ends, in one process and across processes, whatever dies.
import assert from 'node:assert/strict';
import { fork, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readdirSync, rmSync, statSync } from 'node:fs';
import { afterEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { BUF_CHANGED, MOREFRAG, RING_CUR, RING_HEAD } from '../lib/abi.js';
import { COUNTERS, FRAMES } from '../lib/counters.js';
import { PortError } from '../lib/errors.js';
import { forwarder, isZeroCopy } from '../lib/forward.js';
import { openPort } from '../lib/open.js';
import type { Port } from '../lib/port.js';
import { FrameChecker, putFrame } from './support/pipe-frames.js';
import { randomStream } from './support/random.js';

const FOLDER = process.platform === 'linux' ? '/dev/shm' : '/tmp';
const CHILD = fileURLToPath(new URL('support/pipe-child.js', import.meta.url));

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
