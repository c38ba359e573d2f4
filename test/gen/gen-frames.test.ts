// The generator's frames: their bytes, checked by arithmetic of their own that shares nothing with the generator's.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { LEN_MASK, MOREFRAG } from '../../lib/rings/abi.js';
import { COUNTERS } from '../../lib/forward/counters.js';
import { UsageError } from '../../lib/text/errors.js';
import { checksum, fold, replaceWord, sumBytes, udpChecksum } from '../../lib/rings/checksum.js';
import { emitterFor } from '../../lib/gen/emit.js';
import { leastSizes, type Flow } from '../../lib/gen/headers.js';
import { Quota, quotaFor, UNLIMITED } from '../../lib/gen/quota.js';
import { Receiver } from '../../lib/gen/receiver.js';
import { parseEndpoint, parseMacRange } from '../../lib/gen/range.js';
import { REQUEST } from '../../lib/gen/tag.js';
import { mergeReports } from '../../lib/gen/merge.js';
import { makeTemplates } from '../../lib/gen/templates.js';
import { Memory } from '../../lib/rings/memory.js';
import type { Port } from '../../lib/ports/port.js';
import type { Ring } from '../../lib/rings/ring.js';

/** One's complement sum of big-endian words, bit by bit as RFC 1071 words it: add, and add the carry out at once. */
function onesSum(bytes: Uint8Array): number {
  let sum = 0;
  for (let i = 0; i < bytes.length; i += 2) {
    sum += (bytes[i] << 8) | (bytes[i + 1] ?? 0);
    if (sum > 0xffff) sum -= 0xffff;
  }
  return sum;
}

interface Parsed {
  vlans: number[];
  family: 4 | 6;
  source: bigint;
  destination: bigint;
  sourceMac: bigint;
  destinationMac: bigint;
  sport: number;
  dport: number;
  payload: Uint8Array;
}

const big = (bytes: Uint8Array): bigint => bytes.reduce((value, byte) => value * 256n + BigInt(byte), 0n);

/** Takes a frame apart; fails where a length or a checksum is wrong. */
function parse(frame: Uint8Array): Parsed {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.length);
  const vlans: number[] = [];
  let at = 12;
  while ([0x8100, 0x88a8].includes(view.getUint16(at))) {
    vlans.push(view.getUint16(at + 2));
    at += 4;
  }
  const type = view.getUint16(at);
  at += 2;
  const family = type === 0x0800 ? 4 : 6;
  let addresses: Uint8Array;
  let end: number;
  const ip = at;
  if (family === 4) {
    assert.equal(view.getUint8(ip), 0x45);
    assert.equal(view.getUint8(ip + 9), 17);
    assert.equal(onesSum(frame.subarray(ip, ip + 20)), 0xffff, 'IPv4 checksum');
    end = ip + view.getUint16(ip + 2);
    addresses = frame.subarray(ip + 12, ip + 20);
    at = ip + 20;
  } else {
    assert.equal(type, 0x86dd);
    assert.equal(view.getUint8(ip) >> 4, 6);
    assert.equal(view.getUint8(ip + 6), 17);
    end = ip + 40 + view.getUint16(ip + 4);
    addresses = frame.subarray(ip + 8, ip + 40);
    at = ip + 40;
  }
  assert.equal(end, frame.length, 'the frame ends with the datagram');
  const length = view.getUint16(at + 4);
  assert.equal(at + length, end, 'UDP length');
  assert.notEqual(view.getUint16(at + 6), 0, 'a UDP checksum is there');
  const pseudo = Uint8Array.from([...addresses, 0, 17, length >> 8, length & 0xff, ...frame.subarray(at, end)]);
  assert.equal(onesSum(pseudo), 0xffff, 'UDP checksum');
  const half = addresses.length / 2;
  return {
    ...{ vlans, family },
    source: big(addresses.subarray(0, half)),
    destination: big(addresses.subarray(half)),
    sourceMac: big(frame.subarray(6, 12)),
    destinationMac: big(frame.subarray(0, 6)),
    sport: view.getUint16(at),
    dport: view.getUint16(at + 2),
    payload: frame.subarray(at + 8, end),
  };
}

