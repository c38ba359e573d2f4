// Rings and memory: the layout another program can read, and the port's check of what the user wrote.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { BUF_CHANGED, MOREFRAG } from '../../lib/rings/abi.js';
import { Kring } from '../../lib/rings/kring.js';
import {
  bufferCount,
  Carver,
  Memory,
  ringBytes,
  type Carved,
  type MemoryPlan,
  type RingPlan,
} from '../../lib/rings/memory.js';
import { Region } from '../../lib/rings/region.js';
import { Ring } from '../../lib/rings/ring.js';

/** A ring of `slots` slots in memory of its own, without the shim. */
function makeRing(slots: number, direction: 'tx' | 'rx' = 'rx', bufSize = 64, offsetMask = 0): Ring {
  const plan: RingPlan = direction === 'tx' ? { tx: [slots], rx: [] } : { tx: [], rx: [slots] };
  const base = ringBytes([plan]);
  const bytes = base + bufferCount([plan]) * bufSize;
  const carver = new Carver(
    new Region('test:ring', new ArrayBuffer(bytes)),
    0,
    base,
    bufSize,
    bufferCount([plan]),
    offsetMask,
  );
  return carver.carve(plan)[direction][0];
}

const HEAD = 5;
const CUR = 6;
const TAIL = 7;
const set = (ring: Ring, word: number, value: number) => (ring.i32[ring.base + word] = value);

/** Slots from `from` up to `to`, found by walking. */
function walk(from: number, to: number, slots: number): number[] {
  const list = [];
  for (let i = from; i !== to; i = (i + 1) % slots) list.push(i);
  return list;
}

describe('ring arithmetic', () => {
  it('counts and walks every span of every small ring', () => {
    for (let slots = 2; slots <= 9; slots++) {
      const ring = makeRing(slots);
      for (let head = 0; head < slots; head++)
        for (let tail = 0; tail < slots; tail++) {
          ring.moveTo(head);
          set(ring, TAIL, tail);
          const span = walk(head, tail, slots);
          assert.equal(ring.space, span.length, `${slots} slots, head ${head}, tail ${tail}`);
          for (let n = 0; n <= span.length; n++) {
            ring.moveTo(head);
            assert.equal(ring.after(head, n), n < span.length ? span[n] : tail);
            ring.advance(n);
            assert.deepEqual([ring.head, ring.cur], [ring.after(head, n), ring.after(head, n)]);
            assert.equal(ring.space, span.length - n);
          }
        }
    }
  });

  it('takes a head or tail outside the ring for an empty ring', () => {
    const wild = [-1, 8, 9, 2 ** 31 - 1, -(2 ** 31)];
    for (const bad of wild) {
      const ring = makeRing(8);
      set(ring, TAIL, bad);
      assert.equal(ring.space, 0, `tail ${bad}`);
      set(ring, TAIL, 5);
      set(ring, HEAD, bad);
      assert.equal(ring.space, 0, `head ${bad}`);
    }
  });

  it('reads slots where they lie', () => {
    const ring = makeRing(4, 'tx', 128, 0x3f);
    // Slot 2 of the ring: 64 header words, then 4 words a slot.
    const at = ring.base + 64 + 2 * 4;
    ring.i32[at] = 3;
    ring.i32[at + 1] = 100 | MOREFRAG | BUF_CHANGED;
    ring.i32[at + 2] = 0x40 | 0x1c; // one bit outside the mask
    assert.deepEqual(
      [ring.bufIdx(2), ring.len(2), ring.slotFlags(2), ring.offset(2)],
      [3, 100, MOREFRAG | BUF_CHANGED, 0x1c],
    );
    assert.equal(ring.dataStart(2), ring.bufBase + 3 * 128 + 0x1c);
    assert.equal(ring.slotValid(2), true);
    ring.setLenFlags(2, 101);
    assert.equal(ring.slotValid(2), false, 'one byte past its buffer');
    assert.equal(ring.data(2).length, 0);
    ring.setLenFlags(2, 0x12345, MOREFRAG);
    assert.deepEqual([ring.len(2), ring.slotFlags(2)], [0x2345, MOREFRAG]);
  });

  it('believes no buffer index, length or offset that leads outside', () => {
    const ring = makeRing(4, 'rx', 64, -1); // netmap's widest mask: all of ptr is the offset
    const limit = 2 + 4;
    assert.equal(ring.bufLimit, limit);
    const valid = (idx: number, len: number, offset: number): boolean => {
      ring.i32.set([idx, len, offset, 0], ring.slotWord(1));
      return ring.slotValid(1);
    };
    for (const idx of [-(2 ** 31), -1, 0, 1, limit, limit + 1, 2 ** 31 - 1]) assert.equal(valid(idx, 60, 0), false);
    for (const idx of [2, limit - 1]) assert.equal(valid(idx, 60, 0), true);
    assert.equal(valid(2, 64, 0), true);
    assert.equal(valid(2, 65, 0), false);
    assert.equal(valid(2, 65535, 0), false);
    assert.equal(valid(2, 60, 4), true);
    assert.equal(valid(2, 60, 5), false);
    for (const offset of [-1, -4, -(2 ** 31), 2 ** 31 - 1]) {
      assert.equal(valid(3, 60, offset), false, `offset ${offset}`);
      assert.equal(ring.data(1).length, 0);
    }
  });
});

