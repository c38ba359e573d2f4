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
import { now } from '../../shim/native.js';
import type { Carrier } from './xdp-carrier.js';
import { TX_INVALID_DESCS, type XdpSocket } from './xdp-socket.js';

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

/** Bytes that every frame has at least; the kernel drops a shorter one. */
const ETHERNET_HEADER = 14;

const EAGAIN = 11;

/** ns without a completion after which the kernel is asked whether it found descriptors invalid. */
const STUCK_NS = 10e6;

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
   * Not sent: frames longer than the interface takes or too short for a header, of several slots where the socket takes
   * one, of more than 18, with a slot of length 0, and those that the kernel found invalid.
   */
  readonly refused: Amount = { frames: 0, bytes: 0 };
  /** Of these, frames longer than `longest`, and those shorter than an Ethernet header. */
  tooLong = 0;
  tooShort = 0;
  /** Descriptors from the kernel that named no buffer of the region. */
  corrupt = 0;
  /** Calls made to wake the kernel. */
  wakeups = 0;
  /** errno of the last call that failed for another reason than "try again", until one succeeds; 0 when well. */
  error = 0;
  /** Descriptors handed to the kernel for sending and not yet completed. */
  inFlight = 0;
  /** Slots that wait in the ring because the interface has no carrier. */
  held = 0;
  /** For each buffer in flight the length and flags it was sent with, else 0. */
  readonly #sent: Int32Array;
  #reclaimed = 0;
  /** When buffers in flight were first seen not to come back; 0: they do. */
  #stuckSince = 0;
  readonly #shift: number;
  readonly #limit: number;

  /**
   * @param longest bytes of the longest frame the interface sends
   * @param spare buffers for the fill ring: as many as it has entries
   * @throws RangeError when the rings do not fit together
   */
  constructor(
    readonly rx: Kring,
    readonly tx: Kring,
    readonly socket: XdpSocket,
    private readonly carrier: Pick<Carrier, 'up'>,
    public longest: number,
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
    this.held = 0;
    if (head !== kring.hwcur) {
      if (this.carrier.up) this.#submit(head);
      else this.held = (head - kring.hwcur + kring.ring.numSlots) % kring.ring.numSlots;
    }
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
    if (n <= 0) {
      this.#watchStuck();
      return;
    }
    this.#stuckSince = 0;
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
    let bytes = 0;
    for (let slot = first; slot !== head; slot = slot + 1 === numSlots ? 0 : slot + 1) {
      const w = slot0 + slot * SLOT_WORDS;
      const buf = i32[w + SLOT_BUF_IDX];
      const lenFlags = i32[w + SLOT_LEN_FLAGS];
      const len = lenFlags & LEN_MASK;
      slots++;
      bytes += len;
      if (len === 0 || (i32[w + SLOT_PTR] & offsetMask) + len > bufSize) ok = false;
      if (buf < FIRST_BUFFER || buf >= this.#limit || this.#sent[buf] !== 0) ok = false;
      if ((lenFlags & MOREFRAG) !== 0) continue;
      if (bytes > this.longest || bytes < ETHERNET_HEADER) ok = this.#wrongSize(bytes);
      return ok && (slots === 1 || (slots <= MAX_TX_DESCS && this.socket.multiBuffer)) ? slots : -slots;
    }
    return 0;
  }

  #wrongSize(bytes: number): false {
    if (bytes < ETHERNET_HEADER) this.tooShort++;
    else this.tooLong++;
    return false;
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

  /** Nothing came back: once that has lasted, the kernel may have found what is in flight invalid. */
  #watchStuck(): void {
    const t = now();
    if (this.#stuckSince === 0) this.#stuckSince = t;
    if (t - this.#stuckSince < STUCK_NS) return;
    this.#stuckSince = 0;
    this.#reclaim();
  }

  /**
   * Takes back the buffers of descriptors that the kernel has consumed as invalid: it never completes those.
   * Does nothing until no others are in flight.
   */
  #reclaim(): void {
    if (this.socket.tx.pending() > 0) return;
    const invalid = this.socket.statistics()[TX_INVALID_DESCS];
    const stuck = invalid - this.#reclaimed;
    if (stuck === 0 || stuck !== this.inFlight) return;
    this.#reclaimed = invalid;
    for (let buf = FIRST_BUFFER; buf < this.#limit; buf++) {
      if (this.#sent[buf] === 0) continue;
      addSlot(this.refused, this.#sent[buf]);
      this.#sent[buf] = 0;
      this.#giveBack(buf);
    }
    this.inFlight = 0;
  }

  /** Frames that arrived and that the user has not taken: in the socket's ring, and in the slots. */
  untaken(): number {
    const { socket, rx: kring } = this;
    const { ring, hwtail } = kring;
    const slots = (hwtail - ring.head + ring.numSlots) % ring.numSlots;
    let frames = amountIn(ring, ring.head, slots).frames;
    for (let n = socket.rx.available() - 1; n >= 0; n--)
      if (!this.#continues((socket.rx.mine + n) & socket.rx.mask)) frames++;
    return frames;
  }

  /** What is in flight, or in the ring and not handed to the kernel. */
  unsent(): Amount {
    const { hwcur, ring } = this.tx;
    const waiting = (ring.head - hwcur + ring.numSlots) % ring.numSlots;
    const sum = amountIn(ring, hwcur, waiting);
    for (const lenFlags of this.#sent) if (lenFlags !== 0) addSlot(sum, lenFlags);
    return sum;
  }
}

/** EAGAIN: more to send, or no socket memory; EBUSY: another call is at it; ENOBUFS: completions must be reaped first. */
const TRY_AGAIN = new Set([EAGAIN, 16, 105]);
