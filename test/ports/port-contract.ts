// netmap's ring rules as one suite for any pair of ports. Import portContract() to hold another kind of port to them.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { BUF_CHANGED, FIRST_BUFFER, MOREFRAG } from '../../lib/rings/abi.js';
import { PortError } from '../../lib/text/errors.js';
import type { Port } from '../../lib/ports/port.js';
import type { Ring } from '../../lib/rings/ring.js';

/** What a kind of port promises beside netmap's rules for rings, which hold for all. */
export interface Promises {
  /** What one sends arrives at the other: a pipe, a cable, a switch. Otherwise each sends to nowhere. */
  readonly joined: boolean;
  /** Frames of several slots arrive as such. */
  readonly fragments: boolean;
  /** What finds the receiver's ring full waits in the sender's. Otherwise it is lost, in silence. */
  readonly waits: boolean;
  /** Rx slot k of one end and tx slot k of the other name one buffer, which is whose the slot is. Otherwise no two slots do. */
  readonly mirrored: boolean;
}

/** What each kind promises. */
export const PROMISES = {
  sim: { joined: false, fragments: false, waits: false, mirrored: false },
  pipe: { joined: true, fragments: true, waits: true, mirrored: false },
  xdp: { joined: true, fragments: false, waits: true, mirrored: false },
  'xdp, frames of several buffers': { joined: true, fragments: true, waits: true, mirrored: false },
  'netmap pipe': { joined: true, fragments: true, waits: true, mirrored: true },
  VALE: { joined: true, fragments: true, waits: false, mirrored: false },
  'netmap NIC': { joined: true, fragments: true, waits: false, mirrored: false },
} satisfies Record<string, Promises>;

/** Two open ports, and what they promise. */
export interface ContractPair {
  readonly a: Port;
  readonly b: Port;
  readonly promises: Promises;
  /** Undoes what was made around the ports, after both are closed. */
  readonly done?: () => void | Promise<void>;
}

export type MakePair = () => ContractPair | Promise<ContractPair>;

const CUR = 6;
const HEAD = 5;
const TAIL = 7;
/** Empty looks of a millisecond before a frame counts as lost. */
const PATIENCE = 1000;
/** The same for a link to come up: a NIC that is opened is reset. */
const LINK_PATIENCE = 10_000;

const ETHERTYPE = [0x88, 0xb5]; // IEEE 802 local experimental
const MAGIC = 0x6e6d6272;
/** The number of frames that only try a link. */
const PROBE = 0xffffffff;

/** A frame of `len` bytes that knows its number; every byte depends on it. */
function frameOf(number: number, len = 60): Buffer {
  const bytes = Buffer.alloc(len);
  bytes.set([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, ...ETHERTYPE]);
  bytes.writeUInt32BE(MAGIC, 14);
  bytes.writeUInt32BE(number, 18);
  for (let i = 22; i < len; i++) bytes[i] = (number * 31 + i * 7) & 0xff;
  return bytes;
}

/** Puts a frame into `n` slots of a tx ring without moving head; returns the slot after it. */
function put(ring: Ring, slot: number, frame: Uint8Array, n = 1): number {
  const piece = Math.ceil(frame.length / n);
  for (let k = 0; k < n; k++, slot = ring.after(slot)) {
    const part = frame.subarray(k * piece, (k + 1) * piece);
    ring.i32[ring.slotWord(slot) + 2] = 0;
    ring.setLenFlags(slot, part.length, k < n - 1 ? MOREFRAG : 0);
    ring.u8.set(part, ring.dataStart(slot));
  }
  return slot;
}

/** Takes every whole frame out of a port's rx rings and returns ours. */
function takeAll(port: Port): Buffer[] {
  port.rxsync();
  const frames: Buffer[] = [];
  for (const ring of port.rx) {
    let parts: Uint8Array[] = [];
    let slots = 0;
    for (let left = ring.space, i = ring.head; left > 0; left--, i = ring.after(i)) {
      parts.push(Uint8Array.from(ring.data(i)));
      slots++;
      if ((ring.slotFlags(i) & MOREFRAG) !== 0) continue;
      const frame = Buffer.concat(parts);
      if (frame.length >= 22 && frame.readUInt32BE(14) === MAGIC) frames.push(frame);
      ring.advance(slots);
      parts = [];
      slots = 0;
    }
  }
  return frames;
}

