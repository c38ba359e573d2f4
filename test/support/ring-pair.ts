// Two rings and a test that plays both ports: it knows every buffer, every slot and every frame, and shares no code
// with lib/forward.ts.
import assert from 'node:assert/strict';
import { BUF_CHANGED, MOREFRAG } from '../../lib/rings/abi.js';
import * as counted from '../../lib/forward/counters.js';
import { forwarder, type Forward } from './forwarder.js';
import { Memory } from '../../lib/rings/memory.js';
import type { Ring } from '../../lib/rings/ring.js';

const TAIL = 7;
const MOST = 64;

/** One slot as it is delivered. */
export interface Fragment {
  readonly len: number;
  readonly more: boolean;
  /** What stands in buf_idx instead of the buffer's own index. */
  readonly corrupt?: number | undefined;
  /** Offset of the data in its buffer. */
  readonly offset?: number | undefined;
}

/** A fragment in the rx ring, with the bytes it carries. */
interface Pending extends Fragment {
  readonly bytes: Uint8Array;
}

export interface PairOptions {
  readonly rxSlots: number;
  readonly txSlots: number;
  readonly rxBuf: number;
  readonly txBuf: number;
  readonly copy: boolean;
  readonly offsetMask?: number;
  /** Slot at which each ring starts. */
  readonly start?: number;
}

const COUNTED = [
  'FRAMES',
  'BYTES',
  'SLOTS',
  'ZERO_SLOTS',
  'BAD_BUFFER',
  'BAD_LENGTH',
  'TOO_MANY_SLOTS',
  'NO_TX_ROOM',
] as const;

export class RingPair {
  readonly counters = new Float64Array(counted.COUNTERS);
  readonly rx: Ring;
  readonly tx: Ring;
  readonly forward: Forward;
  /** Frames that have reached the tx ring, as bytes; for tests that look at the whole stream. */
  readonly sent: Uint8Array[] = [];
  /** Fragments in the rx ring, from head. */
  pending: Pending[] = [];
  readonly #memories: readonly Memory[];
  /** Slots of the rx ring whose index a test has replaced: slot → the index that belongs there. */
  readonly #displaced = new Map<number, number>();
  /** Each buffer's ptr word, which must travel with it. */
  readonly #ptr = new Map<number, number>();
  #stamp = 1;

  constructor(readonly options: PairOptions) {
    const { rxSlots, txSlots, rxBuf, txBuf, copy, offsetMask = 0, start = 0 } = options;
    const one = { tx: [txSlots], rx: [rxSlots] };
    const rxMemory = new Memory({ plans: [one], bufSize: rxBuf, offsetMask });
    const txMemory = copy ? new Memory({ plans: [one], bufSize: txBuf, offsetMask }) : rxMemory;
    this.#memories = copy ? [rxMemory, txMemory] : [rxMemory];
    const carved = rxMemory.carve(one);
    this.rx = carved.rx[0];
    this.tx = copy ? txMemory.carve(one).tx[0] : carved.tx[0];
    const { rx, tx } = this;
    this.rotate(start);
    if (!copy && offsetMask !== 0)
      for (const ring of [rx, tx])
        for (let i = 0; i < ring.numSlots; i++) {
          ring.i32[ring.slotWord(i) + 2] = ring.bufIdx(i) * 0x10000; // above the mask: a name for each buffer
          this.#ptr.set(ring.bufIdx(i), ring.bufIdx(i) * 0x10000);
        }
    this.forward = forwarder(rx, tx, this.counters);
  }

  close(): void {
    for (const memory of this.#memories) {
      memory.release();
      memory.release();
    }
  }

  /** Both rings start over at a slot: the rx ring empty, the tx ring free. */
  rotate(slot: number): void {
    const { rx, tx } = this;
    assert.equal(this.pending.length, 0);
    rx.moveTo(slot % rx.numSlots);
    rx.i32[rx.base + TAIL] = rx.head;
    tx.moveTo(slot % tx.numSlots);
    this.drain();
  }

  /** Slots the rx port could still fill. */
  get rxFree(): number {
    return this.rx.numSlots - 1 - this.pending.length;
  }