describe('a ring outside its region', () => {
  const good = makeRing(8, 'rx', 64);
  const words = good.region.i32;

  /** The ring's region with one header word changed. */
  const changed = (word: number, value: number, base = good.base): (() => Ring) => {
    const copy = new Int32Array(words);
    copy[good.base + word] = value;
    return () => new Ring(new Region('test:changed', copy.buffer), base);
  };

  it('is refused, whatever word is wrong', () => {
    assert.doesNotThrow(changed(2, 8));
    const wrong: [string, () => Ring][] = [
      ['no slots', changed(2, 0)],
      ['one slot, of which none is ever the user’s', changed(2, 1)],
      ['negative slots', changed(2, -8)],
      ['slots beyond the region', changed(2, words.length / 4)],
      ['2^31 - 1 slots', changed(2, 2 ** 31 - 1)],
      ['no buffer size', changed(3, 0)],
      ['negative buffer size', changed(3, -64)],
      ['buffers larger than the region', changed(3, words.length * 4)],
      ['buffers before the region', changed(0, -(2 ** 31))],
      ['buffers beyond the region', changed(0, 2 ** 31 - 1)],
      ['buffers 4 GiB away', changed(1, 1)],
      ['a ring before the region', changed(2, 8, -64)],
      ['a ring at the end of the region', changed(2, 8, words.length - 8)],
      ['a ring beyond the region', changed(2, 8, words.length + 64)],
    ];
    for (const [what, make] of wrong)
      assert.throws(make, { name: 'RangeError', message: /region test:changed does not lie inside it/ }, what);
  });

  it('and any header at all gives a ring inside, or none', () => {
    const value = fc.oneof(fc.integer({ min: -300, max: 300 }), fc.integer());
    fc.assert(
      fc.property(
        fc.array(value, { minLength: 4, maxLength: 4 }),
        fc.integer({ min: -80, max: 700 }),
        (header, base) => {
          const region = new Region('test:any', new ArrayBuffer(2048));
          for (let i = 0; i < 4; i++) if (base + i >= 0 && base + i < 512) region.i32[base + i] = header[i];
          let ring;
          try {
            ring = new Ring(region, base);
          } catch (error) {
            assert.ok(error instanceof RangeError);
            return;
          }
          assert.ok(base >= 0 && base + 64 + ring.numSlots * 4 <= 512);
          const last = ring.bufBase + ring.bufLimit * ring.bufSize;
          assert.ok(ring.bufBase >= 0 && ring.bufLimit > 2 && last <= 2048);
        },
      ),
      { numRuns: 3000 },
    );
  });
});