/** The frames in slots [from, head) of a tx ring, put together. */
function framesOf(ring: Ring, from: number): Uint8Array[] {
  const frames: Uint8Array[] = [];
  let pieces: Uint8Array[] = [];
  for (let i = from; i !== ring.head; i = ring.after(i)) {
    pieces.push(ring.data(i).slice());
    if ((ring.i32[ring.slotWord(i) + 1] & MOREFRAG) !== 0) continue;
    frames.push(Uint8Array.from(pieces.flatMap((piece) => [...piece])));
    pieces = [];
  }
  assert.equal(pieces.length, 0);
  return frames;
}

/** Gives all slots of a tx ring back, as a port does whose frames have left. */
function release(ring: Ring): void {
  ring.i32[ring.base + 7] = ring.after(ring.head, ring.numSlots - 1);
}

function flow(text: { s?: string; d?: string; S?: string; D?: string; vlans?: number[] } = {}): Flow {
  return {
    sourceMac: parseMacRange(text.S ?? '02:00:00:00:00:01'),
    destinationMac: parseMacRange(text.D ?? 'ff:ff:ff:ff:ff:ff'),
    vlans: text.vlans ?? [],
    source: parseEndpoint(text.s ?? '10.0.0.1', 1234),
    destination: parseEndpoint(text.d ?? '10.1.0.1', 1234),
  };
}

function memory(slots: number, bufSize: number): { ring: Ring; close: () => void } {
  const plan = { tx: [slots], rx: [] };
  const memory = new Memory({ plans: [plan], bufSize });
  const ring = memory.carve(plan).tx[0];
  return {
    ring,
    close() {
      memory.release();
      memory.release();
    },
  };
}

describe('checksums', () => {
  it('are those of RFC 1071: its own example', () => {
    // 0001 f203 f4f5 f6f7 add up to ddf2 (RFC 1071, 3); low byte first that is f2dd.
    const bytes = Uint8Array.from([0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]);
    assert.equal(fold(sumBytes(bytes, 0, 8)), 0xf2dd);
    assert.equal(checksum(sumBytes(bytes, 0, 8)), 0xf2dd ^ 0xffff);
  });

  it('agree with another way of adding for any bytes, odd lengths too', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 200 }), (bytes) => {
        const other = onesSum(bytes);
        const ours = fold(sumBytes(bytes, 0, bytes.length));
        // 0 and ffff are the same number in one's complement.
        assert.equal((((ours & 0xff) << 8) | (ours >> 8)) % 0xffff, other % 0xffff);
      }),
    );
  });

  it('brought up to date word by word (RFC 1624) are those of the changed bytes', () => {
    fc.assert(
      fc.property(
        fc.uint8Array({ minLength: 20, maxLength: 60 }).filter((bytes) => bytes.some((byte) => byte !== 0)),
        fc.nat(9),
        fc.integer({ min: 1, max: 0xffff }),
        (bytes, word, value) => {
          const before = checksum(sumBytes(bytes, 0, bytes.length));
          const old = bytes[2 * word] | (bytes[2 * word + 1] << 8);
          bytes[2 * word] = value & 0xff;
          bytes[2 * word + 1] = value >> 8;
          assert.equal(replaceWord(before, old, value), checksum(sumBytes(bytes, 0, bytes.length)));
        },
      ),
    );
  });

  it("of RFC 1624's example: dd2f, 5555 becomes 3285, gives 0000", () => {
    assert.equal(replaceWord(0xdd2f, 0x5555, 0x3285), 0);
  });

  it('of UDP are never 0, which would say that there is none', () => {
    assert.equal(udpChecksum(0xffff), 0xffff);
    assert.equal(udpChecksum(0), 0xffff);
    assert.equal(udpChecksum(0xfffe), 1);
  });
});

