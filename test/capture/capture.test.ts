import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import * as zlib from 'node:zlib';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { CaptureError } from '../../lib/capture/capture-error.js';
import { Opening } from '../../lib/capture/open-capture.js';
import type { CaptureReader } from '../../lib/capture/reader.js';
import { TimestampScale } from '../../lib/capture/timestamp.js';
import { CaptureWriter } from '../../lib/capture/writer.js';
import { skipWithout } from '../support/needs.js';
import { writeFrame } from '../support/write-frame.js';

const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Opens a capture and reads its header; on a FIFO it waits for that. */
function openCapture(path: string): CaptureReader {
  const opening = new Opening(path);
  for (;;) {
    const reader = opening.reader();
    if (reader !== undefined) return reader;
    Atomics.wait(sleeper, 0, 0, 10);
  }
}

const CAPTURES = 'test/captures';
const directory = mkdtempSync(join(tmpdir(), 'capture-test-'));
after(() => {
  rmSync(directory, { recursive: true });
});

const withoutTshark = skipWithout('tshark');

interface Frame {
  bytes: string;
  origLen: number;
  time: string;
  interface: number;
}

interface Capture {
  frames: Frame[];
  problem: string | undefined;
  format: string;
}

function seconds(tsSec: number, tsNsec: number): string {
  return `${tsSec}.${String(tsNsec).padStart(9, '0')}`;
}

function drain(reader: CaptureReader): Frame[] {
  const frames: Frame[] = [];
  while (reader.next()) {
    frames.push({
      bytes: Buffer.from(reader.data.subarray(reader.offset, reader.offset + reader.capLen)).toString('hex'),
      origLen: reader.origLen,
      time: seconds(reader.tsSec, reader.tsNsec),
      interface: reader.interface,
    });
    assert.equal(reader.frame, frames.length);
  }
  assert.equal(reader.ended, true);
  assert.equal(reader.next(), false);
  return frames;
}

function readAll(path: string): Capture {
  const reader = openCapture(path);
  try {
    const frames = drain(reader);
    return { frames, problem: reader.problem, format: reader.format };
  } finally {
    reader.close();
  }
}

let scratch = 0;
function scratchPath(): string {
  return join(directory, `${++scratch}.pcap`);
}

/** Writes bytes to a file that exists for the time of `use`. */
function withFile<T>(bytes: Uint8Array, use: (path: string) => T): T {
  const path = scratchPath();
  writeFileSync(path, bytes);
  try {
    return use(path);
  } finally {
    rmSync(path);
  }
}

function readBytes(bytes: Uint8Array): Capture {
  return withFile(bytes, readAll);
}

/** The message of the CaptureError that opening must throw. */
function refusalOf(path: string): string {
  try {
    openCapture(path).close();
  } catch (error) {
    assert.ok(error instanceof CaptureError, `not a CaptureError: ${String(error)}`);
    return error.message;
  }
  return assert.fail(`${path} was opened`);
}

// Files made by hand, so that the reader is not held against our own writer.

function words(big: boolean, ...values: number[]): Buffer {
  const out = Buffer.alloc(4 * values.length);
  values.forEach((value, i) => (big ? out.writeUInt32BE(value >>> 0, 4 * i) : out.writeUInt32LE(value >>> 0, 4 * i)));
  return out;
}

function halves(big: boolean, ...values: number[]): Buffer {
  const out = Buffer.alloc(2 * values.length);
  values.forEach((value, i) => (big ? out.writeUInt16BE(value, 2 * i) : out.writeUInt16LE(value, 2 * i)));
  return out;
}

function padded(bytes: Buffer): Buffer {
  return Buffer.concat([bytes, Buffer.alloc(-bytes.length & 3)]);
}

function pcapHeader(big: boolean, magic = 0xa1b2c3d4, link = 1): Buffer {
  return Buffer.concat([words(big, magic), halves(big, 2, 4), words(big, 0, 0, 65535, link)]);
}

function pcapRecord(big: boolean, sec: number, frac: number, data: Buffer, origLen = data.length): Buffer {
  return Buffer.concat([words(big, sec, frac, data.length, origLen), data]);
}

function block(big: boolean, type: number, body: Buffer): Buffer {
  const length = 12 + padded(body).length;
  return Buffer.concat([words(big, type, length), padded(body), words(big, length)]);
}

function section(big: boolean): Buffer {
  return block(
    big,
    0x0a0d0d0a,
    Buffer.concat([words(big, 0x1a2b3c4d), halves(big, 1, 0), words(big, 0xffffffff, 0xffffffff)]),
  );
}

function option(big: boolean, code: number, value: Buffer): Buffer {
  return Buffer.concat([halves(big, code, value.length), padded(value)]);
}

function describeInterface(big: boolean, snaplen = 0, options: Buffer[] = [], link = 1): Buffer {
  const end = options.length > 0 ? [...options, halves(big, 0, 0)] : [];
  return block(big, 1, Buffer.concat([halves(big, link, 0), words(big, snaplen), ...end]));
}

function tsresol(big: boolean, value: number): Buffer {
  return option(big, 9, Buffer.of(value));
}

function tsoffset(big: boolean, value: bigint): Buffer {
  const out = Buffer.alloc(8);
  if (big) out.writeBigInt64BE(value);
  else out.writeBigInt64LE(value);
  return option(big, 14, out);
}

function enhanced(
  big: boolean,
  index: number,
  time: bigint,
  data: Buffer,
  origLen = data.length,
  tail?: Buffer,
): Buffer {
  const high = Number(time >> 32n);
  const low = Number(time & 0xffffffffn);
  return block(
    big,
    6,
    Buffer.concat([words(big, index, high, low, data.length, origLen), padded(data), tail ?? Buffer.alloc(0)]),
  );
}

const A = Buffer.from('ffffffffffff02000000000a88b5616161', 'hex'); // 17 bytes: needs padding in pcapng
const B = Buffer.from('02000000000a02000000000b88b562626262626262', 'hex'); // 21 bytes

