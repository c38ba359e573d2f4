// The frame cursor: what it reads and writes, where headers lie, and that it stays inside its slot.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { MOREFRAG } from '../../lib/rings/abi.js';
import { bufferCount, Carver, ringBytes } from '../../lib/rings/memory.js';
import { Region } from '../../lib/rings/region.js';
import type { Ring } from '../../lib/rings/ring.js';
import { Frame, NONE } from '../../lib/programs/frame.js';
import { arp, ethernet, fragment6, icmp, icmp6, ipv4, ipv6, madeFrames, OPTIONS6, tcp, udp } from './frames.js';

function on(bytes: readonly number[]): Frame {
  return new Frame().moveTo(Uint8Array.from(bytes), 0, bytes.length);
}

function makeRing(slots: number, bufSize: number, offsetMask = 0): Ring {
  const plan = { tx: [], rx: [slots] };
  const base = ringBytes([plan]);
  const count = bufferCount([plan]);
  const region = new Region('test:frame', new ArrayBuffer(base + count * bufSize));
  return new Carver(region, 0, base, bufSize, count, offsetMask).carve(plan).rx[0];
}

const DATA = [1, 2, 3, 4, 5, 6, 7, 8];
const V6 = { from: 'fd00::1', to: 'fd00::2' };

describe('numbers in a frame', () => {
  it('are big-endian and unsigned', () => {
    const frame = on([0xfe, 0xdc, 0xba, 0x98, 0x76]);
    assert.deepEqual([frame.u8(0), frame.u16(1), frame.u32(1)], [0xfe, 0xdcba, 0xdcba9876]);
  });

  it('outside read as -1, and writing there changes nothing', () => {
    const memory = new Uint8Array(16).fill(0xaa);
    const frame = new Frame().moveTo(memory, 4, 8);
    for (const at of [-1, 8, NONE, -(2 ** 31), 2 ** 31])
      assert.deepEqual([frame.u8(at), frame.u16(at), frame.u32(at)], [-1, -1, -1]);
    assert.deepEqual(
      [frame.u8(7), frame.u16(7), frame.u32(5), frame.u16(6), frame.u32(4)],
      [0xaa, -1, -1, 0xaaaa, 0xaaaaaaaa],
    );
    for (const at of [-1, 8, NONE])
      assert.deepEqual([frame.setU8(at, 0), frame.setU16(at, 0), frame.setU32(at, 0)], [false, false, false]);
    assert.deepEqual([frame.setU16(7, 0), frame.setU32(5, 0)], [false, false]);
    assert.ok(memory.every((byte) => byte === 0xaa));
  });

  it('are written where they are read', () => {
    const frame = on(new Array<number>(8).fill(0));
    assert.ok(frame.setU32(0, 0x89abcdef) && frame.setU16(4, 0x1234) && frame.setU8(7, 0xff));
    assert.deepEqual([...frame.view()], [0x89, 0xab, 0xcd, 0xef, 0x12, 0x34, 0, 0xff]);
  });
});