/** The same without probes. */
function take(port: Port): Buffer[] {
  return takeAll(port).filter((frame) => frame.readUInt32BE(18) !== PROBE);
}

/** Runs `turn` until it says true. */
async function until(turn: () => boolean, what: () => string, patience = PATIENCE): Promise<void> {
  for (let idle = 0; idle < patience; idle++) {
    if (turn()) return;
    await sleep(1);
  }
  assert.fail(`waited in vain: ${what()}`);
}

/** Waits until links carry frames both ways: before that they are lost. */
async function linked({ a, b, promises }: ContractPair): Promise<void> {
  if (!promises.joined) return;
  for (const [from, to] of [
    [a, b],
    [b, a],
  ]) {
    if (!from.hasLink) continue;
    const [ring] = from.tx;
    const gone = () => {
      from.txsync();
      return from.txPending() === 0;
    };
    await until(
      () => {
        if (gone()) ring.moveTo(put(ring, ring.head, frameOf(PROBE)));
        return takeAll(to).length > 0;
      },
      () => `a frame from ${from.name} to ${to.name}`,
      LINK_PATIENCE,
    );
    await until(gone, () => 'the last probe leaves');
  }
}

/** For a rule about ports as they are opened. */
const asOpened = (): Promise<void> => Promise.resolve();

/**
 * Sends `frames` from one port to the other, as room allows, and returns what arrived of them. Where frames do not
 * wait, never more are on their way than a quarter of the receiver's ring: what was taken is free at its next sync.
 */
async function carry(
  from: Port,
  to: Port,
  frames: readonly Buffer[],
  { waits }: Promises,
  slotsEach = 1,
): Promise<Buffer[]> {
  const ring = from.tx[0];
  const got: Buffer[] = [];
  const most = waits ? Infinity : Math.floor(to.rx[0].numSlots / 4);
  let sent = 0;
  await until(
    () => {
      let room = Math.min(ring.space, most - (sent - got.length) * slotsEach);
      let slot = ring.head;
      for (; sent < frames.length && room >= slotsEach; sent++, room -= slotsEach)
        slot = put(ring, slot, frames[sent], slotsEach);
      ring.moveTo(slot);
      from.txsync();
      got.push(...take(to));
      return got.length >= frames.length;
    },
    () => `${got.length} of ${frames.length} frames`,
  );
  return got;
}

/** Whether slot `i` is one the user holds. */
function isHeld(ring: Ring, i: number): boolean {
  return (i - ring.head + ring.numSlots) % ring.numSlots < ring.space;
}

/** Every slot of a pair's rings names a buffer, and none is named twice; of two mirrored slots the holder's counts. */
function audit({ a, b, promises: { mirrored } }: ContractPair): void {
  const owners = new Map<string, string>();
  for (const [port, peer] of [
    [a, b],
    [b, a],
  ])
    for (const ring of [...port.tx, ...port.rx])
      for (let i = 0; i < ring.numSlots; i++) {
        if (mirrored && isHeld(ring.direction === 'rx' ? ring : peer.rx[ring.id], i) !== (ring.direction === 'rx'))
          continue;
        const idx = ring.bufIdx(i);
        const where = `${port.name} ${ring.direction} ring ${ring.id} slot ${i}`;
        assert.ok(idx >= FIRST_BUFFER && idx < ring.bufLimit, `${where} names buffer ${idx}`);
        const key = `${ring.region.id} ${idx}`;
        assert.equal(owners.get(key), undefined, `${where} names a buffer that another slot has`);
        owners.set(key, where);
      }
}

function isSane(ring: Ring): void {
  assert.ok(ring.intact, 'head and tail are slots');
  assert.equal(ring.cur, ring.head);
  assert.ok(ring.space < ring.numSlots);
}

