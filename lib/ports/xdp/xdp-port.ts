import { sumOf, type Amount } from '../../rings/amount.js';
import { RING_TAIL } from '../../rings/abi.js';
import { PortError } from '../../text/errors.js';
import { Kring } from '../../rings/kring.js';
import { Memory, type Carved, type RingPlan } from '../../rings/memory.js';
import { native } from '../../shim/native.js';
import type { Netdev, Outside, Port, PortOptions, Prepared } from '../port.js';
import type { XdpSpec } from '../../names/portspec.js';
import type { Region } from '../../rings/region.js';
import type { Ring } from '../../rings/ring.js';
import { NetdevCounters } from '../netdev-counters.js';
import { errnoText } from '../remedies.js';
import { withRemedy, type XdpContext } from './xdp-errors.js';
import type { NetdevInfo } from '../../shim/native-netdev.js';
import { requireEthernet } from '../interface.js';
import { wholeName } from '../../names/xdp-name.js';
import { Carrier } from './xdp-carrier.js';
import { XdpGate, type SharedGate } from './xdp-gate.js';
import { queueNews, queueSpan, xdpNotes } from './xdp-notes.js';
import { XdpQueue } from './xdp-queue.js';
import { openSocket, STATISTICS, type XdpSocket } from './xdp-socket.js';

/** XDP_PACKET_HEADROOM of linux/bpf.h: received data starts this far into its buffer. */
const HEADROOM = 256;
/** Bytes beside the MTU that a frame may have: Ethernet header and two VLAN tags on arrival, one on its way out. */
const L2_BYTES = 14 + 2 * 4;
const L2_BYTES_OUT = 14 + 4;

/** What a socket answers whose interface is gone; one that is only down says ENETDOWN. */
const ENXIO = 6;
const ENETDOWN = 100;

/** What is known about a port before there is memory for it. */
interface XdpPlan {
  spec: XdpSpec;
  netns: string;
  info: NetdevInfo;
  queues: readonly number[];
  rings: RingPlan;
  /** The MTU needs frames of several buffers. */
  multiBuffer: boolean;
  promisc: boolean;
  gate: SharedGate | undefined;
}

/** @throws PortError when the interface is not there or lacks a queue that was asked for */
function planXdp(spec: XdpSpec, options: PortOptions): XdpPlan {
  const netns = spec.netns ?? '';
  let info: NetdevInfo;
  try {
    info = native.netdevInfo(spec.ifname, netns);
  } catch (error) {
    throw withRemedy(error, { port: spec.text, ifname: spec.ifname, netns, whole: wholeName(spec) });
  }
  requireEthernet(spec.text, spec.ifname, info);
  const queues = chooseQueues(spec, info);
  return {
    spec,
    netns,
    info,
    queues,
    rings: planRings(spec, queues.length),
    multiBuffer: info.mtu + L2_BYTES > spec.frame - HEADROOM,
    promisc: options.promisc ?? true,
    gate: options.gate,
  };
}

/** A pair of rings for each queue, and a buffer more for every entry of the fill rings, which are kept full. */
function planRings({ slots }: XdpSpec, queues: number, firstId = 0): RingPlan {
  const each = Array.from({ length: queues }, () => slots);
  return { tx: each, rx: each, extraBuffers: queues * slots, firstId };
}

/**
 * Prepares a Linux interface behind AF_XDP sockets, one for each queue.
 * @throws PortError when the interface is not there or lacks a queue that was asked for
 */
export function prepareXdp(spec: XdpSpec, options: PortOptions): Prepared {
  const plan = planXdp(spec, options);
  return {
    needs: { plan: plan.rings, bufSize: spec.frame, offsetMask: spec.frame - 1 },
    open: (memory) => new XdpPort(plan, memory!),
  };
}

/**
 * What threads need that each open some of an interface's queues: which there are, and the gate, to be closed after them.
 * @throws PortError when the interface is not there, lacks a queue that was asked for, or has a program already
 */