describe('headers are found', () => {
  it('of UDP over IPv4', () => {
    const frame = on(ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53, DATA))));
    assert.deepEqual([frame.etherType, frame.tags, frame.vlan, frame.network], [0x0800, 0, -1, 14]);
    assert.deepEqual([frame.ipv4, frame.ipv6, frame.arp], [14, NONE, NONE]);
    assert.deepEqual([frame.protocol, frame.transport, frame.udp, frame.tcp, frame.icmp], [17, 34, 34, NONE, NONE]);
    assert.equal(frame.u16(frame.udp + 2), 53);
    assert.equal(frame.u16(frame.tcp + 2), -1);
  });

  it('behind two VLAN tags and IPv4 options', () => {
    const packet = ipv4({ protocol: 6, options: [1, 1, 1, 0] }, tcp(80, 40000, 2));
    const frame = on(
      ethernet(0x0800, packet, [
        [0x88a8, 0x6064],
        [0x8100, 5],
      ]),
    );
    assert.deepEqual([frame.tags, frame.vlan, frame.network, frame.tcp], [2, 100, 22, 46]);
  });

  it('behind IPv6 extension headers', () => {
    const headers: [number, number[]][] = [
      [0, OPTIONS6],
      [60, OPTIONS6],
      [44, fragment6(0, true)],
    ];
    const frame = on(ethernet(0x86dd, ipv6({ protocol: 17 }, udp(1053, 53, DATA, V6), headers)));
    assert.deepEqual([frame.ipv6, frame.protocol, frame.fragment, frame.udp], [14, 17, true, 14 + 40 + 24]);
  });

  it('behind an IPv6 authentication header, whose length counts four bytes', () => {
    const ah = [0, 4, ...new Array<number>(22).fill(0)]; // (4 + 2) × 4 = 24 bytes (RFC 4302, 2.2)
    const frame = on(ethernet(0x86dd, ipv6({ protocol: 6 }, tcp(1, 2, 2, [], V6), [[51, ah]])));
    assert.equal(frame.tcp, 14 + 40 + 24);
  });

  it('of fragments but the first nowhere', () => {
    const later = on(ethernet(0x0800, ipv4({ protocol: 17, fragment: 0x2003 }, DATA)));
    assert.deepEqual([later.protocol, later.fragment, later.udp], [17, true, NONE]);
    const first = on(ethernet(0x0800, ipv4({ protocol: 17, fragment: 0x2000 }, udp(1, 2, DATA))));
    assert.deepEqual([first.fragment, first.udp], [true, 34]);
    const sixth = on(ethernet(0x86dd, ipv6({ protocol: 17 }, DATA, [[44, fragment6(3, false)]])));
    assert.deepEqual([sixth.protocol, sixth.fragment, sixth.udp], [17, true, NONE]);
  });

  it('of ARP, ICMP and ICMPv6', () => {
    assert.equal(on(ethernet(0x0806, arp(1, '10.0.0.1', '10.0.0.2'))).arp, 14);
    assert.equal(on(ethernet(0x0800, ipv4({ protocol: 1 }, icmp(8, 0)))).icmp, 34);
    assert.equal(on(ethernet(0x86dd, ipv6({ protocol: 58 }, icmp6(128, DATA)))).icmp6, 54);
  });

  it('again after the frame was written to', () => {
    const frame = on(ethernet(0x0800, ipv4({ protocol: 17 }, udp(1, 2, DATA))));
    assert.equal(frame.udp, 34);
    frame.setU8(23, 6);
    assert.deepEqual([frame.udp, frame.tcp], [NONE, 34]);
  });

  it('inside the frame or nowhere, whatever its bytes', () => {
    const any = fc.oneof(
      fc.uint8Array({ maxLength: 120 }),
      fc.tuple(fc.constantFrom(...madeFrames('whole')), fc.nat(100), fc.nat(255)).map(([bytes, at, value]) => {
        const changed = Uint8Array.from(bytes);
        changed[at % bytes.length] = value;
        return changed;
      }),
    );
    fc.assert(
      fc.property(any, (bytes) => {
        const frame = new Frame().moveTo(bytes, 0, bytes.length);
        const { arp, ipv4, ipv6, tcp, udp, icmp, icmp6, transport } = frame;
        for (const at of [ipv4, ipv6, tcp, udp, icmp, icmp6, transport]) assert.ok(at === NONE || at < bytes.length);
        assert.ok(arp === NONE || arp <= bytes.length);
      }),
      { numRuns: 3000 },
    );
  });
});

describe('a frame in a slot', () => {
  it('is read from the ring; of several slots the first, with the length of all', () => {
    const ring = makeRing(4, 64);
    ring.i32[ring.base + 7] = 3; // tail
    ring.setLenFlags(1, 60, MOREFRAG);
    ring.setLenFlags(2, 10);
    ring.u8.fill(7, ring.dataStart(1), ring.dataStart(1) + 60);
    const frame = new Frame();
    assert.ok(frame.load(ring, 1));
    assert.deepEqual([frame.size, frame.length, frame.u8(59), frame.u8(60), frame.tailroom], [60, 70, 7, -1, 0]);
  });

  it('with a corrupt index or length is empty', () => {
    const ring = makeRing(4, 64);
    const frame = new Frame();
    ring.setLenFlags(1, 65);
    assert.deepEqual([frame.load(ring, 1), frame.size, frame.u8(0)], [false, 0, -1]);
    ring.i32[ring.slotWord(2)] = 99;
    ring.setLenFlags(2, 60);
    assert.deepEqual([frame.load(ring, 2), frame.size], [false, 0]);
  });

  it('grows and shrinks at its end where data begins with the buffer', () => {
    const ring = makeRing(4, 64);
    ring.setLenFlags(1, 60);
    const before = Array.from({ length: 60 }, (_, i) => i);
    ring.u8.set(before, ring.dataStart(1));
    const frame = new Frame();
    frame.load(ring, 1);
    assert.equal(frame.insert(12, 5), false, 'one byte more than the buffer has room for');
    assert.ok(frame.insert(12, 4) && frame.setU32(12, 0x81000005));
    frame.store(ring, 1);
    assert.deepEqual([...ring.data(1)], [...before.slice(0, 12), 0x81, 0, 0, 5, ...before.slice(12)]);
    frame.load(ring, 1);
    assert.ok(frame.remove(12, 4));
    frame.store(ring, 1);
    assert.deepEqual([...ring.data(1)], before);
  });

  it('grows and shrinks at its front where data can begin anywhere', () => {
    const ring = makeRing(4, 64, 0xff);
    const before = Array.from({ length: 60 }, (_, i) => i);
    ring.setLenFlags(1, 60);
    ring.i32[ring.slotWord(1) + 2] = 4;
    ring.u8.set(before, ring.dataStart(1));
    const frame = new Frame();
    frame.load(ring, 1);
    assert.ok(frame.insert(12, 4) && frame.setU32(12, 0x81000005));
    frame.store(ring, 1);
    assert.equal(ring.offset(1), 0);
    assert.deepEqual([...ring.data(1)], [...before.slice(0, 12), 0x81, 0, 0, 5, ...before.slice(12)]);
    frame.load(ring, 1);
    assert.equal(frame.remove(0, 64), false, 'nothing would be left');
    assert.equal(frame.insert(61, 1) || frame.insert(0, 1), false, 'no room is left');
  });
});