describe('the captures of test/captures', () => {
  // Frames, longest frame and sum of captured bytes: from `capinfos -M -c -d -l` and `tshark -e frame.cap_len`.
  const known: [file: string, frames: number, longest: number, total: number, format: string][] = [
    ['802.1ad_QinQ.pcap', 2, 64, 128, 'pcap, little-endian, µs, snaplen 10000'],
    ['AoE_Linux.pcap', 186, 1060, 92288, 'pcap, little-endian, µs, snaplen 65535'],
    ['OSPFv2_Capture_FINAL.pcapng', 30, 486, 5364, 'pcapng, little-endian, 1 interface (10^-6 s), snaplen 65535'],
    ['afs.pcap', 601, 1514, 512276, 'pcap, little-endian, µs, snaplen 65535'],
    ['bigtcp-ipv4.pcap', 1, 80066, 80066, 'pcap, little-endian, µs, snaplen 262144'],
    ['huge-tipc-messages.pcap', 13, 66014, 197557, 'pcap, little-endian, µs, snaplen 262144'],
    ['pptp.pcap', 23, 222, 2072, 'pcap, big-endian, µs, snaplen 65535'],
  ];

  for (const [file, count, longest, total, format] of known) {
    const path = join(CAPTURES, file);

    it(`${file}: ${count} frames, ${total} bytes`, () => {
      const capture = readAll(path);
      assert.equal(capture.problem, undefined);
      assert.equal(capture.format, format);
      const lengths = capture.frames.map((frame) => frame.bytes.length / 2);
      assert.equal(lengths.length, count);
      assert.equal(Math.max(...lengths), longest);
      assert.equal(
        lengths.reduce((sum, length) => sum + length, 0),
        total,
      );
    });

    it(`${file}: frames, lengths and times as tshark reads them, and in a copy too`, { skip: withoutTshark }, () => {
      const ours = readAll(path).frames;
      const theirs = tshark(path);
      assert.deepEqual(
        theirs,
        ours.map(({ bytes, origLen, time }) => ({ bytes, origLen, time })),
      );
      const copy = scratchPath();
      copyCapture(path, copy);
      assert.deepEqual(tshark(copy), theirs);
    });
  }

  for (const file of ['RADIUS-RFC3162.pcap', 'tcp-handshake-nano.pcap']) {
    it(`${file}: Linux cooked, refused by name`, () => {
      assert.ok(refusalOf(join(CAPTURES, file)).startsWith(`${CAPTURES}/${file}: link type 113 (LINKTYPE_LINUX_SLL) `));
    });
  }

  it('a pcap written again is the same file, whichever order it was in', () => {
    for (const file of ['afs.pcap', 'huge-tipc-messages.pcap']) {
      const copy = scratchPath();
      copyCapture(join(CAPTURES, file), copy);
      const bytes = readFileSync(copy);
      const original = readFileSync(join(CAPTURES, file));
      // The copy announces the largest snaplen; the rest is the same byte for byte.
      assert.deepEqual(bytes.subarray(0, 16), original.subarray(0, 16));
      assert.deepEqual(bytes.subarray(20), original.subarray(20));
    }
  });
});

function copyCapture(from: string, to: string): void {
  const reader = openCapture(from);
  const writer = new CaptureWriter(to, { resolution: reader.resolution });
  while (reader.next()) {
    writeFrame(writer, reader.data, reader.offset, reader.capLen, reader.tsSec, reader.tsNsec, reader.origLen);
  }
  reader.close();
  writer.close();
}