  /** The rx port shows one more slot. */
  deliver(fragment: Fragment): void {
    const { rx } = this;
    const slot = rx.tail;
    const back = this.#displaced.get(slot);
    if (back !== undefined) {
      rx.i32[rx.slotWord(slot)] = back;
      this.#displaced.delete(slot);
    }
    const idx = rx.bufIdx(slot);
    const offset = fragment.offset ?? 0;
    const ptr = (rx.i32[rx.slotWord(slot) + 2] & ~rx.offsetMask) | (offset & rx.offsetMask);
    if (rx.offsetMask !== 0) {
      rx.i32[rx.slotWord(slot) + 2] = ptr;
      this.#ptr.set(idx, ptr);
    }
    const bytes = new Uint8Array(Math.min(fragment.len, Math.max(0, rx.bufSize - offset)));
    for (let i = 0; i < bytes.length; i++) bytes[i] = (this.#stamp * 31 + i * 7) & 0xff;
    if (bytes.length >= 4) new DataView(bytes.buffer).setUint32(0, this.#stamp);
    this.#stamp++;
    rx.u8.set(bytes, rx.bufBase + idx * rx.bufSize + offset);
    rx.setLenFlags(slot, fragment.len, fragment.more ? MOREFRAG : 0);
    if (fragment.corrupt !== undefined) {
      this.#displaced.set(slot, idx);
      rx.i32[rx.slotWord(slot)] = fragment.corrupt;
    }
    rx.i32[rx.base + TAIL] = (slot + 1) % rx.numSlots;
    this.pending.push({ ...fragment, bytes });
  }

  /** The tx port takes everything and gives all but the last `keep` slots back. */
  drain(keep = 0): void {
    const { tx } = this;
    tx.i32[tx.base + TAIL] = (tx.head + tx.numSlots - 1 - Math.min(keep, tx.numSlots - 1)) % tx.numSlots;
  }

  /** Calls forward() and holds all it did against what the pending fragments say. Returns the slots taken. */
  step(burst: number): number {
    const { rx, tx, counters } = this;
    const before = Float64Array.from(counters);
    const room = tx.space;
    const ready = this.pending.length;
    const [rxHead, rxTail, txHead, txTail] = [rx.head, rx.tail, tx.head, tx.tail];
    const rxIdx = Array.from({ length: rx.numSlots }, (_, i) => rx.bufIdx(i));
    const full = ready === rx.numSlots - 1;

    const taken = this.forward(burst);

    assert.ok(taken >= 0 && taken <= ready);
    assert.equal(rx.head, (rxHead + taken) % rx.numSlots, 'the rx ring moved by what was taken');
    assert.equal(rx.cur, rx.head);
    assert.equal(tx.cur, tx.head);
    assert.deepEqual([rx.tail, tx.tail], [rxTail, txTail], 'the tails are the ports’');

    const list = this.pending.splice(0, taken);
    const out: { frame: Uint8Array; slots: number }[] = [];
    const expected = new Map<string, number>(COUNTED.map((name) => [name, 0]));
    const count = (name: (typeof COUNTED)[number], n = 1) => expected.set(name, (expected.get(name) ?? 0) + n);
    let frames = 0;
    while (list.length > 0) {
      let slots = list.findIndex(({ more }) => !more) + 1;
      const endless = slots === 0;
      if (endless) {
        assert.ok(full && frames === 0 && list.length === ready, 'a frame was taken before its end had come');
        slots = list.length;
      }
      frames++;
      this.#expect(list.splice(0, slots), endless, count, out);
    }
    assert.ok(taken <= burst || frames === 1, 'no more than the burst, but for one frame that is longer');

    // What stands in the tx ring is exactly what those frames say.
    let t = txHead;
    for (const { frame, slots } of out) {
      let at = 0;
      for (let k = 0; k < slots; k++, t = (t + 1) % tx.numSlots) {
        assert.notEqual(t, tx.head, 'a frame is missing');
        assert.ok(tx.slotValid(t));
        assert.equal((tx.slotFlags(t) & MOREFRAG) !== 0, k < slots - 1, 'MOREFRAG on all but the last slot');
        if (!this.options.copy) assert.notEqual(tx.slotFlags(t) & BUF_CHANGED, 0, 'BUF_CHANGED in tx');
        assert.deepEqual(tx.data(t), frame.subarray(at, at + tx.len(t)));
        at += tx.len(t);
      }
      assert.equal(at, frame.length);
      this.sent.push(frame);
    }
    assert.equal(t, tx.head, 'nothing but these frames');
    for (const name of COUNTED) assert.equal(counters[counted[name]] - before[counted[name]], expected.get(name), name);
    assert.equal(counters[counted.BATCHES] - before[counted.BATCHES], out.length > 0 ? 1 : 0, 'BATCHES');
    assert.equal(counters[counted.BAD_RING], 0);

    // Back-pressure is counted, once, and only where there was some.
    const blocked = counters[counted.TX_FULL] - before[counted.TX_FULL];
    assert.ok(blocked === 0 || blocked === 1);
    const head = this.pending.findIndex(({ more }) => !more) + 1;
    const need = taken === 0 && head > 0 ? this.#needed(this.pending.slice(0, head)) : 0;
    if (taken === 0 && (head > 0 || (full && room > 0))) {
      assert.ok(need > room || room === 0, 'a frame that could be moved, or dropped, was left');
      assert.equal(blocked, 1, 'a frame was left without a word');
    }
    if (blocked === 1)
      assert.ok(room < Math.min(ready, burst) || need > room || this.options.copy, 'TX_FULL for nothing');

    this.audit(rxIdx);
    return taken;
  }

  /** tx slots a frame takes. */
  #needed(frame: readonly Fragment[]): number {
    if (!this.options.copy) return frame.filter(({ len }) => len > 0).length;
    return frame.reduce((sum, { len }) => sum + Math.ceil(len / this.tx.bufSize), 0);
  }

  /** What must become of one frame. */
  #expect(
    frame: readonly Pending[],
    endless: boolean,
    count: (name: (typeof COUNTED)[number], n?: number) => void,
    out: { frame: Uint8Array; slots: number }[],
  ): void {
    const carrying = frame.filter(({ len }) => len > 0);
    count('ZERO_SLOTS', frame.length - carrying.length);
    const needed = this.#needed(frame);
    if (carrying.some(({ corrupt }) => corrupt !== undefined)) count('BAD_BUFFER');
    else if (carrying.some(({ len, offset }) => len + (offset ?? 0) > this.rx.bufSize)) count('BAD_LENGTH');
    else if (endless || carrying.length > MOST || needed > MOST) count('TOO_MANY_SLOTS');
    else if (needed > this.tx.numSlots - 1) count('NO_TX_ROOM');
    else if (carrying.length > 0) {
      const bytes = Buffer.concat(carrying.map((fragment) => fragment.bytes));
      count('FRAMES');
      count('BYTES', bytes.length);
      count('SLOTS', needed);
      out.push({ frame: new Uint8Array(bytes), slots: needed });
    }
  }