describe('the port’s check of head and cur', () => {
  /** netmap's rule in other words: of the slots from hwcur, head comes no later than cur, cur no later than tail. */
  function allowed(slots: number, hwcur: number, hwtail: number, head: number, cur: number): boolean {
    const order = [...walk(hwcur, hwtail, slots), hwtail];
    const h = order.indexOf(head);
    const c = order.indexOf(cur);
    return h >= 0 && c >= h;
  }

  it('takes exactly hwcur ≤ head ≤ cur ≤ tail, at every wrap of every small ring', () => {
    const outside = [-1, -(2 ** 31), 2 ** 31 - 1];
    let taken = 0;
    let refused = 0;
    for (let slots = 2; slots <= 7; slots++)
      for (let hwcur = 0; hwcur < slots; hwcur++)
        for (let hwtail = 0; hwtail < slots; hwtail++) {
          const ring = makeRing(slots);
          const values = [...Array.from({ length: slots + 2 }, (_, i) => i), ...outside];
          for (const head of values)
            for (const cur of values) {
              ring.moveTo(hwcur);
              set(ring, TAIL, hwtail);
              const kring = new Kring(ring);
              set(ring, HEAD, head);
              set(ring, CUR, cur);
              set(ring, TAIL, 12345); // the user may scribble here; the port does not read it
              const result = kring.begin();
              if (allowed(slots, hwcur, hwtail, head, cur)) {
                taken++;
                assert.deepEqual([result, kring.reinits], [head, 0]);
                assert.deepEqual([ring.head, ring.cur], [head, cur], 'left as the user set them');
              } else {
                refused++;
                assert.deepEqual([result, kring.reinits], [hwcur, 1], `${slots}: ${hwcur}…${hwtail}, ${head}/${cur}`);
                assert.deepEqual([ring.head, ring.cur, ring.tail], [hwcur, hwcur, hwtail], 'put back');
              }
              kring.publish(hwtail);
              assert.equal(ring.tail, hwtail);
            }
        }
    assert.ok(taken > 1000 && refused > 10_000);
  });
});

/** What stands in a region, read from the bytes as netmap-abi's numbers say, without lib/ring.ts. */
function parseInterface(buffer: ArrayBufferLike, at: number) {
  const view = new DataView(buffer);
  const u32 = (byte: number) => view.getUint32(byte, true);
  const i64 = (byte: number) => Number(view.getBigInt64(byte, true));
  const ringAt = (k: number) => {
    const ring = at + i64(at + 56 + 8 * k);
    const numSlots = u32(ring + 8);
    return {
      at: ring,
      buffers: ring + i64(ring),
      numSlots,
      bufSize: u32(ring + 12),
      id: view.getUint16(ring + 16, true),
      dir: view.getUint16(ring + 18, true),
      head: u32(ring + 20),
      cur: u32(ring + 24),
      tail: u32(ring + 28),
      offsetMask: view.getBigUint64(ring + 56, true),
      slots: Array.from({ length: numSlots }, (_, i) => u32(ring + 256 + 16 * i)),
    };
  };
  const tx = u32(at + 24);
  const rx = u32(at + 28);
  return {
    version: u32(at + 16),
    flags: u32(at + 20),
    hostRings: [u32(at + 36), u32(at + 40)],
    tx: Array.from({ length: tx }, (_, k) => ringAt(k)),
    rx: Array.from({ length: rx }, (_, k) => ringAt(tx + k)),
  };
}