/** Frames as tshark sees them: bytes from its hex dump, lengths and time from its fields. */
function tshark(path: string): Omit<Frame, 'interface'>[] {
  const json = execFileSync('tshark', ['-n', '-r', path, '-T', 'json', '-x', '-J', 'frame'], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const packets = JSON.parse(json) as {
    _source: { layers: { frame_raw: [string]; frame: Record<string, string> } };
  }[];
  return packets.map(({ _source: { layers } }) => {
    const [bytes] = layers.frame_raw;
    assert.equal(bytes.length, 2 * Number(layers.frame['frame.cap_len']));
    return { bytes, origLen: Number(layers.frame['frame.len']), time: layers.frame['frame.time_epoch'] };
  });
}

describe('pcap made by hand', () => {
  for (const big of [false, true]) {
    const order = big ? 'big' : 'little';

    it(`${order}-endian, µs`, () => {
      const bytes = Buffer.concat([
        pcapHeader(big),
        pcapRecord(big, 1700000001, 999999, A),
        pcapRecord(big, 0xffffffff, 0, B, 1514),
      ]);
      assert.deepEqual(readBytes(bytes), {
        frames: [
          { bytes: A.toString('hex'), origLen: 17, time: '1700000001.999999000', interface: 0 },
          { bytes: B.toString('hex'), origLen: 1514, time: '4294967295.000000000', interface: 0 },
        ],
        problem: undefined,
        format: `pcap, ${order}-endian, µs, snaplen 65535`,
      });
    });

    it(`${order}-endian, ns`, () => {
      const bytes = Buffer.concat([pcapHeader(big, 0xa1b23c4d), pcapRecord(big, 7, 123456789, A)]);
      const { frames, format } = readBytes(bytes);
      assert.equal(frames[0].time, '7.123456789');
      assert.equal(format, `pcap, ${order}-endian, ns, snaplen 65535`);
    });

    it(`${order}-endian, a fraction of more than a second carries over`, () => {
      const us = readBytes(Buffer.concat([pcapHeader(big), pcapRecord(big, 7, 2000003, A)]));
      assert.equal(us.frames[0].time, '9.000003000');
      const ns = readBytes(Buffer.concat([pcapHeader(big, 0xa1b23c4d), pcapRecord(big, 7, 4000000005, A)]));
      assert.equal(ns.frames[0].time, '11.000000005');
    });

    it(`${order}-endian, FCS length in the link type word`, () => {
      withFile(Buffer.concat([pcapHeader(big, 0xa1b2c3d4, 0x24000001), pcapRecord(big, 0, 0, A)]), (path) => {
        const reader = openCapture(path);
        assert.equal(reader.next(), true);
        assert.equal(reader.fcsLength, 4);
        reader.close();
      });
    });

    it(`${order}-endian, impossible lengths stop at their byte`, () => {
      for (const claimed of [262145, 0x7fffffff, 0xffffffff]) {
        const bad = Buffer.concat([words(big, 1, 2, claimed, 60), Buffer.alloc(60)]);
        const { frames, problem } = readBytes(Buffer.concat([pcapHeader(big), pcapRecord(big, 0, 0, A), bad]));
        assert.equal(frames.length, 1);
        // 24 file header + (16 + 17) first frame + 8 into the record header.
        assert.match(problem!, new RegExp(`: corrupt at byte 65: frame 2 claims ${claimed} captured bytes, more than`));
      }
    });

    it(`${order}-endian, versions that libpcap does not read are refused`, () => {
      for (const [major, minor] of [
        [2, 5],
        [1, 0],
        [3, 0],
        [543, 1],
      ] as const) {
        const bytes = pcapHeader(big);
        halves(big, major, minor).copy(bytes, 4);
        const expected = new RegExp(
          `: pcap version ${major}\\.${minor} at byte 4, and only 2\\.0 to 2\\.4 can be read`,
        );
        assert.match(withFile(bytes, refusalOf), expected);
      }
    });

    it(`${order}-endian, files before 2.3 give the frame's length first, those of 2.3 either first`, () => {
      // As in pcap_next_packet() of libpcap's sf-pcap.c: of 2.3, exchanged where more would have been captured.
      const record = (first: number, second: number, data: Buffer): Buffer =>
        Buffer.concat([words(big, 7, 8, first, second), data]);
      const lengths = (major: number, minor: number, ...records: Buffer[]): [number, number][] => {
        const header = pcapHeader(big);
        halves(big, major, minor).copy(header, 4);
        const { frames, problem } = readBytes(Buffer.concat([header, ...records]));
        assert.equal(problem, undefined);
        return frames.map(({ bytes, origLen }) => [bytes.length / 2, origLen]);
      };
      for (const [major, minor] of [
        [2, 0],
        [2, 1],
        [2, 2],
        [543, 0],
      ] as const) {
        assert.deepEqual(lengths(major, minor, record(1514, 17, A), record(21, 21, B)), [
          [17, 1514],
          [21, 21],
        ]);
      }
      assert.deepEqual(lengths(2, 3, record(1514, 17, A), record(21, 1514, B), record(17, 17, A)), [
        [17, 1514],
        [21, 1514],
        [17, 17],
      ]);
      assert.deepEqual(lengths(2, 4, record(17, 5, A)), [[17, 5]]);
    });
  }

  it('frames across many buffer fills keep their bytes', () => {
    const parts = [pcapHeader(false)];
    const expected: string[] = [];
    for (let i = 0; i < 30; i++) {
      const data = Buffer.alloc(262144 - i * 1111, i + 1);
      data.writeUInt32BE(i, data.length - 4);
      parts.push(pcapRecord(false, i, i, data));
      expected.push(data.toString('hex'));
    }
    const { frames, problem } = readBytes(Buffer.concat(parts));
    assert.equal(problem, undefined);
    assert.equal(frames.length, 30);
    frames.forEach((frame, i) => {
      assert.ok(frame.bytes === expected[i], `frame ${i + 1} differs`);
    });
  });
});

describe('pcapng made by hand', () => {
  for (const big of [false, true]) {
    const order = big ? 'big' : 'little';

    it(`${order}-endian: interfaces with their own units and offsets, every packet block, unknown blocks passed over`, () => {
      const bytes = Buffer.concat([
        section(big),
        describeInterface(big, 20),
        describeInterface(big, 65535, [option(big, 2, Buffer.from('eth1')), tsresol(big, 9), tsoffset(big, -2n)]),
        describeInterface(big, 128, [tsresol(big, 0x80 | 10), tsoffset(big, 1700000000n)]),
        describeInterface(big, 128, [tsresol(big, 3), option(big, 13, Buffer.of(4))]),
        block(big, 0x0bad, Buffer.alloc(100, 0xee)), // a Custom Block
        enhanced(big, 0, 1700000000123456n, A),
        enhanced(big, 1, 1700000000123456789n, B, 999, option(big, 2, words(big, 1))),
        block(big, 5, Buffer.alloc(12)), // interface statistics
        enhanced(big, 2, 3n * 1024n + 1n, A),
        // Simple packet: cut to the first interface's 20 bytes.
        block(big, 3, Buffer.concat([words(big, 21), B.subarray(0, 20)])),
        // The obsolete packet block: interface and drops are 16 bits each.
        block(big, 2, Buffer.concat([halves(big, 3, 9), words(big, 0, 5001, A.length, 60), A])),
      ]);
      assert.deepEqual(readBytes(bytes), {
        frames: [
          { bytes: A.toString('hex'), origLen: 17, time: '1700000000.123456000', interface: 0 },
          { bytes: B.toString('hex'), origLen: 999, time: '1699999998.123456789', interface: 1 },
          // 1/1024 s = 976562.5 ns, rounded half up.
          { bytes: A.toString('hex'), origLen: 17, time: '1700000003.000976563', interface: 2 },
          { bytes: B.subarray(0, 20).toString('hex'), origLen: 21, time: '0.000000000', interface: 0 },
          { bytes: A.toString('hex'), origLen: 60, time: '5.001000000', interface: 3 },
        ],
        problem: undefined,
        format: `pcapng, ${order}-endian, 4 interfaces (10^-6 s, 10^-9 s, 2^-10 s rounded to ns, 10^-3 s), snaplen 65535`,
      });
    });

    it(`${order}-endian: damaged blocks stop at their byte`, () => {
      const head = Buffer.concat([section(big), describeInterface(big), enhanced(big, 0, 0n, A)]); // 28 + 20 + 52
      const cases: [name: string, tail: Buffer, expected: RegExp][] = [
        ['odd length', words(big, 6, 53, 0), /byte 104: frame 2 claims a length of 53 bytes, not a multiple of 4$/],
        ['short length', words(big, 6, 28, 0), /byte 104: frame 2 claims a length of 28 bytes, fewer than the 32/],
        ['no length', words(big, 99, 0, 0), /byte 104: the block of type 99 claims a length of 0 bytes, fewer/],
        ['huge packet', words(big, 6, 0xfffffffc, 0), /byte 104: frame 2 claims a length of 4294967292 bytes, more/],
        [
          'huge unknown',
          words(big, 99, 0xfffffffc, 0),
          /truncated at byte 112 .*the block of type 99 at byte 100 has 12 of its 4294967292 bytes$/,
        ],
        [
          'other trailer',
          Buffer.concat([enhanced(big, 0, 0n, B).subarray(0, -4), words(big, 60)]),
          /byte 152: frame 2 begins with a length of 56 bytes and ends with one of 60$/,
        ],
        [
          'other trailer, unknown block',
          Buffer.concat([block(big, 99, B).subarray(0, -4), words(big, 60)]),
          /byte 132: the block of type 99 begins with a length of 36 bytes and ends with one of 60$/,
        ],
        [
          'huge caplen',
          block(big, 6, Buffer.concat([words(big, 0, 0, 0, 0xfffffff0, 60), B])),
          /byte 120: frame 2 claims 4294967280 captured bytes, more than the 24 that are possible$/,
        ],
        ['no such interface', enhanced(big, 1, 0n, A), /byte 108: frame 2 is of interface 1, and .* described 1$/],
        ['no magic', words(big, 0x0a0d0d0a, 28, 7), /byte 108: the section header lacks the byte-order magic/],
        [
          'long option',
          describeInterface(big, 0, [Buffer.concat([halves(big, 2, 60), Buffer.alloc(4)])]),
          /byte 116: the description of interface 1 has option 2 with a wrong length of 60 bytes$/,
        ],
        [
          'short tsresol',
          describeInterface(big, 0, [option(big, 9, Buffer.of(6, 6))]),
          /byte 116: the description of interface 1 has option 9 with a wrong length of 2 bytes$/,
        ],
      ];
      for (const [name, tail, expected] of cases) {
        const { frames, problem } = readBytes(Buffer.concat([head, tail]));
        assert.equal(frames.length, 1, name);
        assert.match(problem ?? 'no problem', expected, name);
      }
    });

    it(`${order}-endian: not Ethernet from the start, or of another version, is refused on opening`, () => {
      const others = Buffer.concat([
        describeInterface(big, 0, [], 113),
        describeInterface(big, 0, [], 127),
        enhanced(big, 0, 0n, A),
        enhanced(big, 1, 0n, A),
      ]);
      const cooked = Buffer.concat([section(big), others, section(!big), describeInterface(!big, 0, [], 113)]);
      assert.match(withFile(cooked, refusalOf), /: interface 0 at byte 28: link type 113 \(LINKTYPE_LINUX_SLL\) /);
      const odd = section(big);
      halves(big, 2, 0).copy(odd, 12);
      assert.match(withFile(odd, refusalOf), /corrupt at byte 12: pcapng version 2\.0, and only 1\.0 can be read$/);
    });
  }

  it('frames of interfaces that are not Ethernet are passed over and counted by link type', () => {
    const big = true;
    const bytes = Buffer.concat([
      section(big),
      describeInterface(big, 0, [], 113),
      enhanced(big, 0, 1n, B), // before any Ethernet interface is described
      describeInterface(big),
      describeInterface(big, 0, [], 127),
      enhanced(big, 1, 2n, A),
      enhanced(big, 0, 3n, B),
      enhanced(big, 2, 4n, B),
      block(big, 5, Buffer.alloc(12)),
      enhanced(big, 1, 5n, B),
      section(false),
      describeInterface(false, 0, [], 127),
      enhanced(false, 0, 6n, A),
      enhanced(false, 9, 7n, A),
    ]);
    withFile(bytes, (path) => {
      const reader = openCapture(path);
      assert.equal(
        reader.format,
        'pcapng, big-endian, 3 interfaces (10^-6 s, 10^-6 s, 10^-6 s), snaplen 0; left out: frames of ' +
          'link type 113 (LINKTYPE_LINUX_SLL), link type 127 (LINKTYPE_IEEE802_11_RADIOTAP)',
      );
      assert.deepEqual(
        drain(reader).map(({ bytes, time, interface: index }) => [bytes, time, index]),
        [
          [A.toString('hex'), '0.000002000', 1],
          [B.toString('hex'), '0.000005000', 1],
        ],
      );
      assert.deepEqual([...reader.foreign], [[113, 2], [127, 2]]); // prettier-ignore
      assert.match(reader.problem!, /frame 7 is of interface 9, and the section has described 1$/);
      reader.close();
    });
  });

  it('of an option given twice the first counts, as in tshark', { skip: withoutTshark }, () => {
    for (const big of [false, true]) {
      const twice = [tsresol(big, 9), tsresol(big, 6), tsoffset(big, 100n), tsoffset(big, 7n)];
      const bytes = Buffer.concat([section(big), describeInterface(big, 0, twice), enhanced(big, 0, 5000000001n, A)]);
      withFile(bytes, (path) => {
        assert.equal(readAll(path).frames[0].time, '105.000000001');
        assert.equal(tshark(path)[0].time, '105.000000001');
      });
    }
  });

  it('sections in different byte orders each begin with no interface', () => {
    const one = (big: boolean, unit: number): Buffer =>
      Buffer.concat([section(big), describeInterface(big, 0, [tsresol(big, unit)]), enhanced(big, 0, 5000000000n, A)]);
    const { frames, problem } = readBytes(
      Buffer.concat([one(false, 9), one(true, 6), one(false, 0x80 | 20), section(true), enhanced(true, 0, 0n, A)]),
    );
    // 5·10⁹ / 2²⁰ = 4768.371582031 25
    assert.deepEqual(
      frames.map((frame) => frame.time),
      ['5.000000000', '5000.000000000', '4768.371582031'],
    );
    assert.match(problem!, /frame 4 is of interface 0, and the section has described 0$/);
  });

  it('an unknown block longer than the buffer is passed over', () => {
    const bytes = Buffer.concat([
      section(false),
      describeInterface(false),
      block(false, 0x40000bad, Buffer.alloc(3 << 20, 6)),
      enhanced(false, 0, 1n, A),
    ]);
    const { frames, problem } = readBytes(bytes);
    assert.equal(problem, undefined);
    assert.deepEqual(
      frames.map((frame) => frame.bytes),
      [A.toString('hex')],
    );
  });

  it('what tshark reads of the same bytes', { skip: withoutTshark }, () => {
    for (const big of [false, true]) {
      const bytes = Buffer.concat([
        section(big),
        describeInterface(big, 0, [tsresol(big, 9), tsoffset(big, 100n)]),
        describeInterface(big, 0, [tsresol(big, 0x80 | 8)]),
        describeInterface(big, 0, [tsresol(big, 3)]),
        enhanced(big, 0, 1700000000123456789n, A),
        enhanced(big, 1, 1700000000n * 256n + 3n, B, 500),
        block(big, 4, Buffer.alloc(4)), // name resolution: no names
        enhanced(big, 2, 1700000000007n, A),
        section(!big),
        describeInterface(!big),
        enhanced(!big, 0, 1700000000000001n, B),
      ]);
      withFile(bytes, (path) => {
        assert.deepEqual(
          readAll(path).frames.map(({ bytes, origLen, time }) => ({ bytes, origLen, time })),
          tshark(path),
        );
      });
    }
  });
});

describe('truncation at every byte', () => {
  /** `starts`: where a header may end with no frame after it; `ends`: where the frames end. */
  function check(bytes: Buffer, starts: number[], ends: number[]): void {
    const header = starts.at(-1)!;
    for (let cut = 0; cut < bytes.length; cut++) {
      const part = bytes.subarray(0, cut);
      if (cut < header && !starts.includes(cut)) {
        assert.match(withFile(part, refusalOf), new RegExp(`: truncated at byte ${cut} \\(end of file\\): `));
        continue;
      }
      const { frames, problem } = readBytes(part);
      const whole = ends.filter((end) => end <= cut).length;
      assert.equal(frames.length, whole, `cut at ${cut}`);
      if (ends.includes(cut) || starts.includes(cut)) assert.equal(problem, undefined, `cut at ${cut}`);
      else assert.match(problem ?? 'no problem', new RegExp(`: truncated at byte ${cut} \\(end of file\\): `));
    }
    assert.equal(readBytes(bytes).frames.length, ends.length);
  }

  it('pcap', () => {
    check(Buffer.concat([pcapHeader(false), pcapRecord(false, 1, 2, A), pcapRecord(false, 1, 2, B)]), [24], [57, 94]);
  });

  it('pcapng', () => {
    const frames = [enhanced(true, 0, 1n, A), enhanced(true, 0, 2n, B)]; // 52 and 56 bytes
    check(Buffer.concat([section(true), describeInterface(true), ...frames]), [28, 48], [100, 156]);
  });

  it('the message tells frame, byte and what is there', () => {
    const bytes = Buffer.concat([pcapHeader(false), pcapRecord(false, 1, 2, A), pcapRecord(false, 1, 2, B)]);
    withFile(bytes.subarray(0, 80), (path) => {
      assert.equal(
        readAll(path).problem,
        `${path}: truncated at byte 80 (end of file): frame 2 at byte 57 has 23 of its 37 bytes`,
      );
    });
  });
});

describe('timestamps', () => {
  /** Nearest nanosecond, halves up, by BigInt. */
  function reference(resol: number, units: bigint, offset: bigint): string {
    const perSecond = (resol & 0x80 ? 2n : 10n) ** BigInt(resol & 0x7f);
    const ns = (units * 1000000000n * 2n + perSecond) / (perSecond * 2n);
    return `${String(ns / 1000000000n + offset)}.${String(ns % 1000000000n).padStart(9, '0')}`;
  }

  function convert(resol: number, units: bigint, offset: bigint): string {
    const scale = new TimestampScale(resol, Number(offset));
    scale.convert(Number(units >> 32n), Number(units & 0xffffffffn));
    return seconds(scale.seconds, scale.nanoseconds);
  }

  it('every resolution agrees with BigInt arithmetic', () => {
    const anyUnits = fc.oneof(
      fc.bigInt(0n, 2n ** 64n - 1n),
      fc.bigInt(0n, 2n ** 53n),
      // Just around whole seconds and halves.
      fc.tuple(fc.nat(127), fc.bigInt(-1n, 1n), fc.boolean()).map(([shift, delta, two]) => {
        const at = BigInt.asUintN(64, (two ? 2n : 10n) ** BigInt(shift) + delta);
        return at;
      }),
    );
    fc.assert(
      fc.property(fc.nat(255), anyUnits, fc.bigInt(-(2n ** 31n), 2n ** 33n), (resol, units, offset) => {
        // Seconds beyond 2⁵³ are not exact, and mean nothing.
        fc.pre(BigInt(reference(resol, units, 0n).split('.')[0]) < 2n ** 53n - 2n ** 33n);
        assert.equal(convert(resol, units, offset), reference(resol, units, offset));
      }),
      { numRuns: 5000 },
    );
  });

  it('the largest timestamps', () => {
    const most = 2n ** 64n - 1n;
    assert.equal(convert(9, most, 0n), '18446744073.709551615');
    assert.equal(convert(6, most, 0n), '18446744073709.551615000');
    assert.equal(convert(0x80 | 63, most, 0n), '2.000000000'); // rounds up into the second
    assert.equal(convert(19, most, 0n), '1.844674407');
    assert.equal(convert(127, most, 0n), '0.000000000');
    assert.equal(convert(0x80 | 127, most, 0n), '0.000000000');
  });
});

describe('writer', () => {
  const frame = fc.record({
    data: fc.uint8Array({ maxLength: 200 }),
    extra: fc.nat(9000),
    tsSec: fc.nat({ max: 0xffffffff }),
    tsNsec: fc.nat({ max: 999999999 }),
    cut: fc.nat(200),
  });

  it('what is written, in pieces, is read back', () => {
    fc.assert(
      fc.property(
        fc.array(frame, { maxLength: 40 }),
        fc.constantFrom('us' as const, 'ns' as const),
        (frames, resolution) => {
          const path = scratchPath();
          const writer = new CaptureWriter(path, { resolution });
          for (const { data, extra, tsSec, tsNsec, cut } of frames) {
            const first = Math.min(cut, data.length);
            writer.begin(data.length, data.length + extra, tsSec, tsNsec);
            writer.piece(data, 0, first);
            writer.piece(data, first, data.length - first);
          }
          writer.close();
          const capture = readAll(path);
          rmSync(path);
          assert.equal(capture.problem, undefined);
          assert.equal(capture.format, `pcap, little-endian, ${resolution === 'us' ? 'µs' : 'ns'}, snaplen 262144`);
          assert.deepEqual(
            capture.frames,
            frames.map(({ data, extra, tsSec, tsNsec }) => ({
              bytes: Buffer.from(data).toString('hex'),
              origLen: data.length + extra,
              time: seconds(tsSec, resolution === 'us' ? tsNsec - (tsNsec % 1000) : tsNsec),
              interface: 0,
            })),
          );
        },
      ),
      { numRuns: 50 },
    );
  });

  it('the exact bytes of a file', () => {
    const path = scratchPath();
    const writer = new CaptureWriter(path, { resolution: 'us', snaplen: 96 });
    writeFrame(writer, Buffer.from([9, 8, 7, 6]), 1, 2, 0x01020304, 5999, 0x0a0b);
    writer.close();
    assert.equal(
      readFileSync(path, 'hex'),
      'd4c3b2a1' +
        '02000400' +
        '00000000' +
        '00000000' +
        '60000000' +
        '01000000' +
        '04030201' +
        '05000000' +
        '02000000' +
        '0b0a0000' +
        '0807',
    );
  });

  it('frames larger than what is left of the buffer', () => {
    const path = scratchPath();
    const writer = new CaptureWriter(path);
    for (let i = 0; i < 20; i++) writeFrame(writer, Buffer.alloc(200000 + i, i), 0, 200000 + i, i, i);
    writer.flush();
    const during = readFileSync(path).length;
    writer.close();
    assert.equal(during, 24 + 20 * 200016 + 190);
    const { frames } = readAll(path);
    assert.equal(frames.length, 20);
    frames.forEach(({ bytes }, i) => {
      assert.ok(bytes === Buffer.alloc(200000 + i, i).toString('hex'));
    });
  });

  it('times outside what pcap holds become the nearest, and are counted', () => {
    const path = scratchPath();
    const writer = new CaptureWriter(path);
    writeFrame(writer, A, 0, A.length, -1, 999999999);
    writeFrame(writer, A, 0, A.length, 4294967296, 0);
    writeFrame(writer, A, 0, A.length, 4294967295, 5);
    assert.equal(writer.clampedTimes, 2);
    writer.close();
    assert.deepEqual(
      readAll(path).frames.map(({ time }) => time),
      ['0.000000000', '4294967295.999999999', '4294967295.000000005'],
    );
  });

  it('wrong use is refused', () => {
    const writer = new CaptureWriter(scratchPath(), { snaplen: 100 });
    assert.throws(() => {
      writer.begin(101, 101, 0, 0);
    }, /a frame of 101 bytes, and snaplen is 100/);
    writer.begin(10, 10, 0, 0);
    assert.throws(() => {
      writer.piece(A, 0, 11);
    }, RangeError);
    assert.throws(() => {
      writer.piece(A, 8, 10);
    }, RangeError);
    assert.throws(() => {
      writer.begin(1, 1, 0, 0);
    }, /frame 1 lacks 10 bytes/);
    writer.piece(A, 0, 10);
    writer.close();
    assert.throws(() => new CaptureWriter(scratchPath(), { snaplen: 262145 }), RangeError);
  });

  it('never overwrites a file that is being read or written', () => {
    const path = scratchPath();
    const bytes = Buffer.concat([pcapHeader(true), pcapRecord(true, 1, 2, A)]);
    writeFileSync(path, bytes);
    const link = scratchPath();
    execFileSync('ln', ['-s', path, link]);
    const reader = openCapture(path);
    for (const name of [path, link]) {
      assert.throws(() => new CaptureWriter(name), {
        name: 'CaptureError',
        message: `${name}: cannot write: it is the file being read; name a different output file`,
      });
    }
    assert.deepEqual(readFileSync(path), bytes);
    reader.close();
    const writer = new CaptureWriter(path);
    assert.throws(() => new CaptureWriter(link), /it is being written by another port/);
    assert.throws(() => openCapture(link), /it is being written by another port/);
    writer.close();
    openCapture(path).close();
  });

  it('a path that cannot be written names file, cause and remedy', () => {
    const missing = join(directory, 'missing', 'x.pcap');
    assert.throws(() => new CaptureWriter(missing), {
      name: 'CaptureError',
      message: `${missing}: cannot create: no such file or directory; check the path (ENOENT)`,
    });
    assert.throws(() => new CaptureWriter(directory), {
      message: `${directory}: cannot create: it is a directory; name a file (EISDIR)`,
    });
  });

  it('a full disk', { skip: existsSync('/dev/full') ? false : 'no /dev/full here' }, () => {
    const writer = new CaptureWriter('/dev/full');
    const full = {
      name: 'CaptureError',
      message:
        '/dev/full: cannot write: no space left on the device; free some space or name a file elsewhere (ENOSPC)',
    };
    writeFrame(writer, A, 0, A.length, 0, 0);
    assert.throws(() => {
      writer.flush();
    }, full);
    writer.close();
    const late = new CaptureWriter('/dev/full');
    assert.throws(() => {
      late.close();
    }, full);
  });
});

describe('pcapng as it is written', () => {
  it('the exact bytes of a file', () => {
    const path = scratchPath();
    const writer = new CaptureWriter(path, { format: 'pcapng' });
    assert.equal(writer.resolution, 'ns');
    // 1,700,000,000.123456789 s = 0x17979cfe_3d5bcd15 ns
    writeFrame(writer, Buffer.from([9, 8, 7, 6, 5]), 0, 5, 1700000000, 123456789, 60);
    writer.close();
    const interfaceBlock = describeInterface(false, 262144, [tsresol(false, 9), tsoffset(false, 0n)]);
    const time = 1700000000123456789n;
    assert.deepEqual(
      readFileSync(path),
      Buffer.concat([section(false), interfaceBlock, enhanced(false, 0, time, Buffer.from([9, 8, 7, 6, 5]), 60)]),
    );
  });

  it('every time is kept, before 1970 and after 2554 too, as tshark reads it', { skip: withoutTshark }, () => {
    const times: [sec: number, nsec: number][] = [
      [0, 0],
      [4294967296, 1], // 2106, what pcap cannot hold
      [-1, 999999999], // a nanosecond before 1970
      [-3000000000, 5],
      [17179869183, 999999999], // the last of the first interface's times
      [17179869184, 0], // and the first of the next one's
      [1700000000, 123456789],
    ];
    const path = scratchPath();
    const writer = new CaptureWriter(path, { format: 'pcapng' });
    for (const [sec, nsec] of times) writeFrame(writer, A, 0, A.length, sec, nsec);
    writer.close();
    assert.equal(writer.clampedTimes, 0);
    assert.deepEqual(
      readAll(path).frames.map(({ time, interface: index }) => [time, index]),
      times.map(([sec, nsec]) => [seconds(sec, nsec), sec < 0 ? 1 : sec < 2 ** 34 ? 0 : 2]),
    );
    // Of times before 1970 tshark prints the second before and the nanoseconds from there on, as here.
    assert.deepEqual(
      tshark(path).map(({ time }) => time),
      times.map(([sec, nsec]) => seconds(sec, nsec)),
    );
  });

  it('what is written, in pieces, is read back', () => {
    const frame = fc.record({
      data: fc.uint8Array({ maxLength: 200 }),
      extra: fc.nat(9000),
      tsSec: fc.integer({ min: -(2 ** 40), max: 2 ** 40 }),
      tsNsec: fc.nat({ max: 999999999 }),
      cut: fc.nat(200),
    });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 40 }), (frames) => {
        const path = scratchPath();
        const writer = new CaptureWriter(path, { format: 'pcapng' });
        for (const { data, extra, tsSec, tsNsec, cut } of frames) {
          const first = Math.min(cut, data.length);
          writer.begin(data.length, data.length + extra, tsSec, tsNsec);
          writer.piece(data, 0, first);
          writer.piece(data, first, data.length - first);
        }
        const bytes = frames.reduce((sum, { data }) => sum + data.length, 0);
        assert.deepEqual(writer.buffered, { frames: frames.length, bytes });
        writer.close();
        const capture = readAll(path);
        rmSync(path);
        assert.equal(capture.problem, undefined);
        assert.deepEqual(
          capture.frames.map(({ bytes, origLen, time }) => [bytes, origLen, time]),
          frames.map(({ data, extra, tsSec, tsNsec }) => [
            Buffer.from(data).toString('hex'),
            data.length + extra,
            seconds(tsSec, tsNsec),
          ]),
        );
      }),
      { numRuns: 50 },
    );
  });

  it('capinfos and mergecap take it', { skip: skipWithout('capinfos', 'mergecap') }, () => {
    const [path, merged] = [scratchPath(), scratchPath()];
    const reader = openCapture(join(CAPTURES, 'afs.pcap'));
    const writer = new CaptureWriter(path, { format: 'pcapng' });
    while (reader.next())
      writeFrame(writer, reader.data, reader.offset, reader.capLen, reader.tsSec, reader.tsNsec, reader.origLen);
    reader.close();
    writer.close();
    const infos = execFileSync('capinfos', ['-M', '-t', '-E', '-c', '-d', path], { encoding: 'utf8' });
    assert.match(infos, /File type: +pcapng\n/);
    assert.match(infos, /Number of packets: +601\n[^]*Data size: +512276\b/);
    execFileSync('mergecap', ['-w', merged, path, join(CAPTURES, 'pptp.pcap')]);
    assert.equal(readAll(merged).frames.length, 601 + 23);
  });
});