describe('ranges', () => {
  it('of IPv4 addresses with ports', () => {
    const { family, address, port } = parseEndpoint('10.0.0.1:2000-10.0.1.255:2050', 1);
    assert.equal(family, 4);
    assert.deepEqual([...address.bytes], [10, 0, 0, 1]);
    assert.deepEqual(address.low, { first: 0x0a000001, last: 0x0a0001ff });
    assert.deepEqual(port, { first: 2000, last: 2050 });
  });

  it('without ports take the default, with one the same for all', () => {
    assert.deepEqual(parseEndpoint('10.0.0.1', 7).port, { first: 7, last: 7 });
    assert.deepEqual(parseEndpoint('10.0.0.1:9-10.0.0.2', 7).port, { first: 9, last: 9 });
    assert.deepEqual(parseEndpoint('fd00::1', 7).port, { first: 7, last: 7 });
  });

  it('of IPv6 addresses, in any of their forms', () => {
    const groups = fc.array(fc.integer({ min: 0, max: 0xffff }), { minLength: 8, maxLength: 8 });
    fc.assert(
      fc.property(groups, fc.nat(7), fc.nat(8), fc.boolean(), (values, from, length, brackets) => {
        // Some run of groups becomes zero and is written as '::'.
        const to = Math.min(8, from + length);
        const shown = values.map((value, i) => (i >= from && i < to ? 0 : value));
        const hex = shown.map((value) => value.toString(16));
        const text = to > from ? `${hex.slice(0, from).join(':')}::${hex.slice(to).join(':')}` : hex.join(':');
        const { address } = parseEndpoint(brackets ? `[${text}]:80` : text, 80);
        assert.deepEqual(
          [...address.bytes],
          shown.flatMap((value) => [value >> 8, value & 0xff]),
        );
      }),
    );
  });

  it('of IPv6 addresses with ports in brackets, and with an IPv4 address inside', () => {
    const { address, port } = parseEndpoint('[fd00::1]:2000-[fd00::ff]:2050', 1);
    assert.deepEqual(address.low, { first: 1, last: 255 });
    assert.deepEqual(port, { first: 2000, last: 2050 });
    assert.deepEqual([...parseEndpoint('::ffff:192.0.2.1', 1).address.bytes].slice(-6), [255, 255, 192, 0, 2, 1]);
  });

  it('of MAC addresses', () => {
    const { bytes, low } = parseMacRange('02:00:00:00:00:01-02:00:00:00:01:ff');
    assert.deepEqual([...bytes], [2, 0, 0, 0, 0, 1]);
    assert.deepEqual(low, { first: 1, last: 0x1ff });
  });

  for (const [text, cause] of [
    ['10.0.0.9-10.0.0.1', /ends before it begins/],
    ['10.0.0.1:9-10.0.0.2:8', /ports end before/],
    ['10.0.0.1-fd00::1', /one IP version to the other/],
    ['fd00::1-fd01::1', /differ before their last four bytes/],
    ['10.0.0', /no IPv4 or IPv6 address/],
    ['[10.0.0.1]:80', /no IPv4 or IPv6 address/],
    ['fe80::1%eth0', /no IPv4 or IPv6 address/],
    ['10.0.0.1:70000', /UDP port/],
    ['10.0.0.1-10.0.0.2-10.0.0.3', /more than two ends/],
    ['', /no IPv4 or IPv6 address/],
  ] as const) {
    it(`'${text}' is refused`, () => {
      assert.throws(
        () => parseEndpoint(text, 1),
        (error: Error) => error instanceof UsageError && cause.test(error.message),
      );
    });
  }

  it("MAC addresses that are none, or whose range changes the maker's bytes, are refused", () => {
    for (const text of ['02:00:00:00:00', '02-00', '02:00:00:00:00:0g', '02:00:00:00:00:01-03:00:00:00:00:01'])
      assert.throws(() => parseMacRange(text), UsageError);
  });
});

