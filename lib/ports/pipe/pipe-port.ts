/**
 * `pipe:lab{1` and `pipe:lab}1`: the two ends of a pipe in shared memory, in one process or two of the same user.
 * Slot i of an end's tx ring faces slot i of the peer's rx ring; sending exchanges their buffers. As netmap's pipes:
 * without a peer slots − 1 frames fit, a peer's close is no error, and what is queued waits for the next peer.
 *
 * Each direction has two published words: `prod`, the first slot not yet sent, and `cons`, the first not yet given
 * back. Each has one writer. A slot is the reader's from when it lies in [cons, prod), the sender's otherwise, so that
 * at every moment one process may write it; when that dies, the next one that opens the end finds what it had.
 */
import { amountIn, type Amount } from '../../rings/amount.js';
import {
  BUF_CHANGED,
  FIRST_BUFFER,
  LEN_MASK,
  MOREFRAG,
  RING_TAIL,
  SLOT_BUF_IDX,
  SLOT_LEN_FLAGS,
} from '../../rings/abi.js';
import { PortError } from '../../text/errors.js';
import { Kring } from '../../rings/kring.js';
import { native } from '../../shim/native.js';
import type { Port, Prepare } from '../port.js';
import type { Region } from '../../rings/region.js';
import type { Ring } from '../../rings/ring.js';
import type { PipeSpec } from '../../names/pipe-name.js';
import { repair } from './pipe-audit.js';
import { PipeFiles, tryLock } from './pipe-files.js';
import { PipeMemory } from './pipe-memory.js';
import * as layout from './pipe-layout.js';

/** What stats() of a pipe's end counts. */
interface PipeStats extends Record<string, number> {
  /** Frames not sent because a slot named no buffer of the memory, or data beyond its buffer. */
  badFrames: number;
  /** Times the peer's published word was out of range and not believed. */
  badIndex: number;
  /** Times head or cur was left outside what the user owned, and a ring was put back. */
  reinits: number;
  /** Frames sent that the other end has not taken; they wait for it, or for who opens it next. */
  untaken: number;
  /** Buffers that belonged to no slot, as a dead owner's unfinished exchange leaves them, and were put back at opening. */
  repaired: number;
}

/** Prepares one end of a pipe. It brings its own memory. */
export const preparePipe: Prepare<PipeSpec> = (spec) => ({ open: () => openPipe(spec) });

function openPipe(spec: PipeSpec): PipePort {
  const files = new PipeFiles(spec.name);
  return files.exclusively(spec.text, () => {
    const memory = PipeMemory.acquire(spec, files);
    let lock: number | undefined;
    try {
      const k = memory.claim(spec);
      const { i32 } = memory.region;
      const side = spec.end === 'master' ? 0 : 1;
      const path = files.lockPath(spec.pipe, spec.end);
      const owner = i32[layout.ownerWord(k, side)];
      lock = tryLock(path, spec.text);
      if (lock === undefined) throw endTaken(spec, owner);
      makeSense(memory, k, spec.text);
      const repaired = repair(memory, path, spec.text);
      const notes: string[] = [];
      if (owner !== 0)
        notes.push(
          `process ${owner} ended without closing ${spec.text}: this one goes on where it left off` +
            (repaired > 0 ? `; ${repaired} of its exchanges were unfinished and have been undone` : ''),
        );
      i32[layout.ownerWord(k, side)] = process.pid;
      return new PipePort(spec, memory, lock, k, side, repaired, notes);
    } catch (error) {
      if (lock !== undefined) native.unlock(lock);
      memory.tidy(spec.text);
      memory.release();
      throw error;
    }
  });
}

function endTaken(spec: PipeSpec, owner: number): PortError {
  const who = owner === process.pid ? 'this process' : owner > 0 ? `process ${owner}` : 'another process';
  const other = `pipe:${spec.name}${spec.end === 'master' ? '}' : '{'}${spec.pipe}`;
  return new PortError(
    `${spec.text}: this end is already open in ${who}; close it there, open the other end (${other}), or use another pipe`,
    spec.text,
    { code: 'EBUSY' },
  );
}

/** Puts published words that lie outside the ring back to what their readers last saw. Frames in between are lost. */
function makeSense(memory: PipeMemory, k: number, port: string): void {
  const { i32 } = memory.region;
  const inside = (word: number) => word >>> 0 < memory.geometry.slots;
  for (const side of [0, 1]) {
    const rx = memory.ring(k, 1 - side, 1, port);
    const prod = layout.prodWord(k, side);
    const cons = layout.consWord(k, side);
    if (!inside(i32[prod])) Atomics.store(i32, prod, inside(rx.tail) ? rx.tail : 0);
    if (!inside(i32[cons])) Atomics.store(i32, cons, inside(rx.head) ? rx.head : i32[prod]);
  }
}