describe('compressed captures', () => {
  const large = (): Buffer => {
    const parts = [pcapHeader(false)];
    for (let i = 0; i < 3000; i++) parts.push(pcapRecord(false, i, 0, Buffer.alloc(1400, i)));
    return Buffer.concat(parts);
  };

  it('gzip: the frames of what was packed, larger than any buffer and in several members too', () => {
    const plain = large();
    const frames = readBytes(plain).frames;
    assert.equal(frames.length, 3000);
    assert.deepEqual(readBytes(gzipSync(plain)), readBytes(plain));
    const members = Buffer.concat([gzipSync(plain.subarray(0, 2000001)), gzipSync(plain.subarray(2000001))]);
    assert.deepEqual(readBytes(members).frames, frames);
    for (const file of ['afs.pcap', 'OSPFv2_Capture_FINAL.pcapng']) {
      const original = join(CAPTURES, file);
      assert.deepEqual(readBytes(gzipSync(readFileSync(original))), readAll(original));
    }
  });

  it('gzip cut short or damaged: the frames before, then what is wrong', { skip: skipWithout('gzip') }, () => {
    const packed = gzipSync(readFileSync(join(CAPTURES, 'afs.pcap')));
    // What gzip itself gets out of it.
    const cut = packed.subarray(0, 30000);
    const whole = spawnSync('gzip', ['-dc'], { input: cut, maxBuffer: 1 << 28 }).stdout;
    const { frames, problem } = readBytes(cut);
    assert.deepEqual(frames, readBytes(whole).frames);
    assert.match(problem!, new RegExp(`gzip data at byte ${whole.length} of what it holds: unexpected end of file$`));
    const damaged = Buffer.from(packed);
    damaged[packed.length - 8] ^= 1; // of the checksum
    const bad = readBytes(damaged);
    assert.deepEqual(bad.frames, readAll(join(CAPTURES, 'afs.pcap')).frames.slice(0, bad.frames.length));
    assert.match(bad.problem!, /incorrect data check$/);
  });

  it('is let go before its end', () => {
    const path = scratchPath();
    const packed = gzipSync(large());
    writeFileSync(path, packed);
    for (let i = 0; i < 3; i++) {
      const reader = openCapture(path);
      assert.equal(reader.next(), true);
      reader.close();
      // Not held as being read any more, so it can be written.
      new CaptureWriter(path).close();
      writeFileSync(path, packed);
    }
  });

  it('zstd where this Node.js has it; else the command that unpacks it', () => {
    const packed = (zlib as { zstdCompressSync?: (data: Uint8Array) => Buffer }).zstdCompressSync;
    if (packed === undefined) {
      const message = withFile(Buffer.from('28b52ffd', 'hex'), refusalOf);
      assert.match(message, /: compressed with zstd; unpack it first: zstd -d < /);
    } else {
      const original = join(CAPTURES, 'afs.pcap');
      assert.deepEqual(readBytes(packed(readFileSync(original))), readAll(original));
    }
  });

  it('cannot be followed', () => {
    withFile(gzipSync(pcapHeader(false)), (path) => {
      assert.throws(
        () => new Opening(path, true).reader(),
        /: compressed with gzip, and such a file cannot be followed/,
      );
    });
  });
});

