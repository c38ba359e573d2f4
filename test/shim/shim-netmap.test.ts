// The shim's netmap part: what it sends to the kernel byte for byte, what it gives back, and how it undoes.
import assert from 'node:assert/strict';
import { existsSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { native } from '../../lib/shim/native.js';
import { NetmapKernel, skipWithoutKernel } from '../netmap-kernel/kernel.js';

const { ENOENT, EACCES, ENXIO, ENOMEM } = constants.errno;

describe('netmap on this machine', { skip: existsSync('/dev/netmap') && 'it has netmap' }, () => {
  it('says that there is no device', () => {
    assert.equal(native.netmapAvailable(), ENOENT);
    const missing = { code: 'ENOENT', errno: ENOENT, syscall: 'open /dev/netmap', port: 'nm0' };
    assert.throws(() => native.netmapOpen({ name: 'nm0', mode: 1 }), {
      ...missing,
      message: 'nm0: open /dev/netmap: No such file or directory (ENOENT)',
    });
    assert.throws(() => native.netmapPortInfo('nm0', 0), missing);
  });
});

describe('netmap requests', { skip: skipWithoutKernel() }, () => {
  const kernel = new NetmapKernel();
  const folder = mkdtempSync(join(tmpdir(), 'nmb-extmem-'));
  after(() => {
    kernel.close();
    rmSync(folder, { recursive: true });
  });

  it('REGISTER is 88 + 56 bytes with every field where netmap has it', () => {
    kernel.run((native) => {
      native.netmapOpen({
        ...{ name: 'nm1', mode: 4, ringId: 1, flags: 0x800 + 0x20000, memId: 1, extraBufs: 0x10203 },
        ...{ txSlots: 0x04030201, rxSlots: 0x08070605, txRings: 0x0a09, rxRings: 0x0c0b },
        ...{ hostTxRings: 0x0e0d, hostRxRings: 0x100f },
      });
    });
    const [{ header, body, options }, ...others] = kernel.requests();
    assert.deepEqual(others, []);
    assert.deepEqual(options, []);
    const name = Buffer.alloc(64);
    name.write('nm1');
    // version 14, type 1, reserved 0, name, no options; then an address
    assert.equal(header.length, 88);
    assert.deepEqual(
      header.subarray(0, 80),
      Buffer.concat([Buffer.from('0e00010000000000', 'hex'), name, Buffer.alloc(8)]),
    );
    assert.notEqual(header.readBigUInt64LE(80), 0n);
    assert.equal(
      body.toString('hex'),
      '00000000000000000000000000000000' + // offset, memsize: the kernel's to fill
        '0102030405060708' + // tx and rx slots
        '090a0b0c0d0e0f10' + // rings: tx, rx, host tx, host rx
        '01000100' + // memory id, ring id
        '04000000' + // mode
        '03020100' + // extra buffers
        '00000000' + // padding
        '0008020000000000', // flags
    );
  });

  it('numbers left out are zero, and flags go up to 2^53', () => {
    kernel.run((native) => {
      native.netmapOpen({ name: 'vale0:a', mode: 1, flags: 2 ** 53 - 1 - 0x6300 });
    });
    const expected = Buffer.alloc(56);
    expected.writeUInt32LE(1, 36);
    expected.writeBigUInt64LE(2n ** 53n - 1n - 0x6300n, 48);
    assert.deepEqual(kernel.requests()[0].body, expected);
  });

  it('a name of 63 bytes fits, one of 64 is refused before it is cut', () => {
    const thrown = kernel.run((native, { attempt }) => {
      native.netmapOpen({ name: `vale0:${'x'.repeat(57)}`, mode: 1 });
      return attempt(() => native.netmapOpen({ name: `vale0:${'x'.repeat(58)}`, mode: 1 }));
    });
    assert.equal(thrown.code, 'ENAMETOOLONG');
    assert.equal(kernel.requests().length, 1);
    assert.equal(kernel.requests()[0].header.toString('latin1', 8, 72), `vale0:${'x'.repeat(57)}\0`);
  });

  it('refuses what the structures cannot hold', () => {
    const thrown = kernel.run((native, { attempt }) => [
      attempt(() => native.netmapOpen({ name: 'nm0', mode: 1, ringId: 65536 })),
      attempt(() => native.netmapOpen({ name: 'nm0', mode: -1 })),
      attempt(() => native.netmapOpen({ name: 'nm0', mode: 1, txSlots: 1.5 })),
      attempt(() => native.netmapOpen({ name: 'nm0', mode: 1, flags: 2 ** 53 })),
      attempt(() => native.netmapOpen({ name: 'a\0b', mode: 1 })),
      attempt(() => native.netmapPortInfo('nm0', 65536)),
    ]);
    assert.deepEqual(
      thrown.map(({ name, code, message }) => `${name} ${code ?? ''} ${message}`),
      [
        'TypeError EINVAL ringId: expected 0 to 65535',
        'TypeError EINVAL mode: expected 0 to 4294967295',
        'TypeError EINVAL txSlots: expected an integer',
        'TypeError EINVAL flags: expected an integer',
        'TypeError EINVAL name: expected a string without a NUL character',
        'TypeError EINVAL memId: expected 0 to 65535',
      ],
    );
    assert.deepEqual(kernel.requests(), []);
  });

  it('what a getter throws ends the call before the kernel is asked, whichever property it is', () => {
    const thrown = kernel.run((native, { attempt }) => {
      const full = {
        ...{ name: 'nm0', mode: 1, ringId: 0, flags: 0, memId: 1, extraBufs: 0, txSlots: 0, rxSlots: 0, txRings: 0 },
        ...{ rxRings: 0, hostTxRings: 0, hostRxRings: 0, offsets: { max: 0, initial: 0, bits: 0 } },
        extmem: { file: '/dev/null', ifNum: 0, ifSize: 0, ringNum: 0, ringSize: 0, bufNum: 0, bufSize: 0 },
      };
      const throwing = (object: object, key: string): never =>
        Object.defineProperty({ ...object }, key, {
          get() {
            throw new Error(key);
          },
        }) as never;
      return [
        ...Object.keys(full).map((key) => [key, throwing(full, key)]),
        ...Object.keys(full.offsets).map((key) => [key, { ...full, offsets: throwing(full.offsets, key) }]),
        ...Object.keys(full.extmem).map((key) => [key, { ...full, extmem: throwing(full.extmem, key) }]),
      ].map(([key, request]) => [key, attempt(() => native.netmapOpen(request as never)).message]);
    });
    assert.equal(thrown.length, 14 + 3 + 7);
    for (const [key, message] of thrown) assert.equal(message, key);
    assert.deepEqual(kernel.requests(), []);
  });

  it('gives back what the kernel granted, and its memory', () => {
    const { port, words } = kernel.run((native) => {
      const { buffer, ...port } = native.netmapOpen({ name: 'nm1', mode: 4, ringId: 1, extraBufs: 3 });
      const i32 = new Int32Array(buffer);
      const nifp = port.offset / 4;
      return {
        port: { ...port, bytes: buffer.byteLength, handle: 0, fd: port.fd > 2 },
        // version, flags, tx, rx, head of the extra buffers, host rings; then which rings are bound
        words: [...i32.subarray(nifp + 4, nifp + 11)].concat(
          Array.from({ length: 8 }, (_, ring) => (i32[nifp + 14 + 2 * ring] === 0 ? 0 : 1)),
        ),
      };
    });
    assert.deepEqual(port, {
      ...{ handle: 0, fd: true, bytes: 343_019_520, memsize: 343_019_520, offset: 0, memId: 1, ringId: 1 },
      ...{ txSlots: 256, rxSlots: 256, txRings: 2, rxRings: 4, hostTxRings: 1, hostRxRings: 1 },
      ...{ extraBufs: 3, maxOffset: 0 },
    });
    assert.equal(words[0], 14);
    assert.deepEqual([...words.slice(1, 4), ...words.slice(5, 7)], [0, 2, 4, 1, 1]);
    assert.ok(words[4] >= 2, 'extra buffers are chained from the netmap_if');
    assert.deepEqual(words.slice(7), [0, 1, 0, 0, 1, 0, 0, 0], 'only the second tx and rx ring are bound');
  });

  it('PORT_INFO_GET is 88 + 32 bytes; the geometry comes without opening', () => {
    const info = kernel.run((native) => [native.netmapPortInfo('nm1', 0), native.netmapPortInfo('', 1)]);
    const shape = { txSlots: 256, rxSlots: 256, txRings: 2, rxRings: 4, hostTxRings: 1, hostRxRings: 1 };
    assert.deepEqual(info[0], { memsize: 343_019_520, memId: 1, ...shape });
    assert.equal(info[1].memsize, 343_019_520);
    assert.equal(info[1].txRings, 0);
    const [first, second] = kernel.requests();
    assert.equal(first.header.toString('hex', 0, 8), '0e00020000000000');
    assert.deepEqual(first.body, Buffer.alloc(32));
    assert.equal(second.body.readUInt16LE(24), 1);
  });

  it('the offsets option: 56 bytes, chained to the header, and the largest offset granted', () => {
    const { max, mask, pointer } = kernel.run((native) => {
      const port = native.netmapOpen({ name: 'nm0', mode: 1, offsets: { max: 256, initial: 128, bits: 16 } });
      const i32 = new Int32Array(port.buffer);
      const ring = (port.offset + i32[port.offset / 4 + 14]) / 4;
      return { max: port.maxOffset, mask: i32[ring + 14], pointer: i32[ring + 64 + 2] };
    });
    assert.deepEqual({ max, mask, pointer }, { max: 256, mask: 0xffff, pointer: 128 });
    const [request] = kernel.requests();
    assert.notEqual(request.header.readBigUInt64LE(72), 0n);
    assert.equal(
      request.options[0].toString('hex'),
      '0000000000000000' + // next: none
        '05000000' + // type
        '00000000' + // status
        '0000000000000000' + // size: fixed
        '0001000000000000' + // largest offset
        '8000000000000000' + // initial offset
        '10000000' + // bits
        '00000000' + // tx alignment
        '0000000000000000', // gap
    );
  });

  it('the extmem option: 96 bytes with the address and size of the mapped file, which becomes the region', () => {
    const file = join(folder, 'memory');
    writeFileSync(file, '');
    truncateSync(file, 16 << 20);
    const port = kernel.run((native, _, file) => {
      const port = native.netmapOpen({
        name: 'nm0',
        mode: 1,
        extmem: { file, ifNum: 3, bufSize: 2048 },
        offsets: { max: 64, bits: 8 },
      });
      const { byteLength } = port.buffer;
      const version = new Int32Array(port.buffer)[port.offset / 4 + 4];
      native.netmapClose(port.handle);
      return { byteLength, version, memId: port.memId, after: port.buffer.byteLength };
    }, file);
    assert.deepEqual(port, { byteLength: 16 << 20, version: 14, memId: 2, after: 0 });
    const [extmem, offsets] = kernel.requests()[0].options;
    assert.notEqual(extmem.readBigUInt64LE(0), 0n, 'the next option');
    assert.equal(extmem.toString('hex', 8, 24), '01000000' + '00000000' + '0000000000000000');
    assert.notEqual(extmem.readBigUInt64LE(24), 0n, 'the address');
    assert.equal(extmem.readBigUInt64LE(32), 16n << 20n);
    const pools = Buffer.alloc(56);
    pools.writeUInt32LE(3, 16); // netmap_ifs
    pools.writeUInt32LE(2048, 52); // bytes of a buffer
    assert.deepEqual(extmem.subarray(40), pools, 'the rest is left to netmap');
    assert.equal(offsets.readUInt32LE(8), 5);
  });

  it('names the option that the kernel refused', () => {
    const small = join(folder, 'small');
    writeFileSync(small, Buffer.alloc(4096));
    const open = (extra: object, env: NodeJS.ProcessEnv = {}) => {
      const request = { name: 'nm0', mode: 1, ...extra };
      const thrown = kernel.run((native, { attempt }, input) => attempt(() => native.netmapOpen(input)), request, env);
      return `${thrown.code ?? ''} ${thrown.syscall ?? ''}`;
    };
    const plain = { NETMAP_KERNEL_PLAIN: '1' };
    assert.equal(open({ extmem: { file: small } }), 'EINVAL NIOCCTRL REGISTER option extmem');
    assert.equal(open({ extmem: { file: small } }, plain), 'EOPNOTSUPP NIOCCTRL REGISTER option extmem');
    assert.equal(open({ extmem: { file: join(folder, 'none') } }), 'ENOENT open extmem');
    assert.equal(open({ offsets: { max: 4096, bits: 16 } }), 'EINVAL NIOCCTRL REGISTER option offsets');
    assert.equal(open({ offsets: { max: 64, bits: 8 } }, plain), 'EOPNOTSUPP NIOCCTRL REGISTER option offsets');
    assert.equal(open({ name: 'none', offsets: { max: 64, bits: 8 } }), 'ENXIO NIOCCTRL REGISTER', 'not the option');
  });

  it('errors of the kernel come with code, errno, call and port', () => {
    const names = ['none', 'lo', 'vale0', 'netmap:nm0', 'nm0-0', 'nm0^'];
    const thrown = kernel.run(
      (native, { attempt }, input) => input.map((name) => attempt(() => native.netmapOpen({ name, mode: 1 }))),
      names,
    );
    const codes = ['ENXIO', 'EINVAL', 'ENOMEM', 'ENXIO', 'ENXIO', 'ENXIO'];
    const numbers = { ENXIO, EINVAL: constants.errno.EINVAL, ENOMEM };
    assert.deepEqual(
      thrown.map(({ code, errno, syscall, port }) => ({ code, errno, syscall, port })),
      names.map((port, i) => ({
        code: codes[i],
        errno: numbers[codes[i] as keyof typeof numbers],
        syscall: 'NIOCCTRL REGISTER',
        port,
      })),
    );
  });

  it('says why the device does not open', () => {
    const open = (errno: number) =>
      kernel.run(
        (native, { attempt }) => [native.netmapAvailable(), attempt(() => native.netmapPortInfo('nm0', 0)).code],
        undefined,
        { NETMAP_KERNEL_OPEN: String(errno) },
      );
    assert.deepEqual(open(EACCES), [EACCES, 'EACCES']);
    assert.deepEqual(open(ENXIO), [ENXIO, 'ENXIO']);
    assert.equal(
      kernel.run((native) => native.netmapAvailable()),
      0,
    );
  });

  it('undoes every step when a later one fails: no descriptor is left, the port is free', () => {
    const result = kernel.run(
      async (native, { attempt }) => {
        const { readdirSync } = await import('node:fs');
        const open = () => readdirSync('/proc/self/fd').length;
        const thrown = attempt(() => native.netmapOpen({ name: 'nm0', mode: 1, flags: 0x800 }));
        const before = open();
        const failed = attempt(() => native.netmapOpen({ name: 'none', mode: 1, flags: 0x800 }));
        // EXCLUSIVE: it fails at the mapping again, not with EBUSY.
        const failedAgain = attempt(() => native.netmapOpen({ name: 'nm0', mode: 1, flags: 0x800 }));
        const left = open() - before;
        return [thrown.code, thrown.syscall, failed.syscall, failedAgain.syscall, left];
      },
      undefined,
      { NETMAP_KERNEL_MMAP: String(ENOMEM) },
    );
    assert.deepEqual(result, ['ENOMEM', 'mmap', 'NIOCCTRL REGISTER', 'mmap', 0]);
  });

  it('close detaches, unmaps and closes: an exclusive port opens again, stale views and handles are harmless', () => {
    const result = kernel.run((native, { attempt }) => {
      const request = { name: 'nm0', mode: 1, flags: 0x800 };
      const first = native.netmapOpen(request);
      const view = new Int32Array(first.buffer);
      const busy = attempt(() => native.netmapOpen(request)).code;
      native.netmapClose(first.handle);
      const stale = [view.length, String(view[0]), first.buffer.byteLength];
      view[0] = 1;
      const syncs = [native.netmapTxsync(first.handle), native.netmapRxsync(first.handle)];
      const twice = attempt(() => {
        native.netmapClose(first.handle);
      }).code;
      const second = native.netmapOpen(request);
      return { busy, stale, syncs, twice, reopened: second.buffer.byteLength, other: second.handle !== first.handle };
    });
    const { EBADF } = constants.errno;
    assert.deepEqual(result, {
      ...{ busy: 'EBUSY', stale: [0, 'undefined', 0], syncs: [EBADF, EBADF], twice: 'EBADF' },
      ...{ reopened: 343_019_520, other: true },
    });
  });

  it('syncs move a frame through a pipe, which takes slots − 1 frames without a peer', () => {
    const result = kernel.run((native) => {
      const rings = (port: { buffer: ArrayBuffer; offset: number }) => {
        const i32 = new Int32Array(port.buffer);
        const nifp = port.offset / 4;
        // a pipe has no host rings: tx is the first ring, rx the second
        return { i32, tx: nifp + i32[nifp + 14] / 4, rx: nifp + i32[nifp + 16] / 4 };
      };
      const left = native.netmapOpen({ name: 'x{1', mode: 1, txSlots: 64, rxSlots: 64 });
      const a = rings(left);
      const sent = a.i32[a.tx + 64];
      const space = a.i32[a.tx + 7] - a.i32[a.tx + 5];
      a.i32[a.tx + 65] = 60;
      a.i32[a.tx + 5] = a.i32[a.tx + 6] = space;
      const full = [native.netmapTxsync(left.handle), a.i32[a.tx + 7] - a.i32[a.tx + 5]];
      const right = native.netmapOpen({ name: 'x}1', mode: 1, txSlots: 64, rxSlots: 64 });
      const b = rings(right);
      const synced = native.netmapRxsync(right.handle);
      const list = Int32Array.of(right.fd, 1);
      const ready = native.poll(list, 1, 0);
      return {
        ...{ space, full, synced, frames: b.i32[b.rx + 7] - b.i32[b.rx + 5], ready, revents: list[1] >>> 16 },
        ...{ same: b.i32[b.rx + 64] === sent, len: b.i32[b.rx + 65] & 0xffff, memory: left.memId === right.memId },
      };
    });
    assert.deepEqual(result, {
      ...{ space: 63, full: [0, 0], synced: 0, frames: 63, ready: 1, revents: 1 },
      ...{ same: true, len: 60, memory: true },
    });
  });

  it('a bad head: the sync returns 0 and the ring is reset, poll says POLLERR', () => {
    const result = kernel.run((native) => {
      const port = native.netmapOpen({ name: 'nm0', mode: 1 });
      const i32 = new Int32Array(port.buffer);
      const tx = (port.offset + i32[port.offset / 4 + 14]) / 4;
      i32[tx + 5] = i32[tx + 6] = 300;
      const sync = native.netmapTxsync(port.handle);
      const head = i32[tx + 5];
      i32[tx + 5] = 300;
      const list = Int32Array.of(port.fd, 4);
      native.poll(list, 1, 0);
      return { sync, head, pollerr: list[1] >>> 16 };
    });
    assert.deepEqual(result, { sync: 0, head: 0, pollerr: 8 });
  });

  it('a worker that ends without closing lets its port go', () => {
    const result = kernel.run(async (native, { attempt, nativeUrl }) => {
      const { Worker } = await import('node:worker_threads');
      const worker = new Worker(
        `import('node:worker_threads').then(async ({ parentPort, workerData }) => {
          const { native } = await import(workerData);
          native.netmapOpen({ name: 'nm0', mode: 1, flags: 0x800 });
          parentPort.postMessage('open');
          setInterval(() => {}, 1000);
        });`,
        { eval: true, workerData: nativeUrl },
      );
      await new Promise((resolve) => worker.once('message', resolve));
      const request = { name: 'nm0', mode: 1, flags: 0x800 };
      const during = attempt(() => native.netmapOpen(request)).code;
      await worker.terminate();
      return [during, native.netmapOpen(request).memId];
    });
    assert.deepEqual(result, ['EBUSY', 1]);
  });
});
