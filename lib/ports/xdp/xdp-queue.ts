import { add, addSlot, amountIn, type Amount } from '../../rings/amount.js';
import {
  FIRST_BUFFER,
  LEN_MASK,
  MOREFRAG,
  SLOT_BUF_IDX,
  SLOT_LEN_FLAGS,
  SLOT_PTR,
  SLOT_WORDS,
} from '../../rings/abi.js';
import type { Kring } from '../../rings/kring.js';
import type { Ring } from '../../rings/ring.js';
import type { XdpRing } from './xdp-ring.js';
import type { XdpSocket } from './xdp-socket.js';

/** Words of a descriptor in the rx and tx rings: addr (two words), len, options; fill and completion hold addr alone. */
const DESC_WORDS = 4;
const DESC_LEN = 2;
const DESC_OPTIONS = 3;
const ADDR_WORDS = 2;
/** XDP_PKT_CONTD of linux/if_xdp.h (6.6): the frame goes on in the next descriptor. */
const PKT_CONTD = 1;

/**
 * Descriptors a frame may take on its way out. The kernel makes an skb of it: a linear part and MAX_SKB_FRAGS (17)
 * pages. It consumes a longer one without ever completing it, so a longer one must not reach it.
 */
const MAX_TX_DESCS = 18;

const EAGAIN = 11;

/** Where a queue's buffers are; see XdpQueue.audit. */
export interface QueueAudit {
  slots: number;
  fill: number;
  rx: number;
  tx: number;
  completion: number;
  /** Handed to the kernel and in no ring: which ones only the kernel knows. */
  kernel: number;
}

/**
 * One AF_XDP socket behind one pair of netmap rings. Every buffer has one owner at any time:
 *
 * - an rx slot always holds a buffer. A received descriptor's buffer goes into the slot and the slot's old one into
 *   the fill ring, so that the kernel always has as many as the fill ring holds, whatever the user keeps.
 * - a tx slot gives its buffer away when it is sent, and gets another with a completion. Completions may come in any
 *   order: the buffer that comes back is put into the next slot that has none, and that slot is the user's again.
 */
export class XdpQueue {
  /**
   * Not sent: frames of several slots where the socket takes one, of more than 18, with a slot of length 0, and those
   * that the kernel found invalid.
   */
  readonly refused: Amount = { frames: 0, bytes: 0 };
  /** Descriptors from the kernel that named no buffer of the region. */
  corrupt = 0;
  /** Calls made to wake the kernel. */
  wakeups = 0;
  /** errno of the last call that failed for another reason than "try again", until one succeeds; 0 when well. */
  error = 0;
  /** Descriptors handed to the kernel for sending and not yet completed. */
  inFlight = 0;
  /** For each buffer in flight the length and flags it was sent with, else 0. */
  readonly #sent: Int32Array;
  #reclaimed = 0;
  readonly #shift: number;
  readonly #limit: number;

  /**
   * @param spare buffers for the fill ring: as many as it has entries
   * @throws RangeError when the rings do not fit together
   */
  constructor(
    readonly rx: Kring,
    readonly tx: Kring,
    private readonly socket: XdpSocket,
    spare: Int32Array,
  ) {
    const { fill, completion } = socket;
    if (spare.length !== fill.entries || socket.rx.entries < fill.entries)
      throw new RangeError('the fill ring must be filled exactly, and the rx ring hold all of it');
    if (socket.tx.entries < tx.ring.numSlots || completion.entries < tx.ring.numSlots)
      throw new RangeError('tx and completion ring must hold every slot');
    this.#shift = Math.log2(rx.ring.bufSize);
    this.#limit = rx.ring.bufLimit;
    this.#sent = new Int32Array(this.#limit);
    for (let i = 0; i < spare.length; i++) fill.i32[fill.desc + i * ADDR_WORDS] = spare[i] << this.#shift;
    fill.produce(spare.length);
  }

  /** Takes back the slots the user is done with and fills them with what has arrived. */
  rxsync(): void {
    const { rx: kring, socket } = this;
    const { fill, rx } = socket;
    const head = kring.begin();
    kring.hwcur = head;
    if (socket.busyPoll && rx.available() <= 0) this.#call(socket.wakeRx);
    let room = head - kring.hwtail - 1;
    if (room < 0) room += kring.ring.numSlots;
    const available = rx.available();
    let n = available < room ? available : room;
    // A frame moves whole or waits.
    while (n > 0 && this.#continues((rx.mine + n - 1) & rx.mask)) n--;
    if (n > 0) {
      this.#receive(n);
      rx.consume(n);
      fill.produce(n);
    }
    kring.publish(kring.hwtail);
    if (!socket.busyPoll && fill.needsWakeup()) this.#call(socket.wakeRx);
  }

  #continues(entry: number): boolean {
    const { rx } = this.socket;
    return (rx.i32[rx.desc + entry * DESC_WORDS + DESC_OPTIONS] & PKT_CONTD) !== 0;
  }