  /** Every buffer has one owner, its ptr went with it, and an exchange is flagged. `rxIdx`: the rx ring before. */
  audit(rxIdx: readonly number[]): void {
    const { rx, tx, options } = this;
    for (let i = 0; i < rx.numSlots; i++)
      if (rx.bufIdx(i) !== rxIdx[i]) assert.notEqual(rx.slotFlags(i) & BUF_CHANGED, 0, 'BUF_CHANGED in rx');
    const seen = new Set<number>();
    for (const ring of options.copy ? [rx] : [rx, tx])
      for (let i = 0; i < ring.numSlots; i++) {
        const displaced = ring === rx ? this.#displaced.get(i) : undefined;
        const idx = displaced ?? ring.bufIdx(i);
        assert.ok(idx >= 2 && idx < ring.bufLimit, 'no bad index but the port’s own');
        assert.ok(!seen.has(idx), `buffer ${idx} has two owners`);
        seen.add(idx);
        if (!options.copy) assert.equal(ring.i32[ring.slotWord(i) + 2], this.#ptr.get(idx) ?? 0, 'ptr left its buffer');
      }
    if (options.copy)
      for (let i = 0; i < tx.numSlots; i++) assert.equal(tx.bufIdx(i), 2 + i, 'copying exchanges nothing');
    else assert.equal(seen.size, rx.numSlots + tx.numSlots);
  }
}
