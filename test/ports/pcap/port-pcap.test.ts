import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import {
  existsSync,
  linkSync,
  mkdtempSync,
  openSync,
  closeSync,
  readFileSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { MOREFRAG, SLOT_BUF_IDX } from '../../../lib/rings/abi.js';
import { COUNTERS, FRAMES, SLOTS, notForwarded } from '../../../lib/forward/counters.js';
import { PortError } from '../../../lib/text/errors.js';
import { forwarder, isZeroCopy } from '../../support/forwarder.js';
import { Memory } from '../../../lib/rings/memory.js';
import { openPort, openPorts } from '../../../lib/ports/open.js';
import type { Port } from '../../../lib/ports/port.js';
import { parsePortSpec, type PcapSpec } from '../../../lib/names/portspec.js';
import { preparePcap } from '../../../lib/ports/pcap/pcap-port.js';
import type { Ring } from '../../../lib/rings/ring.js';
import { auditBuffers } from '../../support/audit.js';
import { skipWithout } from '../../support/needs.js';

const CAPTURES = 'test/captures';
const NOT_ETHERNET = ['RADIUS-RFC3162.pcap', 'tcp-handshake-nano.pcap'];
const directory = mkdtempSync(join(tmpdir(), 'port-pcap-test-'));
after(() => {
  rmSync(directory, { recursive: true });
});

const withoutTools = skipWithout('tcpdump', 'tshark');

let scratch = 0;
function scratchPath(): string {
  return join(directory, `${++scratch}.pcap`);
}

/** Opens ports for the time of `use`, and audits their buffers after it. */
function withPorts<T>(names: string[], use: (...ports: Port[]) => T): T {
  const ports = openPorts(names);
  try {
    const result = use(...ports);
    auditBuffers(ports);
    return result;
  } finally {
    for (const port of ports) port.close();
  }
}

/** Bridges one way until the source has ended and everything has left. Returns the direction's counters. */
function drain(from: Port, to: Port, burst = 1024, zeroCopy = isZeroCopy(from.rx[0], to.tx[0])): Float64Array {
  const counters = new Float64Array(COUNTERS);
  const forward = forwarder(from.rx[0], to.tx[0], counters, zeroCopy);
  while (!(from.ended() && from.rx[0].space === 0)) {
    from.rxsync();
    forward(burst);
    to.txsync();
  }
  while (to.txPending() > 0) to.txsync();
  return counters;
}

interface Outcome {
  counters: Float64Array;
  /** Counters of the reading and of the writing port. */
  read: Record<string, number>;
  written: Record<string, number>;
  problem: string | undefined;
}

/** Bridges one file to another, through two ports. */
function copyCapture(input: string, output: string, burst?: number): Outcome {
  return withPorts([`pcap:${input}`, `pcap:@out=${output}`], (from, to) => {
    const counters = drain(from, to, burst);
    return { counters, read: from.stats(), written: to.stats(), problem: from.problem?.() };
  });
}

/** What tcpdump and tshark read: times, lengths and every byte of every frame. */
function dump(path: string): string[] {
  const options = { encoding: 'utf8', maxBuffer: 1 << 28, stdio: 'pipe' } as const;
  const bytes = execFileSync('tcpdump', ['-r', path, '-n', '-e', '-xx', '-tt', '--time-stamp-precision=nano'], options);
  const fields = ['frame.time_epoch', 'frame.len', 'frame.cap_len'].flatMap((field) => ['-e', field]);
  return [bytes, execFileSync('tshark', ['-n', '-r', path, '-T', 'fields', ...fields], options)];
}

// Captures made by hand, so that neither our reader nor our writer is held against itself.

interface Frame {
  sec: number;
  /** µs or ns, as the file's magic says. */
  fraction: number;
  data: Buffer;
  origLen?: number;
}

const US = 0xa1b2c3d4;
const NS = 0xa1b23c4d;

/** A little-endian pcap file with snaplen 262144, as the port writes them. */
function pcap(magic: number, frames: readonly Frame[]): Buffer {
  const header = Buffer.alloc(24);
  header.writeUInt32LE(magic, 0);
  header.writeUInt16LE(2, 4);
  header.writeUInt16LE(4, 6);
  header.writeUInt32LE(262144, 16);
  header.writeUInt32LE(1, 20);
  const records = frames.map(({ sec, fraction, data, origLen = data.length }) => {
    const record = Buffer.alloc(16);
    [sec, fraction, data.length, origLen].forEach((value, i) => record.writeUInt32LE(value, 4 * i));
    return Buffer.concat([record, data]);
  });
  return Buffer.concat([header, ...records]);
}

function frame(length: number, at: number, origLen = length): Frame {
  const data = Buffer.alloc(length);
  for (let i = 0; i < length; i++) data[i] = (at * 31 + i * 7 + (i >> 8)) & 0xff;
  return { sec: 1_600_000_000 + at, fraction: at, data, origLen };
}

function file(bytes: Buffer): string {
  const path = scratchPath();
  writeFileSync(path, bytes);
  return path;
}

/** Little-endian pcapng with one interface whose frames end with an FCS of `fcsLength` (as the option states it). */
function pcapngWithFcs(fcsLength: number, frames: readonly { data: Buffer; origLen: number }[]): Buffer {
  const words = (...values: number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);
  const block = (type: number, body: Buffer): Buffer => {
    const padded = Buffer.concat([body, Buffer.alloc(-body.length & 3)]);
    return Buffer.concat([words(type, padded.length + 12), padded, words(padded.length + 12)]);
  };
  const option = Buffer.from([13, 0, 1, 0, fcsLength, 0, 0, 0, 0, 0, 0, 0]);
  return Buffer.concat([
    block(0x0a0d0d0a, words(0x1a2b3c4d, 1, 0xffffffff, 0xffffffff)),
    block(1, Buffer.concat([words(1, 0), option])),
    ...frames.map(({ data, origLen }, i) => block(6, Buffer.concat([words(0, 0, i, data.length, origLen), data]))),
  ]);
}

/** Frames of a little-endian pcap file. */
function records(path: string): Frame[] {
  const bytes = readFileSync(path);
  const frames: Frame[] = [];
  for (let at = 24; at < bytes.length;) {
    const [sec, fraction, length, origLen] = [0, 4, 8, 12].map((i) => bytes.readUInt32LE(at + i));
    frames.push({
      sec: sec,
      fraction: fraction,
      origLen: origLen,
      data: bytes.subarray(at + 16, at + 16 + length),
    });
    at += 16 + length;
  }
  return frames;
}

/** Puts a frame into the tx ring as `lengths.length` slots, each filled with `fill`. */
function send(ring: Ring, fill: number, ...lengths: number[]): void {
  lengths.forEach((length, k) => {
    ring.u8.fill(fill, ring.dataStart(ring.head), ring.dataStart(ring.head) + length);
    ring.setLenFlags(ring.head, length, k < lengths.length - 1 ? MOREFRAG : 0);
    ring.advance(1);
  });
}

function failure(names: string[]): string {
  try {
    for (const port of openPorts(names)) port.close();
  } catch (error) {
    assert.ok(error instanceof PortError, `not a PortError: ${String(error)}`);
    return error.message;
  }
  return assert.fail(`${names.join(' ')} was opened`);
}

const between = (low: number, value: number, high: number): void => {
  assert.ok(low <= value && value <= high, `${value} is not between ${low} and ${high}`);
};

describe('a capture bridged to a capture', () => {
  // Frames and the most slots of one: by capinfos and the longest frame, 2048 bytes a slot.
  const expected = new Map([
    ['802.1ad_QinQ.pcap', 2],
    ['AoE_Linux.pcap', 186],
    ['OSPFv2_Capture_FINAL.pcapng', 30],
    ['afs.pcap', 601],
    ['bigtcp-ipv4.pcap', 1],
    ['huge-tipc-messages.pcap', 13],
    ['pptp.pcap', 23],
  ]);
  const files = readdirSync(CAPTURES).filter((name) => name.includes('.pcap') && !NOT_ETHERNET.includes(name));

  it('covers every Ethernet capture there is', () => {
    assert.deepEqual(files.toSorted(), [...expected.keys()].toSorted());
  });

  for (const name of files) {
    it(`${name}: frames, bytes and times are the source's`, { skip: withoutTools }, () => {
      const output = scratchPath();
      const { counters, read, written, problem } = copyCapture(join(CAPTURES, name), output);
      assert.deepEqual(dump(output), dump(join(CAPTURES, name)));
      assert.equal(counters[FRAMES], expected.get(name));
      assert.equal(read['framesRead'], expected.get(name));
      assert.equal(written['framesWritten'], expected.get(name));
      assert.equal(notForwarded(counters), 0);
      assert.equal(problem, undefined);
    });
  }

  it('takes the slots it needs: 40 for 80066 bytes, 33 for 66014', () => {
    assert.equal(copyCapture(join(CAPTURES, 'bigtcp-ipv4.pcap'), scratchPath()).counters[SLOTS], 40);
    withPorts([`pcap:${join(CAPTURES, 'huge-tipc-messages.pcap')}`], (port) => {
      port.rxsync();
      const ring = port.rx[0];
      let most = 0;
      for (let i = ring.head, run = 1; i !== ring.tail; i = ring.after(i), run++) {
        if ((ring.slotFlags(i) & MOREFRAG) !== 0) continue;
        most = Math.max(most, run);
        run = 0;
      }
      assert.equal(most, 33);
    });
  });

  for (const [unit, magic] of [
    ['µs', US],
    ['ns', NS],
  ] as const) {
    it(`keeps ${unit}, and the file itself where it has the writer's form`, () => {
      const most = magic === NS ? 999_999_999 : 999_999;
      const one = fc.record({
        sec: fc.nat(0xffffffff),
        fraction: fc.nat(most),
        length: fc.oneof(
          fc.integer({ min: 1, max: 200 }),
          fc.integer({ min: 1, max: 9000 }),
          fc.constantFrom(2048, 2049, 4096),
        ),
      });
      fc.assert(
        fc.property(fc.array(one, { maxLength: 80 }), fc.integer({ min: 1, max: 64 }), (list, burst) => {
          const source = pcap(
            magic,
            list.map(({ sec, fraction, length }, i) => ({ ...frame(length, i), sec, fraction, origLen: length })),
          );
          const output = scratchPath();
          copyCapture(file(source), output, burst);
          assert.ok(readFileSync(output).equals(source));
        }),
        { numRuns: 40 },
      );
    });
  }

  it('keeps times through many turns of the rings, both ways at once', () => {
    const there = pcap(
      US,
      Array.from({ length: 5000 }, (_, i) => frame(60 + (i % 3000), i)),
    );
    const back = pcap(
      US,
      Array.from({ length: 4000 }, (_, i) => frame(64, i)),
    );
    const [a, b] = [scratchPath(), scratchPath()];
    withPorts([`pcap:${file(there)}@out=${a}`, `pcap:${file(back)}@out=${b}`], (one, two) => {
      const counters = [new Float64Array(COUNTERS), new Float64Array(COUNTERS)] as const;
      const forwards = [forwarder(one.rx[0], two.tx[0], counters[0]), forwarder(two.rx[0], one.tx[0], counters[1])];
      const idle = (port: Port): boolean => port.ended() && port.rx[0].space === 0;
      while (!(idle(one) && idle(two) && one.txPending() + two.txPending() === 0)) {
        one.rxsync();
        two.rxsync();
        for (const forward of forwards) forward(100);
        one.txsync();
        two.txsync();
      }
    });
    assert.ok(readFileSync(b).equals(there));
    assert.ok(readFileSync(a).equals(back));
  });

  it('one port looped back', () => {
    const source = pcap(NS, [frame(60, 1), frame(5000, 2), frame(1514, 3)]);
    const output = scratchPath();
    withPorts([`pcap:${file(source)}@out=${output}`], (port) => drain(port, port));
    assert.ok(readFileSync(output).equals(source));
  });

  it('writes ns where any file read has them, whichever port is named first', () => {
    const [us, ns] = [file(pcap(US, [])), file(pcap(NS, []))];
    const magic = (...readers: string[]): string => {
      const output = scratchPath();
      withPorts([`pcap:@out=${output}`, ...readers.map((path) => `pcap:${path}`)], () => undefined);
      assert.equal(readFileSync(output).length, 24);
      return readFileSync(output).readUInt32LE(0).toString(16);
    };
    assert.equal(magic(us), US.toString(16));
    assert.equal(magic(us, us), US.toString(16));
    assert.equal(magic(ns), NS.toString(16));
    assert.equal(magic(us, ns), NS.toString(16));
    assert.equal(magic(), NS.toString(16));
  });
});

describe('what cannot be bridged as it was', () => {
  it('@short=drop: a frame captured short of its length is left out and counted', () => {
    const whole = [frame(60, 1), frame(100, 3)];
    const output = scratchPath();
    const { counters, read } = copyCapture(
      `${file(pcap(NS, [whole[0], frame(68, 2, 1514), whole[1], frame(0, 4, 60)]))}@short=drop`,
      output,
    );
    assert.ok(readFileSync(output).equals(pcap(NS, whole)));
    assert.equal(read['shortCaptured'], 2);
    assert.equal(read['framesRead'], 2);
    assert.equal(counters[FRAMES], 2);
  });

  /** 60 of 60 bytes, 68 of 1514, 801 of 785, 3000 of 6000 (two slots of three), none of 60. */
  const odd = [frame(60, 1), frame(68, 2, 1514), frame(801, 3, 785), frame(3000, 4, 6000), frame(0, 5, 60)];
  /** The frames of `odd` as they arrive at a port that no capture is joined to; and its counters that are not 0. */
  const delivered = (options: string): [number[], Record<string, number>] =>
    withPorts([`pcap:${file(pcap(NS, odd))}${options}`], (port) => {
      port.rxsync();
      const lengths = [];
      const ring = port.rx[0];
      for (let i = ring.head, length = 0; i !== ring.tail; i = ring.after(i)) {
        length += ring.len(i);
        if ((ring.slotFlags(i) & MOREFRAG) !== 0) continue;
        lengths.push(length);
        length = 0;
      }
      return [lengths, Object.fromEntries(Object.entries(port.stats()).filter(([, value]) => value !== 0))];
    });

  it('a wire gets only frames that are whole, without the bytes they had not; the others are counted', () => {
    for (const options of ['', '@short=drop'])
      assert.deepEqual(delivered(options), [[60, 785], { framesRead: 2, shortCaptured: 3, excessCut: 1 }]);
  });

  it('@short=cut sends what there is of a frame, @short=pad zeros in place of the rest', () => {
    const cut = { framesRead: 4, shortCaptured: 1, shortCut: 2, excessCut: 1 };
    assert.deepEqual(delivered('@short=cut'), [[60, 68, 785, 3000], cut]);
    assert.deepEqual(delivered('@short=pad'), [
      [60, 1514, 785, 6000, 60],
      { framesRead: 5, shortPadded: 3, excessCut: 1 },
    ]);
  });

  it('from capture to capture frames keep both lengths, whatever @short says of the others', () => {
    const filled = ({ data, origLen, ...time }: Frame): Frame => {
      return { ...time, data: Buffer.concat([data, Buffer.alloc(origLen! - data.length)]) };
    };
    const ends = ({ data, ...frame }: Frame): Frame => ({ ...frame, data, origLen: data.length });
    const [whole, short, excess, large, none] = odd as [Frame, Frame, Frame, Frame, Frame];
    const cases: [options: string, expected: Frame[]][] = [
      ['', [whole, short, excess, large]],
      ['@short=drop', [whole, excess]],
      ['@short=cut', [whole, ends(short), excess, ends(large)]],
      ['@short=pad', [whole, filled(short), excess, filled(large), filled(none)]],
    ];
    for (const [options, expected] of cases) {
      const output = scratchPath();
      copyCapture(`${file(pcap(NS, odd))}${options}`, output);
      assert.ok(readFileSync(output).equals(pcap(NS, expected)), options);
    }
  });

  it('frames that are copied on their way lose what tells their lengths, and are treated as on a wire', () => {
    const output = scratchPath();
    const ports = openPorts([`pcap:${file(pcap(NS, odd))}`, `pcap:@out=${output}`], { copy: true });
    const [from, to] = ports;
    drain(from, to, 1024, false);
    assert.equal(from.stats()['shortCaptured'], 3);
    for (const port of ports) port.close();
    assert.deepEqual(
      records(output).map(({ data, origLen }) => [data.length, origLen]),
      [
        [60, 60],
        [785, 785],
      ],
    );
  });

  it('padding hides what the buffer held before', () => {
    const source = [...Array.from({ length: 1023 }, (_, i) => frame(1000, i)), frame(10, 1, 1000), frame(10, 2, 1000)];
    withPorts([`pcap:${file(pcap(NS, source))}@short=pad`], (port) => {
      const ring = port.rx[0];
      port.rxsync();
      ring.advance(1023);
      port.rxsync();
      for (const slot of [1023, 0]) {
        assert.equal(ring.len(slot), 1000);
        assert.deepEqual(
          [...ring.data(slot).subarray(10)],
          Array.from({ length: 990 }, () => 0),
        );
      }
    });
  });

  it('a frame of more than 64 slots is left out and counted, one of exactly 64 is not', () => {
    const whole = [frame(64 * 2048, 1), frame(60, 3)];
    const output = scratchPath();
    const { read } = copyCapture(
      file(pcap(NS, [whole[0], frame(64 * 2048 + 1, 2), whole[1], frame(262144, 4)])),
      output,
    );
    assert.ok(readFileSync(output).equals(pcap(NS, whole)));
    assert.equal(read['tooLong'], 2);
    assert.equal(read['framesRead'], 2);
  });

  it('a frame without bytes is left out and counted', () => {
    const output = scratchPath();
    const { read } = copyCapture(file(pcap(NS, [frame(0, 1), frame(60, 2)])), output);
    assert.ok(readFileSync(output).equals(pcap(NS, [frame(60, 2)])));
    assert.equal(read['empty'], 1);
  });

  it('thousands of them do not stop the port', () => {
    const kept = frame(60, 1);
    const output = scratchPath();
    const { read } = copyCapture(
      `${file(pcap(NS, [...Array.from({ length: 5000 }, () => frame(20, 7, 60)), kept]))}@short=drop`,
      output,
    );
    assert.equal(read['shortCaptured'], 5000);
    assert.ok(readFileSync(output).equals(pcap(NS, [kept])));
  });

  it('a truncated file brings what is whole, then says where it broke', () => {
    const input = file(pcap(NS, [frame(60, 1), frame(60, 2), frame(60, 3)]).subarray(0, 24 + 2 * 76 + 30));
    const output = scratchPath();
    const { problem } = copyCapture(input, output);
    assert.ok(readFileSync(output).equals(pcap(NS, [frame(60, 1), frame(60, 2)])));
    assert.equal(problem, `${input}: truncated at byte 206 (end of file): frame 3 at byte 176 has 30 of its 76 bytes`);
  });

  it('an FCS in the capture does not enter the slots', () => {
    const data = Buffer.from(Array.from({ length: 64 }, (_, i) => i));
    for (const stated of [4, 32]) {
      const output = scratchPath();
      const frames = [
        { data, origLen: 64 }, // 60 bytes and FCS
        { data: data.subarray(0, 62), origLen: 64 }, // whole but for half its FCS
        { data: data.subarray(0, 59), origLen: 64 }, // lacks a byte of data
      ];
      const { read } = copyCapture(file(pcapngWithFcs(stated, frames)), output);
      assert.deepEqual(
        records(output).map((each) => [each.data, each.origLen]),
        [
          [data.subarray(0, 60), 60],
          [data.subarray(0, 60), 60],
          [data.subarray(0, 59), 60],
        ],
      );
      assert.equal(read['shortKept'], 1);
    }
  });

  it('another link type is refused by its name', () => {
    for (const name of NOT_ETHERNET) {
      const message = failure([`pcap:${join(CAPTURES, name)}`, `pcap:@out=${scratchPath()}`]);
      assert.match(message, new RegExp(`${name}: link type 113 \\(LINKTYPE_LINUX_SLL\\) carries no Ethernet frames`));
    }
  });
});

describe('files', () => {
  it('a missing file is named with its cause', () => {
    const error = failure(['pcap:/nonexistent/in.pcap']);
    assert.equal(error, '/nonexistent/in.pcap: cannot open: no such file or directory; check the path (ENOENT)');
    assert.equal(
      failure(['pcap:@out=/nonexistent/out.pcap']),
      '/nonexistent/out.pcap: cannot create: no such file or directory; check the path (ENOENT)',
    );
  });

  it('the file being read is never written, whichever port is named first and by whatever name', () => {
    const source = pcap(NS, [frame(60, 1)]);
    const input = file(source);
    const other = scratchPath();
    linkSync(input, other);
    for (const names of [
      [`pcap:${input}@out=${input}`],
      [`pcap:${input}`, `pcap:@out=${input}`],
      [`pcap:@out=${input}`, `pcap:${input}`],
      [`pcap:@out=${other}`, `pcap:${input}`],
    ]) {
      assert.match(failure(names), /cannot write: it is the file being read; name a different output file$/);
      assert.ok(readFileSync(input).equals(source));
    }
    const output = scratchPath();
    assert.match(failure([`pcap:@out=${output}`, `pcap:@out=${output}`]), /it is being written by another port/);
  });

  it('a port that fails to open leaves no file open', () => {
    const input = file(pcap(NS, [frame(60, 1)]));
    const descriptors = (): number => {
      const next = openSync(input, 'r');
      closeSync(next);
      return next;
    };
    const before = descriptors();
    failure([`pcap:${input}`, 'pcap:/nonexistent']);
    failure([`pcap:${input}`, 'pcap:@out=/nonexistent/x']);
    failure([`pcap:@out=/nonexistent/x`, `pcap:${input}`]);
    assert.equal(descriptors(), before);
    assert.equal(failure([`pcap:${input}@out=/nonexistent/x`]).startsWith('/nonexistent/x'), true);
    // Not held as being read any more either.
    openPort(`pcap:@out=${input}`).close();
  });

  it('only reading: no tx ring; only writing: no rx ring, and ended from the start', () => {
    withPorts([`pcap:${file(pcap(NS, [frame(60, 1)]))}`, `pcap:@out=${scratchPath()}`], (read, write) => {
      assert.deepEqual([read.tx.length, read.rx.length, write.tx.length, write.rx.length], [0, 1, 1, 0]);
      assert.deepEqual([read.ended(), write.ended()], [false, true]);
      read.rxsync();
      read.rxsync();
      assert.equal(read.ended(), true);
      assert.equal(read.rx[0].space, 1);
      read.txsync();
      write.rxsync();
    });
  });

  it('says what it reads and writes', () => {
    const [input, output] = [join(CAPTURES, 'pptp.pcap'), scratchPath()];
    withPorts([`pcap:${input}@out=${output}`], (port) => {
      assert.deepEqual(port.notes, [
        `reads ${input}: pcap, big-endian, µs, snaplen 65535`,
        `writes ${output}: pcap, little-endian, µs`,
      ]);
    });
  });

  it('a FIFO is read as it comes', { skip: skipWithout('mkfifo') }, async () => {
    const fifo = scratchPath();
    execFileSync('mkfifo', [fifo]);
    const first = pcap(NS, [frame(60, 1)]);
    const rest = pcap(NS, [frame(3000, 2)]).subarray(24);
    const script = 'exec 3>"$1"; cat "$2" >&3; read -r go; cat "$3" >&3';
    const writer = spawn('sh', ['-c', script, 'sh', fifo, file(first), file(rest)], {
      stdio: ['pipe', 'inherit', 'inherit'],
    });
    const gone = new Promise((resolve) => writer.on('exit', resolve));
    const port = openPort(`pcap:${fifo}`);
    const pause = (): Promise<void> => new Promise((resolve) => setTimeout(resolve, 1));
    port.rxsync();
    while (port.rx[0].space === 0) {
      await pause();
      port.rxsync();
    }
    port.rxsync();
    assert.deepEqual([port.ended(), port.rx[0].space], [false, 1]);
    writer.stdin.end('go\n');
    await gone;
    while (!port.ended()) {
      port.rxsync();
      await pause();
    }
    assert.equal(port.rx[0].space, 3);
    port.close();
  });
});

describe('writing', () => {
  it('frames that no capture brought have the time they are written', () => {
    const output = scratchPath();
    const before = Date.now();
    withPorts([`pcap:@out=${output}`], (port) => {
      send(port.tx[0], 1, 60);
      send(port.tx[0], 2, 2048, 100);
      port.txsync();
      assert.equal(port.tx[0].space, 1023);
    });
    const end = Date.now();
    const frames = records(output);
    assert.deepEqual(
      frames.map(({ data, origLen }) => [data, origLen]),
      [
        [Buffer.alloc(60, 1), 60],
        [Buffer.alloc(2148, 2), 2148],
      ],
    );
    // The clocks are compared in whole milliseconds, and the system's may be slewed between its readings.
    for (const { sec, fraction } of frames) between(before - 20, sec * 1000 + fraction / 1e6, end + 20);
  });

  it('the time of a frame read is used once', () => {
    const output = scratchPath();
    const before = Math.floor(Date.now() / 1000) - 1;
    withPorts([`pcap:${file(pcap(NS, [frame(60, 1)]))}`, `pcap:@out=${output}`], (from, to) => {
      drain(from, to);
      // A whole turn of the ring: the buffer that brought the frame is sent again among them.
      for (let i = 0; i < 1024; i++) {
        send(to.tx[0], 9, 60);
        to.txsync();
      }
    });
    const [first, ...others] = records(output);
    assert.deepEqual([first.sec, first.fraction], [1_600_000_001, 1]);
    assert.equal(others.length, 1024);
    for (const { sec } of others) assert.ok(sec >= before);
  });

  it('no time is kept where another kind of port could have filled the buffer', () => {
    const output = scratchPath();
    const source = preparePcap(parsePortSpec(`pcap:${file(pcap(NS, [frame(60, 1)]))}`) as PcapSpec, {});
    const target = preparePcap(parsePortSpec(`pcap:@out=${output}`) as PcapSpec, {});
    const before = Math.floor(Date.now() / 1000) - 1;
    const other = { tx: [16], rx: [16] };
    const memory = new Memory({ plans: [source.needs!.plan, target.needs!.plan, other], bufSize: 2048 });
    const [from, to] = [source.open(memory), target.open(memory)];
    const foreign = memory.carve(other);
    from.rxsync();
    // The other port sends the frame, and receives another in the same buffer.
    forwarder(from.rx[0], foreign.tx[0], new Float64Array(COUNTERS))(1);
    const [buffer, spare] = [foreign.tx[0].bufIdx(0), foreign.rx[0].bufIdx(0)];
    foreign.tx[0].i32[foreign.tx[0].slotWord(0) + SLOT_BUF_IDX] = spare;
    foreign.rx[0].i32[foreign.rx[0].slotWord(0) + SLOT_BUF_IDX] = buffer;
    foreign.rx[0].setLenFlags(0, 60);
    foreign.rx[0].i32[foreign.rx[0].base + 7] = 1; // tail
    forwarder(foreign.rx[0], to.tx[0], new Float64Array(COUNTERS))(1);
    assert.equal(to.tx[0].bufIdx(0), buffer);
    to.txsync();
    from.close();
    to.close();
    memory.release();
    memory.release();
    assert.ok(records(output)[0].sec >= before);
  });

  it('copied frames keep their bytes and have the time they are written', () => {
    const source = [frame(60, 1), frame(5000, 2), frame(2048, 3)];
    const output = scratchPath();
    const before = Math.floor(Date.now() / 1000) - 1;
    withPorts([`pcap:${file(pcap(NS, source))}`, `pcap:@out=${output}`], (from, to) => drain(from, to, 1024, false));
    assert.deepEqual(
      records(output).map(({ data }) => data),
      source.map(({ data }) => data),
    );
    for (const { sec } of records(output)) assert.ok(sec >= before);
  });

  it('an idle sync leaves a file that can be read, before the port is closed', () => {
    const source = pcap(NS, [frame(60, 1), frame(70, 2)]);
    const output = scratchPath();
    withPorts([`pcap:${file(source)}`, `pcap:@out=${output}`], (from, to) => {
      from.rxsync();
      forwarder(from.rx[0], to.tx[0], new Float64Array(COUNTERS))(1024);
      to.txsync();
      assert.equal(to.txPending(), 2);
      to.txsync();
      assert.equal(to.txPending(), 0);
      assert.ok(readFileSync(output).equals(source));
    });
  });

  it('half a ring is the most that waits in memory', () => {
    const output = scratchPath();
    withPorts([`pcap:@out=${output}`], (port) => {
      for (let i = 0; i < 511; i++) send(port.tx[0], 1, 60);
      port.txsync();
      assert.equal(port.txPending(), 511);
      assert.deepEqual(port.unsent?.(), { frames: 511, bytes: 511 * 60 });
      send(port.tx[0], 1, 60);
      port.txsync();
      assert.equal(port.txPending(), 0);
      assert.deepEqual(port.unsent(), { frames: 0, bytes: 0 });
      assert.equal(records(output).length, 512);
    });
  });

  it('a frame whose end has not been put in yet waits for it', () => {
    const output = scratchPath();
    withPorts([`pcap:@out=${output}`], (port) => {
      const ring = port.tx[0];
      send(ring, 1, 60);
      ring.setLenFlags(ring.head, 100, MOREFRAG);
      ring.u8.fill(2, ring.dataStart(ring.head), ring.dataStart(ring.head) + 100);
      ring.advance(1);
      port.txsync();
      port.txsync();
      assert.equal(records(output).length, 1);
      assert.equal(port.txPending(), 1);
      send(ring, 2, 50);
      port.txsync();
      port.txsync();
      assert.deepEqual(records(output).at(-1)!.data, Buffer.alloc(150, 2));
      assert.equal(port.txPending(), 0);
    });
  });

  it('slots that name bytes outside the memory, and frames of more than 64 slots, are left out and counted', () => {
    const output = scratchPath();
    withPorts([`pcap:@out=${output}`], (port) => {
      const ring = port.tx[0];
      const good = ring.bufIdx(0);
      for (const buffer of [0, 1, -1, 0x7fffffff, ring.bufLimit]) {
        const word = ring.slotWord(ring.head) + SLOT_BUF_IDX;
        const mine = ring.i32[word];
        ring.i32[word] = buffer;
        ring.setLenFlags(ring.head, 60);
        ring.advance(1);
        port.txsync();
        ring.i32[word] = mine;
      }
      ring.setLenFlags(ring.head, 2049);
      ring.advance(1);
      send(ring, 1, ...Array.from({ length: 65 }, () => 10));
      send(ring, 2, ...Array.from({ length: 64 }, () => 10));
      send(ring, 3, 0, 0);
      port.txsync();
      // A frame that fills the ring and does not end: its rest is no frame either.
      send(ring, 4, ...Array.from({ length: 1023 }, () => 1));
      ring.setLenFlags(ring.after(ring.head, 1023), 1, MOREFRAG);
      port.txsync();
      send(ring, 5, 10, 10);
      send(ring, 6, 10);
      port.txsync();
      assert.equal(port.stats()['framesWritten'], 1); // the last one waits in memory
      port.txsync();
      const { txCorrupt, txTooLong, framesWritten } = port.stats();
      assert.deepEqual([txCorrupt, txTooLong, framesWritten], [6, 2, 2]);
      // Five of 60 bytes and one of 2049; 65 of 10 and 1023 of 1.
      assert.deepEqual(port.refused?.(), { frames: 8, bytes: 5 * 60 + 2049 + 65 * 10 + 1023 });
      assert.equal(ring.bufIdx(0), good);
    });
    assert.deepEqual(
      records(output).map(({ data }) => data),
      [Buffer.alloc(640, 2), Buffer.alloc(10, 6)],
    );
  });

  it('an rx slot that comes back with a bad buffer is passed over and counted', () => {
    const source = [frame(60, 1), frame(5000, 2), frame(60, 3)];
    withPorts([`pcap:${file(pcap(NS, source))}`], (port) => {
      const ring = port.rx[0];
      const words = [0, 2].map((slot) => ring.slotWord(slot) + SLOT_BUF_IDX);
      const mine = words.map((word) => ring.i32[word]);
      for (const word of words) ring.i32[word] = 1;
      port.rxsync();
      const slots = Array.from({ length: ring.space }, (_, i) => [ring.len(i), ring.slotFlags(i) !== 0]);
      assert.deepEqual(slots, [
        [0, true],
        [60, false],
        [0, true],
        [2048, true],
        [2048, true],
        [904, false],
        [60, false],
      ]);
      assert.equal(port.stats()['badBuffers'], 2);
      words.forEach((word, i) => (ring.i32[word] = mine[i]!));
    });
  });

  it('a frame that a bad buffer leaves no room for waits for the next sync', () => {
    const source = Array.from({ length: 1023 }, (_, i) => frame(60, i));
    withPorts([`pcap:${file(pcap(NS, source))}`], (port) => {
      const ring = port.rx[0];
      const word = ring.slotWord(1022) + SLOT_BUF_IDX;
      const mine = ring.i32[word];
      ring.i32[word] = 0;
      port.rxsync();
      assert.deepEqual([ring.space, port.ended()], [1022, false]);
      ring.advance(1);
      port.rxsync();
      assert.deepEqual([ring.space, ring.len(1022), ring.len(1023), port.stats()['framesRead']], [1023, 0, 60, 1023]);
      assert.ok(source[1022].data.equals(ring.data(1023)));
      ring.i32[word] = mine;
    });
  });

  it('a time does not outlive its frame where the next one only continues in the buffer', () => {
    const output = scratchPath();
    const before = Math.floor(Date.now() / 1000) - 1;
    const source = [...Array.from({ length: 1023 }, (_, i) => frame(60, i)), frame(5000, 1023)];
    withPorts([`pcap:${file(pcap(NS, source))}`, `pcap:@out=${output}`], (from, to) => {
      const [rx, tx] = [from.rx[0], to.tx[0]];
      from.rxsync();
      rx.advance(1023);
      from.rxsync();
      // Slot 0 was the first of frame 1 and is the second of frame 1024. Its piece is sent as a frame of its own.
      assert.equal(rx.head, 1023);
      const [there, here] = [rx.slotWord(0) + SLOT_BUF_IDX, tx.slotWord(0) + SLOT_BUF_IDX];
      [tx.i32[here], rx.i32[there]] = [rx.i32[there], tx.i32[here]];
      tx.setLenFlags(0, 2048);
      tx.advance(1);
      to.txsync();
    });
    const [piece] = records(output);
    assert.ok(source[1023].data.subarray(2048, 4096).equals(piece.data));
    assert.ok(piece.sec >= before);
  });

  const noFull = existsSync('/dev/full') ? false : 'no /dev/full here';
  it('a full disk is reported with the file, and what was lost is counted', { skip: noFull }, () => {
    const ports = openPorts([`pcap:${join(CAPTURES, 'afs.pcap')}`, 'pcap:@out=/dev/full']);
    const [from, to] = ports;
    const full = {
      name: 'PortError',
      port: 'pcap:@out=/dev/full',
      message: /^\/dev\/full: cannot write: no space left/,
    };
    const counters = new Float64Array(COUNTERS);
    const forward = forwarder(from.rx[0], to.tx[0], counters);
    from.rxsync();
    forward(400);
    to.txsync();
    assert.throws(() => {
      to.txsync();
    }, full);
    assert.equal(to.stats()['unwritten'], 400);
    assert.equal(to.stats()['framesWritten'], 0);
    forward(100);
    // It stays so; what has not been taken stays in the ring.
    assert.throws(() => {
      to.txsync();
    }, full);
    assert.equal(to.stats()['unwritten'], 400);
    assert.equal(notForwarded(counters), 0);
    auditBuffers(ports);
    to.close();
    from.close();
  });

  it('what could not be written at the end is an error of close()', { skip: noFull }, () => {
    const port = openPort('pcap:@out=/dev/full');
    send(port.tx[0], 1, 60);
    port.txsync();
    assert.throws(() => {
      port.close();
    }, /^PortError: \/dev\/full: cannot write/);
    assert.equal(port.stats()['unwritten'], 1);
    port.close();
  });

  it(
    'a disk that fills up: the frames that are in the file are not counted as lost',
    { skip: process.platform !== 'linux' },
    () => {
      // A file of 10 KiB at most: 24 bytes and 10 whole frames of 1016 fit, the eleventh does not.
      const output = scratchPath();
      const script = `
      const { openPort } = await import(${JSON.stringify(new URL('../../../lib/ports/open.js', import.meta.url).href)});
      process.on('SIGXFSZ', () => {});
      const port = openPort('pcap:@out=' + process.argv[1]);
      const ring = port.tx[0];
      for (let i = 0; i < 15; i++) { ring.setLenFlags(ring.head, 1000); ring.advance(1); }
      port.txsync();
      try { port.txsync(); } catch (error) { console.log(error.name, error.message); }
      console.log(JSON.stringify(port.stats()));
      port.close();`;
      const run = spawnSync(
        'sh',
        ['-c', 'ulimit -f 20; exec "$0" --input-type=module -e "$1" "$2"', process.execPath, script, output],
        { encoding: 'utf8' },
      );
      const [message, stats] = run.stdout.split('\n');
      assert.match(message, /^PortError .*: cannot write: the file would grow beyond the allowed size/, run.stderr);
      assert.equal((JSON.parse(stats) as Record<string, number>)['framesWritten'], 10);
      assert.equal((JSON.parse(stats) as Record<string, number>)['unwritten'], 5);
    },
  );
});

describe('after close', () => {
  it('rings read as empty, syncs do nothing, closing again is harmless', () => {
    const ports = openPorts([`pcap:${join(CAPTURES, 'afs.pcap')}`, `pcap:@out=${scratchPath()}`]);
    const [from, to] = ports;
    from.rxsync();
    const ring = from.rx[0];
    assert.equal(ring.space, 601);
    from.close();
    assert.equal(ring.space, 0);
    from.rxsync();
    assert.equal(ring.space, 0);
    to.close();
    to.txsync();
    assert.deepEqual([ring.space, to.tx[0].space, to.txPending()], [0, 0, 0]);
    for (const port of ports) port.close();
  });
});