describe('a file that is followed', () => {
  it('brings what is appended to it, from an empty file on, and half a frame only when it is whole', () => {
    const path = scratchPath();
    writeFileSync(path, '');
    const opening = new Opening(path, true);
    assert.equal(opening.reader(), undefined);
    appendFileSync(path, pcapHeader(true).subarray(0, 10));
    assert.equal(opening.reader(), undefined);
    appendFileSync(path, pcapHeader(true).subarray(10));
    const reader = opening.reader()!;
    const record = pcapRecord(true, 1, 2, A);
    for (let i = 0; i < 3; i++) {
      appendFileSync(path, record.subarray(0, 20));
      assert.deepEqual([reader.next(), reader.ended], [false, false]);
      appendFileSync(path, record.subarray(20));
      assert.equal(reader.next(), true);
      assert.deepEqual(Buffer.from(reader.data.subarray(reader.offset, reader.offset + reader.capLen)), A);
    }
    assert.deepEqual([reader.next(), reader.ended, reader.problem], [false, false, undefined]);
    reader.close();
  });
});

describe('what is no capture', () => {
  const cases: [name: string, bytes: Buffer, expected: RegExp][] = [
    ['empty', Buffer.alloc(0), /: truncated at byte 0 \(end of file\): no capture file is that short$/],
    ['text', Buffer.from('#!/bin/sh\n'), /: neither pcap nor pcapng: .*editcap/],
    ['gzip cut short', Buffer.from('1f8b0800', 'hex'), /: cannot unpack the gzip data at byte 0 .*: unexpected end of/],
    ['text in gzip', gzipSync('#!/bin/sh\n'), /: neither pcap nor pcapng: it begins with 23212f62; /],
    ['xz', Buffer.from('fd377a585a00', 'hex'), /: compressed with xz; unpack it first: xz -d < /],
    ['modified pcap', words(true, 0xa1b2cd34), /: pcap with Alexey Kuznetzov's longer record .* editcap -F pcap /],
    ['modified pcap, swapped', words(false, 0xa1b2cd34), /: pcap with Alexey Kuznetzov's longer record headers/],
    ['Ixia', words(false, 0x1c0001ac), /: Ixia's variant of pcap, with hardware timestamps; .* editcap -F pcap /],
  ];
  for (const [name, bytes, expected] of cases) {
    it(name, () => {
      assert.match(withFile(bytes, refusalOf), expected);
    });
  }

  it(
    'variants of pcap are named for what they are, and the command in the message helps',
    { skip: skipWithout('editcap') },
    () => {
      const variants: [editcap: string, expected: RegExp][] = [
        ['nokiapcap', /: Nokia's variant of pcap, whose record headers have 20 bytes; /],
        ['rh6_1pcap', /: pcap as the tcpdump of Red Hat Linux 6\.1 wrote it, whose record headers have 24 bytes; /],
        ['modpcap', /: pcap with Alexey Kuznetzov's longer record headers, /],
        ['suse6_3pcap', /: pcap with Alexey Kuznetzov's longer record headers, /],
      ];
      for (const file of ['afs.pcap', 'pptp.pcap']) {
        const original = join(CAPTURES, file);
        for (const [format, expected] of variants) {
          const [variant, back] = [scratchPath(), scratchPath()];
          execFileSync('editcap', ['-F', format, original, variant]);
          assert.match(refusalOf(variant), expected, format);
          execFileSync('editcap', ['-F', 'pcap', variant, back]);
          assert.deepEqual(readAll(back).frames, readAll(original).frames);
        }
      }
    },
  );

  it('missing files, directories and devices', () => {
    assert.equal(
      refusalOf('no-such.pcap'),
      'no-such.pcap: cannot open: no such file or directory; check the path (ENOENT)',
    );
    assert.equal(refusalOf(directory), `${directory}: cannot read: it is a directory; name a file`);
    assert.match(refusalOf('/dev/null'), /^\/dev\/null: cannot read: neither a regular file nor a FIFO/);
  });

  it('a file that cannot even be looked for is refused by name where it is to be written, too', () => {
    const loop = join(directory, 'loop');
    symlinkSync(loop, loop);
    for (const path of [loop, join(directory, 'x'.repeat(300))])
      assert.throws(
        () => new CaptureWriter(path),
        (error) => error instanceof CaptureError && error.message.startsWith(`${path}: cannot create: `),
      );
  });

  it('arbitrary bytes never throw anything but CaptureError', () => {
    const starts = [
      Buffer.alloc(0),
      pcapHeader(false),
      pcapHeader(true, 0xa1b23c4d),
      section(false),
      Buffer.concat([section(false), describeInterface(false)]),
      Buffer.concat([section(true), describeInterface(true), enhanced(true, 0, 1n, A)]),
    ];
    fc.assert(
      fc.property(fc.constantFrom(...starts), fc.uint8Array({ maxLength: 300 }), (start, rest) => {
        tryReading(Buffer.concat([start, rest]));
      }),
      { numRuns: 500 },
    );
  });

  it('a file with any few bytes changed never throws anything but CaptureError, and any problem names a byte', () => {
    const files = [
      Buffer.concat([pcapHeader(false), pcapRecord(false, 1, 2, A), pcapRecord(false, 1, 2, B)]),
      Buffer.concat([section(false), describeInterface(false, 0, [tsresol(false, 9)]), enhanced(false, 0, 1n, A)]),
    ];
    const changes = fc.array(fc.tuple(fc.nat(200), fc.nat(255)), { minLength: 1, maxLength: 4 });
    fc.assert(
      fc.property(fc.constantFrom(...files), changes, (file, edits) => {
        const bytes = Buffer.from(file);
        for (const [at, value] of edits) bytes[at % bytes.length] = value;
        tryReading(bytes);
      }),
      { numRuns: 1000 },
    );
  });

  function tryReading(bytes: Buffer): void {
    try {
      const { problem } = readBytes(bytes);
      if (problem !== undefined) assert.match(problem, / at byte \d+/);
    } catch (error) {
      if (!(error instanceof CaptureError)) throw error;
    }
  }
});

describe('a FIFO', { skip: skipWithout('mkfifo') }, () => {
  it('brings header and frames in pieces, without blocking between them', async () => {
    const path = scratchPath();
    execFileSync('mkfifo', [path]);
    const bytes = Buffer.concat([pcapHeader(false), pcapRecord(false, 1, 2, A), pcapRecord(false, 3, 4, B)]);
    const file = scratchPath();
    writeFileSync(file, bytes);
    // Header in two pieces, the first frame and a half; the rest when told so.
    const script = `
      exec 3>"$1"
      dd bs=1 count=10 status=none >&3 <"$2"
      dd bs=1 skip=10 count=60 status=none >&3 <"$2"
      read -r go
      dd bs=1 skip=70 status=none >&3 <"$2"`;
    const writer = spawn('sh', ['-c', script, 'sh', path, file], { stdio: ['pipe', 'inherit', 'inherit'] });
    const gone = new Promise((resolve) => writer.on('exit', resolve));
    const reader = openCapture(path);
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));
    while (!reader.next()) {
      assert.equal(reader.ended, false);
      await pause();
    }
    assert.equal(reader.capLen, A.length);
    for (let i = 0; i < 3; i++) {
      assert.equal(reader.next(), false);
      assert.equal(reader.ended, false);
    }
    writer.stdin.end('go\n');
    await gone;
    assert.equal(reader.next(), true);
    assert.deepEqual(Buffer.from(reader.data.subarray(reader.offset, reader.offset + reader.capLen)), B);
    assert.equal(reader.next(), false);
    assert.equal(reader.ended, true);
    assert.equal(reader.problem, undefined);
    reader.close();
  });
});