describe('frames', () => {
  const sizeOf = fc.oneof(fc.integer({ min: 64, max: 200 }), fc.integer({ min: 64, max: 9018 }));
  const cases = fc.record({
    v6: fc.boolean(),
    vlans: fc.array(fc.integer({ min: 0, max: 4094 }), { maxLength: 2 }),
    sizes: fc.array(sizeOf, { minLength: 1, maxLength: 6 }),
    randomPayload: fc.boolean(),
    plain: fc.boolean(),
    ranges: fc.boolean(),
    stream: fc.integer({ min: 0, max: 0xffff }),
    time: fc.integer({ min: 0, max: 2 ** 50 }),
    bufSize: fc.constantFrom(256, 2048),
  });

  it('of any kind are whole and have right checksums, also in buffers that held others before', () => {
    fc.assert(
      fc.property(cases, ({ v6, vlans, sizes: some, randomPayload, plain, ranges, stream, time, bufSize }) => {
        const ends = v6
          ? {
              s: ranges ? '[fd00::fffe]:65534-[fd00::1:1]:65535' : 'fd00::1',
              d: ranges ? 'fd00::1-fd00::3' : 'fd00::2',
            }
          : {
              s: ranges ? '10.0.255.254:65534-10.1.0.1:65535' : '10.0.0.1',
              d: ranges ? '10.1.0.1-10.1.0.3' : '10.1.0.1',
            };
        const f = flow({ ...ends, vlans });
        const least = leastSizes(f);
        const sizes = some.map((size) => Math.max(size, least.plain));
        const { ring, close } = memory(64, bufSize);
        const counters = new Float64Array(COUNTERS);
        const emit = emitterFor(ring, f, makeTemplates(f, { sizes, randomPayload, plain }), stream, counters);
        const high = Math.floor(time / 2 ** 32);
        let sequence = 0;
        let place = 0;
        for (let lap = 0; lap < 6; lap++) {
          const from = ring.head;
          const sent = emit(17, high, time % 2 ** 32);
          const frames = framesOf(ring, from);
          assert.equal(frames.length, sent);
          assert.ok(sent > 0);
          for (const frame of frames) {
            const size = sizes[place++ % sizes.length];
            assert.equal(frame.length, size - 4);
            const { payload, ...parsed } = parse(frame);
            assert.deepEqual(parsed.vlans, vlans);
            assert.equal(parsed.family, v6 ? 6 : 4);
            if (plain || size < least.tagged) continue;
            const view = new DataView(payload.buffer, payload.byteOffset);
            assert.equal(view.getUint16(0), stream);
            assert.equal(view.getUint32(2), 0x6e6d623f);
            assert.equal(view.getUint32(6), ++sequence);
            assert.equal(view.getBigUint64(10), BigInt(time));
          }
          release(ring);
        }
        close();
      }),
      { numRuns: 150 },
    );
  });

  it('step through their ranges as an odometer: source port, source address, destination port, destination address', () => {
    const f = flow({
      s: '10.0.0.255:65535-10.0.1.1:65535',
      d: '10.1.0.1:7-10.1.0.2:8',
      S: '02:00:00:00:00:fe-02:00:00:00:01:00',
      D: '02:00:00:01:00:00-02:00:00:01:00:01',
    });
    const { ring, close } = memory(64, 2048);
    const templates = makeTemplates(f, { sizes: [64], randomPayload: false, plain: false });
    emitterFor(ring, f, templates, 0, new Float64Array(COUNTERS))(30, 0, 0);
    const frames = framesOf(ring, 0).map(parse);
    assert.equal(frames.length, 30);
    frames.forEach((frame, k) => {
      assert.equal(frame.sport, 65535);
      assert.equal(frame.source, 0x0a0000ffn + BigInt(k % 3));
      assert.equal(frame.dport, 7 + (Math.floor(k / 3) % 2));
      assert.equal(frame.destination, 0x0a010001n + BigInt(Math.floor(k / 6) % 2));
      assert.equal(frame.sourceMac, 0x0200000000fen + BigInt(k % 3));
      assert.equal(frame.destinationMac, 0x020000010000n + BigInt(k % 2));
    });
    close();
  });

  it('take as many slots as they need, and none where the rest of the ring is too short', () => {
    const f = flow();
    const { ring, close } = memory(8, 2048);
    const counters = new Float64Array(COUNTERS);
    const emit = emitterFor(
      ring,
      f,
      makeTemplates(f, { sizes: [9018], randomPayload: false, plain: false }),
      0,
      counters,
    );
    assert.equal(emit(5, 0, 0), 1); // 9014 bytes take five slots; seven are free
    assert.equal(ring.head, 5);
    const lengths = [0, 1, 2, 3, 4].map((i) => ring.i32[ring.slotWord(i) + 1] & LEN_MASK);
    assert.deepEqual(lengths, [2048, 2048, 2048, 2048, 822]);
    assert.equal(emit(5, 0, 0), 0);
    close();
  });

  it('pass over a slot whose buffer is not of the region', () => {
    const f = flow();
    const { ring, close } = memory(8, 2048);
    ring.i32[ring.slotWord(1)] = 1; // reserved
    const counters = new Float64Array(COUNTERS);
    const emit = emitterFor(
      ring,
      f,
      makeTemplates(f, { sizes: [64], randomPayload: false, plain: false }),
      0,
      counters,
    );
    assert.equal(emit(3, 0, 0), 3);
    assert.deepEqual([ring.len(0), ring.len(1), ring.len(2), ring.len(3)], [60, 0, 60, 60]);
    close();
  });

  it('too small for their headers are refused, with the least size', () => {
    const f = flow({ s: 'fd00::1', d: 'fd00::2' });
    assert.deepEqual(leastSizes(f), { plain: 66, tagged: 84 });
    assert.deepEqual(leastSizes(flow()), { plain: 46, tagged: 64 });
    assert.deepEqual(leastSizes(flow({ vlans: [1] })), { plain: 50, tagged: 68 });
    assert.throws(
      () => makeTemplates(f, { sizes: [64], randomPayload: false, plain: false }),
      (error: Error) => error instanceof UsageError && /64 is too small.*IPv6.*66 bytes/.test(error.message),
    );
  });
});