  /** Moves `n` descriptors into slots, and as many buffers into the fill ring; publish() follows. */
  #receive(n: number): void {
    const { rx: kring } = this;
    const { fill, rx } = this.socket;
    const { ring } = kring;
    const { i32, numSlots, slot0, offsetMask } = ring;
    const shift = this.#shift;
    const limit = this.#limit;
    const descs = rx.i32;
    const addrs = fill.i32;
    let slot = kring.hwtail;
    for (let i = 0; i < n; i++) {
      const d = rx.desc + ((rx.mine + i) & rx.mask) * DESC_WORDS;
      const f = fill.desc + ((fill.mine + i) & fill.mask) * ADDR_WORDS;
      const w = slot0 + slot * SLOT_WORDS;
      const addr = descs[d];
      const buf = addr >>> shift;
      if (buf < limit && buf >= FIRST_BUFFER && descs[d + 1] === 0) {
        const more = (descs[d + DESC_OPTIONS] & PKT_CONTD) !== 0 ? MOREFRAG : 0;
        addrs[f] = i32[w + SLOT_BUF_IDX] << shift;
        i32[w + SLOT_BUF_IDX] = buf;
        i32[w + SLOT_LEN_FLAGS] = (descs[d + DESC_LEN] & LEN_MASK) | more;
        i32[w + SLOT_PTR] = addr & offsetMask;
      } else {
        // The slot keeps its buffer and holds nothing; the kernel gets the same address back, which it refuses.
        this.corrupt++;
        addrs[f] = addr;
        i32[w + SLOT_LEN_FLAGS] = 0;
      }
      if (++slot === numSlots) slot = 0;
    }
    kring.hwtail = slot;
  }

  /** Takes back what has been sent, and sends what the user has added. */
  txsync(): void {
    const { tx: kring, socket } = this;
    const { tx } = socket;
    const head = kring.begin();
    if (this.inFlight > 0) this.#reap();
    if (head !== kring.hwcur) this.#submit(head);
    kring.publish(kring.hwtail);
    if (this.inFlight === 0) return;
    // In copy mode the kernel sends inside the call; with zero-copy a driver may need it to complete, too.
    if (socket.zeroCopy ? socket.busyPoll || tx.needsWakeup() : tx.pending() > 0) this.#flush();
  }

  /** Puts completed buffers into the slots that wait for one. */
  #reap(): void {
    const { completion } = this.socket;
    let n = completion.available();
    if (n > this.inFlight) n = this.inFlight;
    if (n <= 0) return;
    for (let i = 0; i < n; i++) {
      const c = completion.desc + ((completion.mine + i) & completion.mask) * ADDR_WORDS;
      const buf = completion.i32[c] >>> this.#shift;
      if (this.#sent[buf] !== 0) {
        this.#sent[buf] = 0;
        this.#giveBack(buf);
        this.inFlight--;
      } else {
        this.corrupt++;
      }
    }
    completion.consume(n);
  }

  /** The next slot without a buffer gets this one and is the user's; publish() follows. */
  #giveBack(buf: number): void {
    const { tx: kring } = this;
    const { ring } = kring;
    kring.hwtail = kring.hwtail + 1 === ring.numSlots ? 0 : kring.hwtail + 1;
    const w = ring.slot0 + kring.hwtail * SLOT_WORDS;
    ring.i32[w + SLOT_BUF_IDX] = buf;
    ring.i32[w + SLOT_PTR] = 0;
  }

  /** Writes a descriptor for every slot of the whole frames in [hwcur, head). */
  #submit(head: number): void {
    const { tx: kring } = this;
    const { tx } = this.socket;
    const { ring } = kring;
    const { i32, numSlots, slot0, offsetMask } = ring;
    const shift = this.#shift;
    const sent = this.#sent;
    const descs = tx.i32;
    let produced = 0;
    let first = kring.hwcur;
    while (first !== head) {
      const slots = this.#frame(first, head);
      if (slots === 0) break; // the rest of this frame is still to come
      if (slots < 0) {
        first = this.#refuse(first, -slots);
        continue;
      }
      for (let i = slots; i > 0; i--) {
        const w = slot0 + first * SLOT_WORDS;
        const d = tx.desc + ((tx.mine + produced) & tx.mask) * DESC_WORDS;
        const buf = i32[w + SLOT_BUF_IDX];
        descs[d] = (buf << shift) | (i32[w + SLOT_PTR] & offsetMask);
        const lenFlags = i32[w + SLOT_LEN_FLAGS];
        descs[d + DESC_LEN] = lenFlags & LEN_MASK;
        descs[d + DESC_OPTIONS] = i > 1 ? PKT_CONTD : 0;
        sent[buf] = lenFlags;
        produced++;
        if (++first === numSlots) first = 0;
      }
    }
    kring.hwcur = first;
    this.inFlight += produced;
    if (produced > 0) tx.produce(produced);
  }

  /** Slots of the frame that starts at `first`: 0 when it is not whole yet, negative when it cannot be sent. */
  #frame(first: number, head: number): number {
    const { ring } = this.tx;
    const { i32, numSlots, slot0, offsetMask, bufSize } = ring;
    let ok = true;
    let slots = 0;
    for (let slot = first; slot !== head; slot = slot + 1 === numSlots ? 0 : slot + 1) {
      const w = slot0 + slot * SLOT_WORDS;
      const buf = i32[w + SLOT_BUF_IDX];
      const lenFlags = i32[w + SLOT_LEN_FLAGS];
      const len = lenFlags & LEN_MASK;
      slots++;
      if (len === 0 || (i32[w + SLOT_PTR] & offsetMask) + len > bufSize) ok = false;
      if (buf < FIRST_BUFFER || buf >= this.#limit || this.#sent[buf] !== 0) ok = false;
      if ((lenFlags & MOREFRAG) === 0)
        return ok && (slots === 1 || (slots <= MAX_TX_DESCS && this.socket.multiBuffer)) ? slots : -slots;
    }
    return 0;
  }

  /** Passes a frame over: its buffers are given back as if they had been sent. Returns the slot after it. */
  #refuse(first: number, slots: number): number {
    const { ring } = this.tx;
    add(this.refused, amountIn(ring, first, slots));
    let slot = first;
    for (let i = 0; i < slots; i++) {
      this.#giveBack(ring.bufIdx(slot));
      slot = ring.after(slot);
    }
    return slot;
  }

  /** Calls the kernel until it has taken all it can: it takes a limited number a call and says EAGAIN. */
  #flush(): void {
    const { tx } = this.socket;
    for (let before = tx.pending(); this.#call(this.socket.wakeTx) === EAGAIN;) {
      const left = tx.pending();
      if (left === 0 || left === before) return;
      before = left;
    }
  }

  #call(wake: () => number): number {
    this.wakeups++;
    const errno = wake();
    if (errno === 0) this.error = 0;
    else if (!TRY_AGAIN.has(errno)) this.error = errno;
    return errno;
  }

  /**
   * Takes back the buffers of descriptors that the kernel has consumed as invalid: it never completes those.
   * Does nothing until no others are in flight.
   * @param invalid such descriptors over the socket's life (XDP_STATISTICS' tx_invalid_descs)
   */
  reclaim(invalid: number): void {
    const stuck = invalid - this.#reclaimed;
    if (stuck === 0 || stuck !== this.inFlight || this.socket.tx.pending() > 0) return;
    this.#reclaimed = invalid;
    for (let buf = FIRST_BUFFER; buf < this.#limit; buf++) {
      if (this.#sent[buf] === 0) continue;
      addSlot(this.refused, this.#sent[buf]);
      this.#sent[buf] = 0;
      this.#giveBack(buf);
    }
    this.inFlight = 0;
    this.tx.publish(this.tx.hwtail);
  }

  /** What is in flight, or in the ring and not handed to the kernel. */
  unsent(): Amount {
    const { hwcur, ring } = this.tx;
    const waiting = (ring.head - hwcur + ring.numSlots) % ring.numSlots;
    const sum = amountIn(ring, hwcur, waiting);
    for (const lenFlags of this.#sent) if (lenFlags !== 0) addSlot(sum, lenFlags);
    return sum;
  }

  /**
   * Where every buffer of this queue is. Each that can be named is counted in `owners[index]`, so that the sum over
   * the queues of a region shows which are owned twice or not at all.
   */
  audit(owners: Uint8Array): QueueAudit {
    const { fill, completion, rx, tx } = this.socket;
    const slots = this.#auditSlots(this.rx.ring, 0, this.rx.ring.numSlots, owners);
    // The slots after hwtail and before hwcur have given their buffers away.
    const { hwcur, hwtail, ring } = this.tx;
    const held = ((hwtail - hwcur + ring.numSlots) % ring.numSlots) + 1;
    const counts = {
      slots: slots + this.#auditSlots(ring, hwcur, held, owners),
      fill: this.#auditRing(fill, ADDR_WORDS, (fill.mine - fill.pending()) | 0, fill.pending(), owners),
      rx: this.#auditRing(rx, DESC_WORDS, rx.mine, rx.available(), owners),
      tx: this.#auditRing(tx, DESC_WORDS, (tx.mine - tx.pending()) | 0, tx.pending(), owners),
      completion: this.#auditRing(completion, ADDR_WORDS, completion.mine, completion.available(), owners),
      kernel: 0,
    };
    counts.kernel = fill.entries - counts.fill - counts.rx + this.inFlight - counts.tx - counts.completion;
    return counts;
  }

  #auditSlots(ring: Ring, first: number, count: number, owners: Uint8Array): number {
    for (let i = 0; i < count; i++) owners[ring.bufIdx(ring.after(first, i))]++;
    return count;
  }

  #auditRing(ring: XdpRing, words: number, first: number, count: number, owners: Uint8Array): number {
    for (let i = 0; i < count; i++) {
      const addr = ring.i32[ring.desc + ((first + i) & ring.mask) * words];
      owners[addr >>> this.#shift]++;
    }
    return count;
  }
}

/** EAGAIN: more to send, or no socket memory; EBUSY: another call is at it; ENOBUFS: completions must be reaped first. */
const TRY_AGAIN = new Set([EAGAIN, 16, 105]);