export function openQueues(spec: XdpSpec, options: PortOptions): { queues: readonly number[]; gate: XdpGate } {
  const plan = planXdp(spec, options);
  try {
    return { queues: plan.queues, gate: openGate(plan) };
  } catch (error) {
    throw withRemedy(error, contextOf(plan));
  }
}

function openGate({ spec, info, queues, multiBuffer, promisc, gate }: XdpPlan): XdpGate {
  return new XdpGate(spec, { ifindex: info.index, queues, frags: multiBuffer, promisc }, gate);
}

function contextOf({ spec, netns, info, multiBuffer }: XdpPlan): XdpContext {
  return { port: spec.text, ifname: spec.ifname, netns, mtu: info.mtu, multiBuffer };
}

/** A socket takes a queue both ways, so only those that exist both ways can be opened. */
function chooseQueues(spec: XdpSpec, info: NetdevInfo): number[] {
  const rx = info.rxQueues ?? 1;
  const tx = info.txQueues ?? rx;
  const { first, last } = spec.queues === 'all' ? { first: 0, last: rx - 1 } : spec.queues;
  if (last >= Math.min(rx, tx)) {
    const remedy =
      last < rx
        ? `make them equal with ethtool -L, or choose @queue=0:${tx - 1} and lose what arrives on the others`
        : `queues are counted from 0, see: ethtool -l ${spec.ifname}`;
    const whole = wholeName(spec);
    throw new PortError(
      `${spec.text}: cannot open queue ${last}: ${spec.ifname} has ${rx} rx and ${tx} tx queues; ${remedy}` +
        (whole === undefined ? '' : `; there is no interface named ${whole} either`),
      spec.text,
    );
  }
  return range(first, last);
}