describe('receiving', () => {
  /** What a receiver says of frames of one stream that arrive in this order; numbers count from 1. */
  function receive(order: readonly number[], quota = UNLIMITED): ReturnType<Receiver['report']> {
    const plan = { tx: [256], rx: [256] };
    const memory = new Memory({ plans: [plan], bufSize: 2048 });
    const { tx, rx } = memory.carve(plan);
    const f = flow({ vlans: [5] });
    const last = Math.max(...order);
    emitterFor(
      tx[0],
      f,
      makeTemplates(f, { sizes: [80], randomPayload: false, plain: false }),
      9,
      new Float64Array(16),
    )(last, 0, 0);
    order.forEach((number, i) => {
      rx[0].setLenFlags(i, 76);
      rx[0].u8.set(tx[0].data(number - 1), rx[0].dataStart(i));
    });
    rx[0].i32[rx[0].base + 7] = order.length;
    const receiver = new Receiver({ rx, rxsync: () => undefined } as unknown as Port, REQUEST);
    receiver.receive(quota);
    const report = receiver.report();
    memory.release();
    memory.release();
    return report;
  }
  const told = (order: readonly number[]): number[] => {
    const { tagged, lost, duplicates, reordered, before } = receive(order);
    return [tagged, lost, duplicates, reordered, before];
  };

  it('in order: nothing to tell', () => {
    assert.deepEqual(told([1, 2, 3, 4]), [4, 0, 0, 0, 0]);
  });
  it('loss, duplication and reordering, each by itself', () => {
    assert.deepEqual(told([1, 2, 5, 6]), [4, 2, 0, 0, 0]);
    assert.deepEqual(told([1, 2, 2, 3]), [4, 0, 1, 0, 0]);
    assert.deepEqual(told([1, 3, 2, 4]), [4, 0, 0, 1, 0]);
  });
  it('what was sent before the first that is seen is no loss; should it come late, it is reordered', () => {
    assert.deepEqual(told([4, 5, 6]), [3, 0, 0, 0, 3]);
    assert.deepEqual(told([2, 1, 3]), [3, 0, 0, 1, 0]);
    assert.deepEqual(told([6, 3, 7, 4]), [4, 1, 0, 2, 2]);
  });
  const orders = fc.uniqueArray(fc.integer({ min: 1, max: 200 }), { minLength: 1, maxLength: 100 });
  const missing = (order: readonly number[]): number => Math.max(...order) - Math.min(...order) + 1 - order.length;

  it('in any order and with any loss: the sums are right', () => {
    fc.assert(
      fc.property(orders, (order) => {
        // RFC 4737, 3.3: a frame is reordered when a later one has arrived before it.
        const late = order.filter((number, i) => order.slice(0, i).some((earlier) => earlier > number));
        assert.deepEqual(told(order), [order.length, missing(order), 0, late.length, Math.min(...order) - 1]);
      }),
      { numRuns: 60 },
    );
  });
  it('a stream spread over several threads, in any way: together they tell what one would have', () => {
    const parts = fc.array(fc.integer({ min: 0, max: 2 }), { minLength: 100, maxLength: 100 });
    fc.assert(
      fc.property(orders, parts, fc.boolean(), (order, threads, again) => {
        const shares = [0, 1, 2]
          .map((k) => order.filter((_, i) => threads[i] === k))
          .filter(({ length }) => length > 0);
        // One frame more than once: to another thread, which cannot know it.
        if (again && shares.length > 1) shares[1] = [...new Set([...shares[1], shares[0][0]])];
        const copies = shares.flat().length - order.length;
        const reports = shares.map((share) => ({ ns: 1, stats: {}, userNs: 0, systemNs: 0, received: receive(share) }));
        const { tagged, streams, lost, duplicates, before, latency, otherClock, old } = mergeReports(reports).received!;
        assert.deepEqual([tagged, streams, before], [order.length + copies, 1, Math.min(...order) - 1]);
        // A copy that comes instead of a frame that is missing cannot be told from it, by number of frames alone.
        const balance = missing(order) - copies;
        assert.deepEqual([lost, duplicates], [Math.max(0, balance), Math.max(0, -balance)]);
        assert.equal(latency.count + otherClock + old, tagged);
      }),
      { numRuns: 60 },
    );
  });
  const seen = (first: number, next: number, lost: number) => ({ stream: 7, first: first | 0, next: next | 0, lost });
  const mergeSeen = (...states: ReturnType<typeof seen>[]) =>
    mergeReports(
      states.map((state) => ({
        ...{ ns: 1, stats: {}, userNs: 0, systemNs: 0 },
        received: { ...receive([1]), seen: [state] },
      })),
    ).received!;
  it('numbers wrap with 32 bits while a stream is spread over threads', () => {
    // Of 0xfffffff0 … 0x10: 32 numbers, 5 at one thread, 20 at the other.
    assert.equal(
      mergeSeen(seen(0xfffffff0, 0x100000008, 24 - 5), seen(0xfffffff8, 0x100000010, 24 - 20)).lost,
      32 - 25,
    );
  });
  it('a stream that leaves a thread for good, or comes to one late, by more than 2^31 frames', () => {
    const parts = [seen(1, 1001, 0), seen(1001, 3_000_000_001, 7), seen(3_000_000_001, 3_000_000_101, 4)];
    for (const order of [parts, parts.toReversed()]) {
      const { lost, duplicates, before } = mergeSeen(...order);
      assert.deepEqual([lost, duplicates, before], [11, 0, 0]);
    }
  });
  it('takes no more than it was asked to', () => {
    const quota = new Quota(2);
    assert.equal(receive([1, 2, 3, 4], quota).frames, 2);
    assert.equal(quota.spent, true);
  });
});