/** States the rules for pairs made by `makePair`, a new one for every test. */
export function portContract(name: string, makePair: MakePair): void {
  const rule = (
    text: string,
    hold: (pair: ContractPair, skip: (why: string) => void) => void | Promise<void>,
    prepare = linked,
  ): void => {
    it(text, async (t) => {
      const pair = await makePair();
      try {
        await prepare(pair);
        await hold(pair, (why) => {
          t.skip(why);
        });
      } finally {
        pair.a.close();
        pair.b.close();
        await pair.done?.();
      }
    });
  };

  describe(`port contract: ${name}`, () => {
    rule(
      'a fresh tx ring is the user’s but for one slot, and every buffer has one owner',
      (pair) => {
        for (const port of [pair.a, pair.b]) {
          for (const ring of port.tx) {
            assert.equal(ring.direction, 'tx');
            isSane(ring);
            assert.equal(ring.space, ring.numSlots - 1);
          }
          for (const ring of port.rx) {
            assert.equal(ring.direction, 'rx');
            isSane(ring);
          }
        }
        audit(pair);
      },
      asOpened,
    );

    rule('a sync moves tail and nothing else of the user’s', ({ a, b }) => {
      for (const port of [a, b]) {
        const rings = [...port.tx, ...port.rx];
        const before = rings.map((ring) => [ring.head, ring.cur]);
        port.txsync();
        port.rxsync();
        assert.deepEqual(
          rings.map((ring) => [ring.head, ring.cur]),
          before,
        );
        for (const ring of rings) isSane(ring);
      }
    });

    rule('what is sent leaves, at every wrap, and its slots come back', async (pair) => {
      const { a, b } = pair;
      for (const [from, to] of [
        [a, b],
        [b, a],
      ]) {
        for (const ring of from.tx)
          for (let sent = 0, batch = 1; sent < 3 * ring.numSlots; batch = (batch * 2 + 1) % 97 || 1) {
            const n = Math.min(batch, ring.space);
            let slot = ring.head;
            for (let k = 0; k < n; k++) slot = put(ring, slot, frameOf(k));
            ring.moveTo(slot);
            sent += n;
            from.txsync();
            isSane(ring);
            if (ring.space > ring.numSlots / 2) continue;
            await until(
              () => {
                take(to);
                from.txsync();
                return ring.space > ring.numSlots / 2;
              },
              () => 'tx slots come back',
            );
          }
        await until(
          () => {
            take(to);
            from.txsync();
            to.rxsync();
            return from.tx.every((ring) => ring.space === ring.numSlots - 1) && from.txPending() === 0;
          },
          () => 'every tx slot comes back',
        );
      }
      audit(pair);
    });

    rule('frames arrive once, in order and byte for byte, both ways', async (pair, skip) => {
      const { a, b, promises } = pair;
      if (!promises.joined) {
        skip('the ports are not joined');
        return;
      }
      const sizes = [60, 61, 62, 63, 64, 127, 128, 512, 1024, 1514];
      for (const [from, to] of [
        [a, b],
        [b, a],
      ]) {
        const most = Math.min(from.tx[0].bufSize, to.rx[0].bufSize);
        const frames = Array.from({ length: 2 * from.tx[0].numSlots + 7 }, (_, k) =>
          frameOf(k, Math.min(sizes[k % sizes.length], most)),
        );
        assert.deepEqual(await carry(from, to, frames, promises), frames);
      }
      audit(pair);
    });

    rule(
      'a full tx ring takes nothing more, and what is in it arrives in order, whole where it waits for room',
      async (pair, skip) => {
        const { a, b, promises } = pair;
        if (!promises.joined) {
          skip('the ports are not joined');
          return;
        }
        const [ring] = a.tx;
        const frames: Buffer[] = [];
        let slot = ring.head;
        for (let k = ring.space; k > 0; k--) {
          frames.push(frameOf(frames.length));
          slot = put(ring, slot, frames[frames.length - 1]);
        }
        ring.moveTo(slot);
        assert.equal(ring.space, 0);
        const got: Buffer[] = [];
        await until(
          () => {
            a.txsync();
            got.push(...take(b));
            return promises.waits ? got.length >= frames.length : got.length > 0 && a.txPending() === 0;
          },
          () => 'a whole ring of frames',
        );
        got.push(...take(b));
        const numbers = got.map((frame) => frame.readUInt32BE(18));
        assert.deepEqual(
          got,
          promises.waits ? frames : [...new Set(numbers)].sort((m, n) => m - n).map((n) => frames[n]),
        );
      },
    );

    rule('a frame of several slots arrives whole', async (pair, skip) => {
      const { a, b, promises } = pair;
      if (!promises.fragments) {
        skip('no frames of several slots here');
        return;
      }
      const frames = Array.from({ length: a.tx[0].numSlots }, (_, k) => frameOf(k, 300 + k));
      assert.deepEqual(await carry(a, b, frames, promises, 3), frames);
      audit(pair);
    });

    rule('a buffer exchanged for a spare one is sent from where it now lies', async (pair) => {
      const { a, b, promises } = pair;
      const [tx] = a.tx;
      // The spare is another tx slot's: rx slots are the user's only once something has arrived.
      const last = tx.after(tx.head, tx.space - 1);
      const mine = tx.bufIdx(tx.head);
      const other = tx.bufIdx(last);
      assert.notEqual(mine, other);
      const frame = frameOf(7);
      tx.i32[tx.slotWord(tx.head)] = other;
      tx.i32[tx.slotWord(last)] = mine;
      tx.setLenFlags(last, 0, BUF_CHANGED);
      const next = put(tx, tx.head, frame);
      tx.setLenFlags(tx.head, frame.length, BUF_CHANGED);
      tx.moveTo(next);
      const got: Buffer[] = [];
      await until(
        () => {
          a.txsync();
          got.push(...take(b));
          return promises.joined ? got.length > 0 : a.txPending() === 0;
        },
        () => 'the frame leaves',
      );
      if (promises.joined) assert.deepEqual(got, [frame]);
      audit(pair);
    });

    rule('a head or cur that is not the user’s is put back and counted, and traffic goes on', async (pair) => {
      const { a, b, promises } = pair;
      for (const ring of [...a.tx, ...a.rx]) {
        const sync = () => {
          if (ring.direction === 'tx') a.txsync();
          else a.rxsync();
        };
        const refused = (what: string) => {
          const before = a.stats();
          sync();
          isSane(ring);
          if ('reinits' in before)
            assert.equal(a.stats()['reinits'], before['reinits'] + 1, `${ring.direction} ${what}`);
        };
        for (const wrong of [-1, ring.numSlots, 2 ** 31 - 1, -(2 ** 31)])
          for (const word of [HEAD, CUR]) {
            ring.i32[ring.base + word] = wrong;
            refused(`word ${word}: ${wrong}`);
          }
        // Where the user owns all but one slot, the slot after tail is head itself.
        if (ring.space < ring.numSlots - 1) {
          ring.moveTo(ring.after(ring.tail));
          refused('past tail');
        }
        // tail is the port's: what the user writes there does not stay.
        ring.i32[ring.base + TAIL] = -5;
        sync();
        isSane(ring);
      }
      if (promises.joined)
        assert.deepEqual(await carry(a, b, [frameOf(1), frameOf(2)], promises), [frameOf(1), frameOf(2)]);
      if (promises.joined) assert.deepEqual(await carry(b, a, [frameOf(3)], promises), [frameOf(3)]);
      audit(pair);
    });

    rule('slots without a frame in them harm nobody', async (pair) => {
      const { a, b, promises } = pair;
      const [ring] = a.tx;
      for (const len of [0, 65535]) {
        ring.setLenFlags(ring.head, len);
        ring.advance(1);
        a.txsync();
        take(b);
        isSane(ring);
      }
      await until(
        () => {
          take(b);
          a.txsync();
          return a.txPending() === 0;
        },
        () => 'the slots are done with',
      );
      if (promises.joined) assert.deepEqual(await carry(a, b, [frameOf(9)], promises), [frameOf(9)]);
      audit(pair);
    });

    rule('a closed port reads as empty, twice closed is closed, and its syncs do no harm', ({ a, b }) => {
      const rings = [...a.tx, ...a.rx];
      a.close();
      a.close();
      for (const sync of ['txsync', 'rxsync'] as const) {
        try {
          a[sync]();
        } catch (error) {
          assert.ok(error instanceof PortError, String(error));
        }
        for (const ring of rings) assert.equal(ring.space, 0);
      }
      b.txsync();
      b.rxsync();
      b.close();
      b.close();
      for (const ring of [...rings, ...b.tx, ...b.rx]) {
        assert.equal(ring.space, 0);
        assert.ok(ring.data(0).length <= ring.bufSize);
      }
    });
  });
}