class PipePort implements Port {
  readonly driver = 'pipe';
  readonly name: string;
  readonly region: Region;
  readonly tx: readonly Ring[];
  readonly rx: readonly Ring[];
  readonly hostTx: readonly Ring[] = [];
  readonly hostRx: readonly Ring[] = [];
  /** Nothing to poll: a reader looks again after a nap, short beside the time a process takes to wake up. */
  readonly fds: readonly number[] = [];
  readonly napNs = 50_000;
  readonly hasLink = false;

  readonly #i32: Int32Array;
  readonly #txKring: Kring;
  readonly #rxKring: Kring;
  /** The ring that our frames appear in. */
  readonly #peerRx: Ring;
  readonly #sent: number;
  readonly #givenBack: number;
  readonly #peerSent: number;
  readonly #peerGivenBack: number;
  readonly #owner: number;
  /** The last good value of the peer's word. */
  #cons: number;
  /** A frame is being dropped: its slots that follow go with it. */
  #dropping = false;
  readonly #refused: Amount = { frames: 0, bytes: 0 };
  #badIndex = 0;
  #closed = false;

  constructor(
    spec: PipeSpec,
    private readonly memory: PipeMemory,
    private readonly lock: number,
    k: number,
    side: number,
    private readonly repaired: number,
    readonly notes: readonly string[],
  ) {
    this.name = spec.text;
    this.region = memory.region;
    this.#i32 = memory.region.i32;
    const tx = memory.ring(k, side, 0, spec.text);
    const rx = memory.ring(k, side, 1, spec.text);
    this.tx = [tx];
    this.rx = [rx];
    this.#peerRx = memory.ring(k, 1 - side, 1, spec.text);
    this.#sent = layout.prodWord(k, side);
    this.#peerGivenBack = layout.consWord(k, side);
    this.#peerSent = layout.prodWord(k, 1 - side);
    this.#givenBack = layout.consWord(k, 1 - side);
    this.#owner = layout.ownerWord(k, side);

    // Whatever the last owner left behind: nothing to send, and everything to read that it had not taken. Each shared
    // word is read once, and what was read is what counts.
    const slot = (word: number): number => within(Atomics.load(this.#i32, word), tx.numSlots);
    this.#cons = slot(this.#peerGivenBack);
    this.#txKring = new Kring(tx, slot(this.#sent), tx.before(this.#cons));
    const prod = slot(this.#peerSent);
    const untaken = firstUntaken(rx, slot(this.#givenBack), prod);
    Atomics.store(this.#i32, this.#givenBack, untaken);
    this.#rxKring = new Kring(rx, untaken, prod);
    for (const kring of [this.#txKring, this.#rxKring]) kring.reset();
  }

  txsync(): void {
    if (this.#closed) throw this.#gone();
    const kring = this.#txKring;
    const words = this.#i32;
    const head = kring.begin();
    if (head !== kring.hwcur) {
      const end = this.#wholeFrames(kring.hwcur, head);
      this.#exchange(kring.hwcur, end);
      kring.hwcur = end;
    }
    const sent = kring.hwcur;
    // Compared first: storing takes the cache line from the peer. Compared with the word, so that damage to it heals.
    if (words[this.#sent] !== sent) Atomics.store(words, this.#sent, sent);
    const cons = Atomics.load(words, this.#peerGivenBack);
    if (cons !== this.#cons) {
      if (this.#between(this.#cons, cons, sent)) this.#cons = cons;
      else this.#badIndex++;
    }
    kring.publish(this.#cons === 0 ? kring.ring.numSlots - 1 : this.#cons - 1);
  }

  rxsync(): void {
    if (this.#closed) throw this.#gone();
    const kring = this.#rxKring;
    const words = this.#i32;
    const head = kring.begin();
    kring.hwcur = head;
    if (words[this.#givenBack] !== head) Atomics.store(words, this.#givenBack, head);
    const prod = Atomics.load(words, this.#peerSent);
    let tail = kring.hwtail;
    if (prod !== tail) {
      if (this.#between(tail, prod, head === 0 ? kring.ring.numSlots - 1 : head - 1)) tail = prod;
      else this.#badIndex++;
    }
    kring.publish(tail);
  }

  /** Whether from ≤ index ≤ to (cyclic), for an index that another wrote. */
  #between(from: number, index: number, to: number): boolean {
    const slots = this.#peerRx.numSlots;
    const n = index - from;
    const most = to - from;
    return index >>> 0 < slots && (n < 0 ? n + slots : n) <= (most < 0 ? most + slots : most);
  }

  /**
   * The slot after the last whole frame in [from, head): what a reader sees must not turn out to be cut short. A frame
   * that fills the ring without an end is dropped, and the rest of it when it comes.
   */
  #wholeFrames(from: number, head: number): number {
    const { ring } = this.#txKring;
    let end = head;
    while (end !== from && (ring.slotFlags(ring.before(end)) & MOREFRAG) !== 0) end = ring.before(end);
    if (end !== from || this.#dropping) return end === from ? head : end;
    if (ring.after(head) !== from) return from;
    this.#dropping = true;
    this.#refused.frames++;
    return head;
  }

  /** Exchanges the buffers of tx slots [from, to) with those of the peer's slots that face them. */
  #exchange(from: number, to: number): void {
    const words = this.#i32;
    const ring = this.#txKring.ring;
    const { numSlots, bufSize, slot0: tx0 } = ring;
    const rx0 = this.#peerRx.slot0;
    const last = ring.bufLimit - 1;
    for (let i = from; i !== to; i = i + 1 === numSlots ? 0 : i + 1) {
      const tw = tx0 + (i << 2);
      const rw = rx0 + (i << 2);
      const idx = words[tw];
      const spare = words[rw];
      const lenFlags = words[tw + SLOT_LEN_FLAGS];
      const beyond = bufSize - (lenFlags & LEN_MASK);
      // One test for all: the sign bit is set when an index is outside, or the length beyond the buffer.
      const bad = ((idx - FIRST_BUFFER) | (last - idx) | (spare - FIRST_BUFFER) | (last - spare) | beyond) < 0;
      if (bad || this.#dropping) {
        this.#drop(i, from, lenFlags);
        continue;
      }
      words[rw + SLOT_BUF_IDX] = idx;
      words[rw + SLOT_LEN_FLAGS] = lenFlags & (LEN_MASK | MOREFRAG);
      words[tw + SLOT_BUF_IDX] = spare;
      words[tw + SLOT_LEN_FLAGS] = lenFlags & ~BUF_CHANGED;
    }
  }

  /** The frame of tx slot `i` cannot be sent: its slots arrive with length zero, which readers pass over. */
  #drop(i: number, from: number, lenFlags: number): void {
    const rx = this.#peerRx;
    const refused = this.#refused;
    if (!this.#dropping) {
      refused.frames++;
      for (let j = i; j !== from;) {
        j = rx.after(j, rx.numSlots - 1);
        if ((rx.slotFlags(j) & MOREFRAG) === 0) break;
        refused.bytes += rx.len(j);
        rx.setLenFlags(j, 0);
      }
    }
    refused.bytes += lenFlags & LEN_MASK;
    rx.setLenFlags(i, 0);
    this.#dropping = (lenFlags & MOREFRAG) !== 0;
  }

  linkUp(): boolean {
    return true;
  }

  ended(): boolean {
    return false;
  }

  /** What was sent is the peer's at once, even if there is none yet. */
  txPending(): number {
    return 0;
  }

  refused(): Amount {
    return this.#refused;
  }

  stats(): PipeStats {
    return {
      badFrames: this.#refused.frames,
      badIndex: this.#badIndex,
      reinits: this.#txKring.reinits + this.#rxKring.reinits,
      untaken: this.#untaken(),
      repaired: this.repaired,
    };
  }

  /** What lies between the reader's head, which it moves before it tells at its next sync, and what was sent. */
  #untaken(): number {
    const peer = this.#peerRx;
    const { head, numSlots } = peer;
    const sent = this.#txKring.hwcur;
    const slots = (sent - this.#cons + numSlots) % numSlots;
    const ahead = (sent - head + numSlots) % numSlots;
    const left = head >>> 0 < numSlots && ahead < slots ? ahead : slots;
    return amountIn(peer, peer.after(sent, numSlots - left), left).frames;
  }

  #gone(): PortError {
    return new PortError(`${this.name}: the port is closed`, this.name, { code: 'EBADF' });
  }

  /** Lets the end go. The last end to close removes the shared memory, unless frames wait in it for the next peer. */
  close(): void {
    if (this.#closed) return;
    this.rxsync();
    this.#closed = true;
    // The memory stays mapped while this process has its other end open.
    for (const ring of [...this.tx, ...this.rx]) this.#i32[ring.base + RING_TAIL] = ring.head;
    const { memory, lock } = this;
    let held = true;
    const letGo = (): void => {
      if (!held) return;
      held = false;
      this.#i32[this.#owner] = 0;
      native.unlock(lock);
    };
    try {
      memory.files.exclusively(this.name, () => {
        letGo();
        memory.tidy(this.name);
      });
    } catch (error) {
      // Somebody stopped holds the guard, or the folder is gone: tidying up is left to the next one.
      if (!(error instanceof PortError)) throw error;
    } finally {
      letGo();
      memory.release();
    }
  }
}

/** `index`, or 0 where it is no slot: makeSense() has put such words right, unless somebody writes there just now. */
function within(index: number, slots: number): number {
  return index >>> 0 < slots ? index : 0;
}

/**
 * The first of the slots [cons, prod) that the last owner of an rx ring had not taken: what lies before its head is
 * done, and a slot marked as changed was forwarded, if only in part, when its owner was killed in mid-batch.
 */
function firstUntaken(rx: Ring, cons: number, prod: number): number {
  const { head, numSlots } = rx;
  const taken = (head - cons + numSlots) % numSlots;
  let i = head >>> 0 < numSlots && taken <= (prod - cons + numSlots) % numSlots ? head : cons;
  for (let inside = false; i !== prod && (inside || (rx.slotFlags(i) & BUF_CHANGED) !== 0); i = rx.after(i))
    inside = (rx.slotFlags(i) & MOREFRAG) !== 0;
  return i;
}