describe('a quota', () => {
  it('grants what is left to whoever asks, and takes back what was not used', () => {
    const shared = quotaFor(10);
    const [one, other] = [new Quota(10, shared), new Quota(10, shared)];
    assert.equal(one.claim(8), 8);
    assert.equal(other.claim(8), 2);
    assert.equal(one.claim(1), 0);
    one.settle(8, 3);
    assert.deepEqual([one.spent, other.claim(Infinity)], [false, 5]);
    other.settle(2, 2);
    other.settle(5, 5);
    assert.deepEqual([one.spent, other.spent, one.claim(1)], [true, true, 0]);
  });
  it('of no frames is spent from the start', () => {
    const quota = new Quota(0);
    assert.deepEqual([quota.spent, quota.claim(1)], [true, 0]);
  });
  it('without a limit grants everything and never ends', () => {
    UNLIMITED.settle(UNLIMITED.claim(1e9), 1e9);
    assert.deepEqual([UNLIMITED.claim(7), UNLIMITED.spent], [7, false]);
  });
  it('goes beyond 32 bits', () => {
    const quota = new Quota(2 ** 40);
    quota.settle(quota.claim(2 ** 39), 2 ** 39);
    assert.equal(quota.claim(2 ** 40), 2 ** 39);
  });
});