describe('memory', () => {
  const ringPlan = fc.record({
    tx: fc.array(fc.integer({ min: 2, max: 70 }), { maxLength: 3 }),
    rx: fc.array(fc.integer({ min: 2, max: 70 }), { maxLength: 3 }),
    extraBuffers: fc.integer({ min: 0, max: 20 }),
  });
  const memoryPlan: fc.Arbitrary<MemoryPlan> = fc.record({
    plans: fc.array(ringPlan, { minLength: 1, maxLength: 3 }),
    bufSize: fc.integer({ min: 1, max: 64 }).map((n) => n * 64),
    offsetMask: fc.constantFrom(0, 0xff, 0x7ff),
  });

  it('is netmap’s layout to a reader that knows the numbers only, and every buffer has one owner', () => {
    fc.assert(
      fc.property(memoryPlan, (plan) => {
        const memory = new Memory(plan);
        try {
          const { region, bufBase, bufSize, bufCount } = memory;
          assert.equal(bufBase % 4096, 0, 'buffers start on a page');
          const owners = new Int32Array(bufCount);
          let previousEnd = 0;
          for (const wanted of plan.plans) {
            const carved: Carved = memory.carve(wanted);
            // A port's netmap_if stands before its rings, where the last port's rings end.
            const port = parseInterface(region.buffer, previousEnd);
            assert.deepEqual([port.version, port.flags, port.hostRings], [14, 1, [0, 0]]);
            const rings = [...port.tx, ...port.rx];
            const views = [...carved.tx, ...carved.rx];
            assert.deepEqual(
              rings.map((ring) => ring.numSlots),
              [...wanted.tx, ...wanted.rx],
            );
            let end = previousEnd + 56 + 8 * rings.length;
            rings.forEach((ring, k) => {
              const dir = k < wanted.tx.length ? 1 : 0; // 1 tx, as kernels write it
              assert.ok(ring.at >= end, 'rings do not overlap');
              assert.equal(ring.at % 64, 0, 'a ring starts on a cache line');
              end = ring.at + 256 + 16 * ring.numSlots;
              assert.equal(ring.buffers, bufBase);
              assert.equal(ring.bufSize, bufSize);
              assert.deepEqual([ring.dir, ring.id], [dir, dir === 1 ? k : k - wanted.tx.length]);
              assert.deepEqual([ring.head, ring.cur, ring.tail], [0, 0, dir === 1 ? ring.numSlots - 1 : 0]);
              assert.equal(ring.offsetMask, BigInt(plan.offsetMask ?? 0));
              for (const idx of ring.slots) owners[idx]++;
              const view = views[k];
              assert.deepEqual(
                [view.base * 4, view.numSlots, view.bufSize, view.bufBase, view.id, view.direction],
                [ring.at, ring.numSlots, bufSize, bufBase, ring.id, dir === 1 ? 'tx' : 'rx'],
              );
              assert.equal(view.bufLimit, bufCount);
              assert.equal(view.space, dir === 1 ? ring.numSlots - 1 : 0);
            });
            assert.ok(end <= bufBase);
            previousEnd = Math.ceil(end / 64) * 64;
            assert.equal(carved.extra.length, wanted.extraBuffers ?? 0);
            for (const idx of carved.extra) owners[idx]++;
          }
          assert.deepEqual([...owners], [0, 0, ...Array.from({ length: bufCount - 2 }, () => 1)]);
          assert.ok(bufBase + bufCount * bufSize <= region.u8.length);
        } finally {
          for (let i = 0; i <= plan.plans.length; i++) memory.release();
        }
      }),
      { numRuns: 150 },
    );
  });

  it('refuses more than was planned, and stays whole', () => {
    const memory = new Memory({ plans: [{ tx: [8], rx: [8] }], bufSize: 64 });
    assert.throws(() => memory.carve({ tx: [8], rx: [9] }), { name: 'RangeError', message: /no buffer left/ });
    assert.throws(() => memory.carve({ tx: [400], rx: [] }), { name: 'RangeError' });
    memory.release();
    assert.equal(memory.region.u8.length, 0);
  });

  it('is unmapped with its last user, and then every view reads as empty', () => {
    const plan: RingPlan = { tx: [16], rx: [16] };
    const memory = new Memory({ plans: [plan, plan], bufSize: 64 });
    const a = memory.carve(plan);
    const b = memory.carve(plan);
    memory.release(); // the opener
    memory.release(); // a
    assert.equal(a.tx[0].space, 15, 'one user left');
    memory.release(); // b
    for (const ring of [...a.tx, ...a.rx, ...b.tx, ...b.rx]) {
      assert.deepEqual([ring.space, ring.head, ring.cur, ring.tail, ring.flags], [0, 0, 0, 0, 0]);
      assert.equal(ring.slotValid(0), false);
      assert.equal(ring.data(0).length, 0);
      ring.moveTo(3);
      ring.setLenFlags(0, 60);
      assert.deepEqual([ring.head, ring.len(0)], [0, 0], 'writes go nowhere');
    }
    memory.release(); // once too often: harmless
  });

  it('gives each memory an identity of its own', () => {
    const plan: MemoryPlan = { plans: [{ tx: [4], rx: [4] }], bufSize: 64 };
    const [a, b] = [new Memory(plan), new Memory(plan)];
    assert.notEqual(a.region.id, b.region.id);
    a.release();
    b.release();
  });
});