function range(first: number, last: number): number[] {
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** A Linux interface: one AF_XDP socket, one rx and one tx ring for each of its queues. */
export class XdpPort implements Port {
  readonly driver = 'xdp';
  readonly name: string;
  readonly region: Region;
  readonly tx: Ring[] = [];
  readonly rx: Ring[] = [];
  readonly hostTx: readonly Ring[] = [];
  readonly hostRx: readonly Ring[] = [];
  readonly notes: readonly string[];
  readonly napNs = 0;
  readonly hasLink = true;
  readonly netdev: Netdev;
  readonly fds: number[] = [];
  readonly queues: XdpQueue[] = [];
  readonly #plan: XdpPlan;
  /** Of queues that were opened later. */
  readonly #memories: Memory[] = [];
  #gate: XdpGate | undefined;
  #carrier: Carrier | undefined;
  #interface: NetdevCounters | undefined;
  /** What was opened last, for what is said of an error. */
  #opening = { queue: 0, bytes: 0 };
  /** rx queues that the interface had when that was told last. */
  #rxQueues = 0;
  #said: string[] = [];
  /** The error of sending or receiving that was told last; 0: none, or it is over. */
  #told = 0;
  #closed = false;

  /** @throws PortError with the cause and the remedy */
  constructor(
    plan: XdpPlan,
    readonly memory: Memory,
  ) {
    this.#plan = plan;
    this.name = plan.spec.text;
    this.netdev = { ifname: plan.spec.ifname, netns: plan.netns };
    this.region = memory.region;
    const carved = memory.carve(plan.rings);
    try {
      this.notes = this.#open(carved);
    } catch (error) {
      this.close();
      throw this.#withRemedy(error);
    }
  }

  #withRemedy(error: unknown): PortError {
    return withRemedy(error, { ...contextOf(this.#plan), ...this.#opening });
  }

  #open(carved: Carved): string[] {
    const { spec, info, queues } = this.#plan;
    native.raiseMemlock();
    this.#carrier = new Carrier(this.netdev);
    this.#openQueues(queues, this.memory, carved, info.mtu);
    this.#gate = openGate(this.#plan);
    // After the program, because drivers reset the device when one is attached; before its first frame.
    this.#interface = new NetdevCounters(this.netdev);
    this.#rxQueues = this.#interface.rxQueues;
    this.#enter(queues);
    return xdpNotes(spec, info, queues, this.queues[0].socket, this.#gate);
  }

  /** Opens a socket on each of the queues, all of them or none, with rings and buffers of one memory. */
  #openQueues(numbers: readonly number[], memory: Memory, { tx, rx, extra }: Carved, mtu: number): void {
    const { spec, netns, info, multiBuffer } = this.#plan;
    const sockets: XdpSocket[] = [];
    const queues: XdpQueue[] = [];
    try {
      for (const [i, queue] of numbers.entries()) {
        this.#opening = { queue, bytes: memory.bufCount * memory.bufSize };
        const socket = openSocket(
          {
            port: spec.text,
            netns,
            ifindex: info.index,
            queue,
            copy: spec.copy,
            multiBuffer,
            entries: spec.slots,
            busyPoll: spec.busyPoll,
            patient: this.#interface === undefined,
          },
          memory,
          sockets[0],
        );
        sockets.push(socket);
        const spare = extra.subarray(i * spec.slots, (i + 1) * spec.slots);
        const krings = [new Kring(rx[i]), new Kring(tx[i])] as const;
        queues.push(new XdpQueue(...krings, socket, this.#carrier!, mtu + L2_BYTES_OUT, spare));
      }
    } catch (error) {
      for (const socket of sockets) socket.close();
      throw error;
    }
    this.tx.push(...tx);
    this.rx.push(...rx);
    this.fds.push(...sockets.map(({ fd }) => fd));
    this.queues.push(...queues);
  }

  /** From now on frames come in through the queues that were opened last: these. */
  #enter(numbers: readonly number[]): void {
    const opened = this.queues.slice(-numbers.length);
    for (const [i, queue] of numbers.entries()) this.#gate!.enter(queue, opened[i].socket.handle);
  }

  /**
   * While the interface is down or has no carrier frames wait here and leave when it is up again.
   * @throws PortError when the interface is gone and there is something to send; linkUp() finds out without
   */
  txsync(): void {
    if (this.#closed) return;
    for (const queue of this.queues) {
      queue.txsync();
      if (queue.error === ENXIO) throw this.#gone();
    }
    if (this.#carrier!.gone) throw this.#gone();
  }

  rxsync(): void {
    if (this.#closed) return;
    for (const queue of this.queues) queue.rxsync();
  }

  #gone(): PortError {
    return new PortError(
      `${this.name}: the interface ${this.netdev.ifname} is gone: it was deleted, renamed, or moved to another network namespace`,
      this.name,
      { code: 'ENODEV' },
    );
  }

  /** @throws PortError when the interface is gone */
  linkUp(): boolean {
    return this.#ask(() => native.netdevLink(this.netdev.ifname, this.netdev.netns));
  }

  /** @throws PortError when the interface is gone */
  #ask<T>(question: () => T): T {
    try {
      return question();
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      if (code === 'ENODEV' || code === 'ENOENT') throw this.#gone();
      throw error;
    }
  }

  look(grow: boolean): void {
    const counters = this.#interface!;
    this.#ask(() => {
      counters.look();
    });
    for (const queue of this.queues) queue.longest = counters.mtu + L2_BYTES_OUT;
    const [before, after] = [this.#rxQueues, counters.rxQueues];
    if (after === before) return;
    this.#rxQueues = after;
    const opened = after > before ? this.#added(grow) : undefined;
    // Of threads that share an interface one tells.
    if (this.#tells)
      this.#said.push(`${this.name}: ${queueNews(this.netdev.ifname, before, after, this.#gate!.queues, opened)}`);
  }

  /** Takes in rx queues that were added. Returns what is to be said of it; undefined where none was opened. */
  #added(grow: boolean): string | undefined {
    try {
      this.#gate!.renew();
      return grow ? this.#grow() : undefined;
    } catch (error) {
      return `what arrives on the new ones goes to the host, for they cannot be opened: ${this.#withRemedy(error).message}`;
    }
  }

  /**
   * Opens the queues that are not open, where the port is to have all of them. Their memory is one of their own, for the
   * port's has room for those that there were at first.
   */
  #grow(): string | undefined {
    const { spec, gate } = this.#plan;
    const { rxQueues, txQueues, mtu } = this.#interface!;
    const served = this.queues.length;
    const numbers = range(served, Math.min(rxQueues, txQueues) - 1);
    if (spec.queues !== 'all' || gate !== undefined || numbers.length === 0) return undefined;
    const { bufSize } = this.memory;
    const rings = planRings(spec, numbers.length, served);
    const memory = new Memory({ plans: [rings], bufSize, offsetMask: bufSize - 1 });
    const carved = memory.carve(rings);
    memory.release(); // what is left is the port's own use
    try {
      this.#openQueues(numbers, memory, carved, mtu);
    } catch (error) {
      memory.release();
      throw error;
    }
    this.#memories.push(memory);
    this.#gate!.queues += numbers.length;
    this.#enter(numbers);
    const rest =
      rxQueues > this.queues.length ? '; the others have no tx queue, and what arrives there goes to the host' : '';
    return `${queueSpan(numbers)} open, and copied from there, for the new buffers are in a memory of their own${rest}`;
  }

  news(): string[] {
    const { name } = this;
    const said = this.#said;
    this.#said = [];
    const error = this.queues.find((queue) => queue.error !== 0 && queue.error !== ENETDOWN)?.error ?? 0;
    if (error !== this.#told)
      said.push(
        error === 0
          ? `${name}: the kernel takes frames again`
          : `${name}: the kernel does not move frames: ${errnoText(error)}`,
      );
    this.#told = error;
    return said;
  }

  ended(): boolean {
    return false;
  }

  txPending(): number {
    return this.queues.reduce((sum, queue) => sum + queue.inFlight + queue.held, 0);
  }

  refused(): Amount {
    return sumOf(this.queues.map((queue) => queue.refused));
  }

  unsent(): Amount {
    return sumOf(this.queues.map((queue) => queue.unsent()));
  }

  outside(): Outside {
    return this.#interface!.outside(() => {
      let [lost, waiting] = [0, 0];
      for (const queue of this.queues) {
        const kernel = queue.socket.statistics();
        lost += kernel[STATISTICS.indexOf('rx_dropped')] + kernel[STATISTICS.indexOf('rx_ring_full')] + queue.corrupt;
        waiting += queue.untaken();
      }
      return { lost, waiting };
    });
  }

  /**
   * Sums over the queues. The kernel's (XDP_STATISTICS, descriptors): `rx_dropped` (too long, or no buffer),
   * `rx_invalid_descs`, `tx_invalid_descs`, `rx_ring_full`, `rx_fill_ring_empty_descs`, `tx_ring_empty_descs`.
   * Our own: `tx_refused` frames that were not handed to the kernel, of these `tx_too_long` for the MTU and `tx_too_short`
   * for an Ethernet header, `corrupt` descriptors that named no buffer, `wakeups` calls made to wake the kernel,
   * `reinits` rings put back because the user broke netmap's rules.
   * The interface's, since the port was opened, whoever used it: frames it lost, `interface_…` (see NetdevCounters).
   */
  stats(): Record<string, number> {
    const sum: Record<string, number> = {};
    const add = (name: string, value: number) => {
      sum[name] = (sum[name] ?? 0) + value;
    };
    for (const queue of this.queues) {
      const kernel = queue.socket.statistics();
      for (const [k, name] of STATISTICS.entries()) add(name, kernel[k]);
      add('tx_refused', queue.refused.frames);
      add('tx_too_long', queue.tooLong);
      add('tx_too_short', queue.tooShort);
      add('corrupt', queue.corrupt);
      add('wakeups', queue.wakeups);
      add('reinits', queue.rx.reinits + queue.tx.reinits);
    }
    return this.#tells ? { ...sum, ...this.#interface!.losses() } : sum;
  }

  /** Threads that share an interface tell what is the interface's once. */
  get #tells(): boolean {
    return this.#gate?.first === this.#plan.queues[0];
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // The memory may live on, with the other port of a bridge.
    for (const ring of [...this.tx, ...this.rx]) ring.i32[ring.base + RING_TAIL] = ring.head;
    this.#gate?.close();
    for (const { socket } of this.queues) socket.close();
    this.#carrier?.close();
    for (const memory of [this.memory, ...this.#memories]) memory.release();
  }
}
