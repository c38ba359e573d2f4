// The shim's memory, locks, handles and thread calls: nothing stale may be harmful, nothing goes outside its bounds.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import fc from 'fast-check';
import { native, now } from '../../lib/shim/native.js';

const nativeUrl = new URL('../../lib/shim/native.js', import.meta.url).href;
const folder = mkdtempSync(join(tmpdir(), 'nmb-memory-'));
after(() => {
  rmSync(folder, { recursive: true });
});
const HUGE = 2 << 20;
const badHandle = { code: 'EBADF', errno: constants.errno.EBADF };

/** Runs `body` (source text, with `native` and `data`) in a worker until its first message. */
function inWorker(body: string, data: unknown = null): { worker: Worker; message: Promise<unknown> } {
  const worker = new Worker(
    `import('node:worker_threads').then(async ({ parentPort, workerData }) => {
      const { native } = await import(workerData.url);
      const { data } = workerData;
      const say = (what) => parentPort.postMessage(what);
      ${body}
    });`,
    { eval: true, workerData: { url: nativeUrl, data } },
  );
  return { worker, message: once(worker, 'message').then(([message]: unknown[]) => message) };
}

describe('memory', () => {
  it('is zeroed, whole huge pages, and writable to its last word', () => {
    const { handle, buffer } = native.mapAnonymous(HUGE + 1);
    assert.equal(buffer.byteLength, 2 * HUGE);
    const view = new Int32Array(buffer);
    assert.ok(view.every((word) => word === 0));
    view[view.length - 1] = 7;
    assert.equal(view[view.length - 1], 7);
    native.closeMemory(handle);
  });

  it('refuses a size that is none', () => {
    for (const bytes of [0, -1, 1.5, NaN, Infinity, 2 ** 53, '1' as unknown as number])
      assert.throws(() => native.mapAnonymous(bytes), { name: 'TypeError', code: 'EINVAL' });
    assert.throws(() => native.mapAnonymous(2 ** 52), { code: 'ENOMEM', syscall: 'mmap' });
    assert.throws(
      () => {
        (native.mapAnonymous as unknown as () => void)();
      },
      { name: 'TypeError', code: 'EINVAL' },
    );
  });

  it('reads as empty after close, and takes no write', () => {
    const { handle, buffer } = native.mapAnonymous(HUGE);
    const words = new Int32Array(buffer);
    const bytes = new Uint8Array(buffer, 64, 64);
    words.fill(-1);
    native.closeMemory(handle);
    assert.deepEqual([buffer.byteLength, words.length, bytes.length], [0, 0, 0]);
    assert.equal(words[0], undefined);
    words[0] = 1;
    assert.equal(words[0], undefined);
    const list = new Int32Array(3);
    const other = new Int32Array(4);
    assert.throws(() => {
      native.copier(words, other, list)(1);
    }, TypeError);
    assert.throws(() => native.poll(words, 0, 0), TypeError);
  });

  it('reads as empty after close in a hot loop that was compiled with it', () => {
    const { handle, buffer } = native.mapAnonymous(HUGE);
    const words = new Int32Array(buffer);
    words.fill(1);
    let sum = 0;
    const read = (): void => {
      for (let i = 0; i < 1000; i++) sum += words[i] ?? 0;
    };
    for (let turn = 0; turn < 1000; turn++) read();
    native.closeMemory(handle);
    read();
    assert.equal(sum, 1_000_000);
  });

  it('is harmless when stale in a worker too', async () => {
    const { worker, message } = inWorker(`
      const { handle, buffer } = native.mapAnonymous(${HUGE});
      const words = new Int32Array(buffer);
      words.fill(5);
      native.closeMemory(handle);
      words[0] = 6;
      let code;
      try { native.closeMemory(handle); } catch (error) { code = error.code; }
      say([words.length, words[0] ?? null, code]);`);
    assert.deepEqual(await message, [0, null, 'EBADF']);
    await worker.terminate();
  });

  it('goes with a worker that is terminated while it writes', async () => {
    const { worker, message } = inWorker(`
      const words = new Int32Array(native.mapAnonymous(${HUGE}).buffer);
      say('writing');
      for (let i = 0; ; i = (i + 1) % words.length) words[i] = i;`);
    assert.equal(await message, 'writing');
    assert.equal(await worker.terminate(), 1);
  });

  it('does not move to another thread', () => {
    const { handle, buffer } = native.mapAnonymous(HUGE);
    try {
      structuredClone(buffer, { transfer: [buffer] }); // Node 20 makes a copy
    } catch (error) {
      assert.equal((error as Error).name, 'DataCloneError'); // later ones refuse
    }
    assert.equal(buffer.byteLength, HUGE);
    native.closeMemory(handle);
  });

  it('gives the address range back once nobody holds the buffer', async () => {
    const script = `import { native } from ${JSON.stringify(nativeUrl)};
      import { readFileSync } from 'node:fs';
      const size = () => Number(/VmSize:\\s+(\\d+)/.exec(readFileSync('/proc/self/status', 'utf8'))[1]);
      const turn = async () => {
        for (let i = 0; i < 20; i++) native.closeMemory(native.mapAnonymous(1 << 30).handle);
        for (let i = 0; i < 3; i++) { gc(); await new Promise(setImmediate); }
      };
      await turn();
      const before = size();
      await turn(); await turn();
      process.stdout.write(String((size() - before) >> 20));`;
    if (process.platform !== 'linux') return;
    const child = spawn(process.execPath, ['--expose-gc', '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.setEncoding('utf8');
    let grown = '';
    child.stdout.on('data', (text: string) => (grown += text));
    await once(child, 'close');
    assert.equal(grown, '0', 'GiB by which forty closed mappings of 1 GiB left the process larger');
  });
});

describe('handles', () => {
  it('a closed one is refused, also when its place has a new owner', () => {
    const first = native.mapAnonymous(HUGE);
    native.closeMemory(first.handle);
    const second = native.mapAnonymous(HUGE);
    assert.notEqual(second.handle, first.handle);
    assert.throws(() => {
      native.closeMemory(first.handle);
    }, badHandle);
    assert.equal(second.buffer.byteLength, HUGE);
    native.closeMemory(second.handle);
  });

  it('one of another kind, or none at all, is refused', () => {
    const lock = native.lock(join(folder, 'kind'));
    for (const handle of [lock, -1, 2 ** 31 - 1, 1.5, undefined, 'x', {}])
      assert.throws(() => {
        native.closeMemory(handle as number);
      }, badHandle);
    assert.equal(native.netmapTxsync(lock), constants.errno.EBADF);
    native.unlock(lock);
  });

  it('one of another thread means nothing here', async () => {
    const { handle } = native.mapAnonymous(HUGE);
    const { worker, message } = inWorker(
      `try { native.closeMemory(data); say('closed'); } catch (error) { say(error.code); }`,
      handle,
    );
    assert.equal(await message, 'EBADF');
    await worker.terminate();
    native.closeMemory(handle);
  });

  it('running out is an error, and closing makes room again', () => {
    const path = join(folder, 'many-');
    const locks: number[] = [];
    assert.throws(
      () => {
        for (let i = 0; i < 5000; i++) locks.push(native.lock(path + String(i)));
      },
      // Of this thread's handles or of the process's files, whichever there are fewer of.
      { code: 'EMFILE', message: /this thread has 4096 .*close some ports|Too many open files/ },
    );
    assert.ok(locks.length > 100);
    for (const lock of locks) native.unlock(lock);
    native.unlock(native.lock(`${path}0`));
  });
});

describe('copier', () => {
  const bytes = (array: Int32Array) => new Uint8Array(array.buffer);

  it('copies each triple', () => {
    const src = Int32Array.from({ length: 16 }, (_, i) => i * 0x01010101);
    const dst = new Int32Array(16);
    native.copier(dst, src, Int32Array.of(1, 4, 4, 63, 63, 1, 9, 9, 9))(2);
    const expected = new Uint8Array(64);
    expected.fill(1, 1, 5);
    expected[63] = 15;
    assert.deepEqual(bytes(dst), expected);
  });

  it('does exactly what set() does for any copies inside, and nothing for any list with one outside', () => {
    const size = 64;
    const triple = fc.tuple(fc.nat(size + 2), fc.nat(size + 2), fc.nat(size + 2));
    fc.assert(
      fc.property(fc.array(triple, { minLength: 1, maxLength: 6 }), (triples) => {
        const src = Int32Array.from({ length: size / 4 }, (_, i) => 0x03020100 + i * 0x04040404);
        const dst = new Int32Array(size / 4);
        const expected = new Uint8Array(size);
        const inside = triples.every(([to, from, n]) => to + n <= size && from + n <= size);
        const call = () => {
          native.copier(dst, src, Int32Array.from(triples.flat()))(triples.length);
        };
        if (inside) {
          for (const [to, from, n] of triples) expected.set(bytes(src).subarray(from, from + n), to);
          call();
        } else {
          assert.throws(call, { name: 'TypeError', message: 'list: a copy outside its memory' });
        }
        assert.deepEqual(bytes(dst), expected);
      }),
    );
  });

  it('a list that a copy could change after it was checked is refused; one beside dst or in src is not', () => {
    const words = new Int32Array(32);
    for (const [from, to] of [
      [0, 6],
      [10, 16],
      [15, 21],
    ])
      assert.throws(() => {
        native.copier(words.subarray(0, 16), words, words.subarray(from, to))(1);
      }, /^TypeError: list: lies in dst$/);
    words.set([4, 0, 4], 16);
    words[0] = 7;
    native.copier(words.subarray(0, 16), words, words.subarray(16, 19))(1);
    assert.deepEqual([...words.subarray(0, 3)], [7, 7, 0]);
  });

  it('offsets and lengths that wrap or are negative are outside', () => {
    const memory = new Int32Array(16);
    for (const list of [
      [-1, 0, 1],
      [0, -1, 1],
      [0, 0, -1],
      [-4, 0, 8],
      [0x7fffffff, 0, 1],
      [60, 0, 5],
    ])
      assert.throws(() => {
        native.copier(memory, memory, Int32Array.from(list))(1);
      }, TypeError);
  });

  it('believes no count beyond the list, and only Int32Arrays', () => {
    const memory = new Int32Array(16);
    const list = new Int32Array(6);
    for (const count of [3, -1, 2 ** 31])
      assert.throws(() => {
        native.copier(memory, memory, list)(count);
      }, TypeError);
    for (const wrong of [new Uint8Array(64), new Float64Array(8), memory.buffer, null])
      assert.throws(() => {
        native.copier(wrong as never, memory, list)(1);
      }, TypeError);
  });

  it('a view inside a larger buffer is bounded by the view', () => {
    const buffer = new ArrayBuffer(64);
    const view = new Int32Array(buffer, 16, 4);
    native.copier(view, Int32Array.of(-1, -1, -1, -1), Int32Array.of(0, 0, 16))(1);
    assert.deepEqual([...new Int32Array(buffer)], [0, 0, 0, 0, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert.throws(() => {
      native.copier(view, view, Int32Array.of(16, 0, 1))(1);
    }, TypeError);
  });
});

describe('lock', () => {
  it('one holder at a time, in one process', () => {
    const path = join(folder, 'one');
    const held = native.lock(path);
    assert.throws(() => native.lock(path), { code: 'EBUSY', syscall: 'flock', port: path });
    native.unlock(held);
    native.unlock(native.lock(path));
    assert.equal(statSync(path).mode & 0o777, 0o600);
  });

  it('and across processes, until the holder dies', async () => {
    const path = join(folder, 'across');
    const script = `import { native } from ${JSON.stringify(nativeUrl)};
      native.lock(${JSON.stringify(path)});
      process.stdout.write('held');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    assert.throws(() => native.lock(path), { code: 'EBUSY' });
    child.kill('SIGKILL');
    await once(child, 'exit');
    native.unlock(native.lock(path));
  });

  it('a worker that ends lets go', async () => {
    const path = join(folder, 'worker');
    const { worker, message } = inWorker(`native.lock(data); say('held'); setInterval(() => {}, 1000);`, path);
    await message;
    assert.throws(() => native.lock(path), { code: 'EBUSY' });
    await worker.terminate();
    native.unlock(native.lock(path));
  });

  it('follows no symlink', () => {
    const path = join(folder, 'lock-link');
    symlinkSync(join(folder, 'one'), path);
    assert.throws(() => native.lock(path), { code: 'ELOOP', syscall: 'open' });
  });
});

describe('mapShared', () => {
  it('is made once, private to its owner, and the same memory for all', () => {
    const path = join(folder, 'shared');
    const first = native.mapShared(path, 4096);
    const second = native.mapShared(path, 8192);
    const third = native.mapShared(path, 0);
    assert.deepEqual([first.created, second.created, third.created], [true, false, false]);
    assert.deepEqual([second.buffer.byteLength, third.buffer.byteLength], [4096, 4096], 'it keeps its size');
    assert.equal(statSync(path).mode & 0o777, 0o600);
    new Int32Array(first.buffer)[1023] = 42;
    assert.equal(new Int32Array(second.buffer)[1023], 42);
    native.closeMemory(first.handle);
    assert.equal(first.buffer.byteLength, 0);
    assert.equal(new Int32Array(third.buffer)[1023], 42, 'the others are not disturbed');
    native.closeMemory(second.handle);
    native.closeMemory(third.handle);
  });

  it('a file left empty by one who died is made anew', () => {
    const path = join(folder, 'empty');
    writeFileSync(path, '', { mode: 0o600 });
    assert.throws(() => native.mapShared(path, 0), { code: 'ENOENT' });
    const made = native.mapShared(path, 4096);
    assert.deepEqual([made.created, made.buffer.byteLength], [true, 4096]);
    native.closeMemory(made.handle);
  });

  it('trusts no file that others can open', () => {
    const path = join(folder, 'open');
    writeFileSync(path, Buffer.alloc(4096), { mode: 0o600 });
    for (const mode of [0o640, 0o604, 0o620, 0o666]) {
      chmodSync(path, mode);
      assert.throws(() => native.mapShared(path, 4096), { code: 'EACCES', port: path });
    }
    chmodSync(path, 0o600);
    native.closeMemory(native.mapShared(path, 0).handle);
  });

  it("nor somebody else's", { skip: process.getuid?.() !== 0 && 'not root: cannot give a file away' }, () => {
    const path = join(folder, 'theirs');
    writeFileSync(path, Buffer.alloc(4096), { mode: 0o600 });
    chownSync(path, 12345, 12345);
    assert.throws(() => native.mapShared(path, 4096), { code: 'EACCES' });
  });

  it('nor a symlink, a folder or a name that is none', () => {
    const link = join(folder, 'link');
    symlinkSync(join(folder, 'shared'), link);
    assert.throws(() => native.mapShared(link, 4096), { code: 'ELOOP', syscall: 'open', port: link });
    const dangling = join(folder, 'dangling');
    symlinkSync(join(folder, 'nowhere'), dangling);
    assert.throws(() => native.mapShared(dangling, 4096), { code: 'ELOOP' });
    const sub = join(folder, 'sub');
    mkdirSync(sub, { mode: 0o700 });
    assert.throws(() => native.mapShared(sub, 4096), { code: 'EISDIR' });
    assert.throws(() => native.mapShared(join(folder, 'none'), 0), { code: 'ENOENT' });
    assert.throws(() => native.mapShared(join(folder, 'x'.repeat(256)), 4096), { code: 'ENAMETOOLONG' });
    assert.throws(() => native.mapShared(join(folder, 'negative'), -1), { name: 'TypeError' });
  });

  it('a long path is not cut', () => {
    const deep = join(folder, 'd'.repeat(200));
    mkdirSync(deep);
    const path = join(deep, 'memory');
    native.closeMemory(native.mapShared(path, 4096).handle);
    assert.equal(statSync(path).size, 4096);
  });
});

describe('thread', () => {
  it('the clock does not go back, and is the one hrtime reads', () => {
    const before = Number(process.hrtime.bigint());
    const first = now();
    const second = now();
    const after = Number(process.hrtime.bigint());
    assert.ok(before <= first && first <= second && second <= after, `${before} ${first} ${second} ${after}`);
  });

  it('poll says which descriptor is ready, and why', () => {
    const list = Int32Array.of(2000, 1);
    assert.equal(native.poll(list, 1, 0), 1);
    assert.equal(list[1] >>> 16, 32, 'POLLNVAL: no such descriptor');
    assert.equal(native.poll(list, 0, 0), 0);
    for (const count of [-1, 2, 1e6]) assert.throws(() => native.poll(list, count, 0), TypeError);
  });

  it('a poller says the same of a list that it keeps, whatever is written there; a negative descriptor is passed over', () => {
    const list = Int32Array.of(2000, 1, -1, 1);
    const poll = native.poller(list);
    assert.equal(poll(0), 1);
    assert.deepEqual([list[1] >>> 16, list[3] >>> 16], [32, 0]);
    list[0] = -1;
    const before = now();
    assert.equal(poll(2), 0);
    assert.ok(now() - before >= 2e6, 'the whole time passes');
    assert.throws(() => native.poller(new Float64Array(2) as unknown as Int32Array), TypeError);
    assert.throws(() => poll('1' as unknown as number), TypeError);
  });

  it('threadUsage counts CPU time of this thread', () => {
    const usage = new Float64Array(4);
    native.threadUsage(usage);
    const before = usage[0] + usage[1];
    let x = 0;
    while (usage[0] + usage[1] === before) {
      for (let i = 0; i < 1e6; i++) x += i;
      native.threadUsage(usage);
    }
    assert.ok(usage[0] + usage[1] > before && x > 0);
    assert.throws(() => {
      native.threadUsage(new Float64Array(3));
    }, TypeError);
  });

  it('pin refuses a CPU that is not there', () => {
    for (const cpu of [-1, 100_000])
      assert.throws(
        () => {
          native.pin(cpu);
        },
        { code: 'EINVAL' },
      );
  });
});
