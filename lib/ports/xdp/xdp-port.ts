import { sumOf, type Amount } from '../../rings/amount.js';
import { RING_TAIL } from '../../rings/abi.js';
import { PortError } from '../../text/errors.js';
import { Kring } from '../../rings/kring.js';
import type { Memory, RingPlan } from '../../rings/memory.js';
import { native } from '../../shim/native.js';
import type { Netdev, Outside, Port, PortOptions, Prepared } from '../port.js';
import type { XdpSpec } from '../../names/portspec.js';
import type { Region } from '../../rings/region.js';
import type { Ring } from '../../rings/ring.js';
import { withRemedy, type XdpContext } from './xdp-errors.js';
import type { NetdevInfo } from '../../shim/native-netdev.js';
import { requireEthernet } from '../interface.js';
import { wholeName } from '../../names/xdp-name.js';
import { Carrier } from './xdp-carrier.js';
import { XdpGate, type SharedGate } from './xdp-gate.js';
import { errnoText, XdpInterface } from './xdp-interface.js';
import { xdpNotes } from './xdp-notes.js';
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
  const slots = queues.map(() => spec.slots);
  return {
    spec,
    netns,
    info,
    queues,
    // One buffer more for every entry of the fill rings, which are kept full.
    rings: { tx: slots, rx: slots, extraBuffers: queues.length * spec.slots },
    multiBuffer: info.mtu + L2_BYTES > spec.frame - HEADROOM,
    promisc: options.promisc ?? true,
    gate: options.gate,
  };
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
  return Array.from({ length: last - first + 1 }, (_, i) => first + i);
}

/** A Linux interface: one AF_XDP socket, one rx and one tx ring for each of its queues. */
export class XdpPort implements Port {
  readonly driver = 'xdp';
  readonly name: string;
  readonly region: Region;
  readonly tx: readonly Ring[];
  readonly rx: readonly Ring[];
  readonly hostTx: readonly Ring[] = [];
  readonly hostRx: readonly Ring[] = [];
  readonly notes: readonly string[];
  readonly napNs = 0;
  readonly hasLink = true;
  readonly netdev: Netdev;
  readonly queues: XdpQueue[] = [];
  readonly #sockets: XdpSocket[] = [];
  readonly #first: number;
  #gate: XdpGate | undefined;
  #carrier: Carrier | undefined;
  #interface: XdpInterface | undefined;
  /** The error of sending or receiving that was told last; 0: none, or it is over. */
  #told = 0;
  #closed = false;

  /** @throws PortError with the cause and the remedy */
  constructor(
    plan: XdpPlan,
    readonly memory: Memory,
  ) {
    this.name = plan.spec.text;
    this.netdev = { ifname: plan.spec.ifname, netns: plan.netns };
    [this.#first] = plan.queues;
    this.region = memory.region;
    const { tx, rx, extra } = memory.carve(plan.rings);
    this.tx = tx;
    this.rx = rx;
    try {
      this.notes = this.#open(plan, extra);
    } catch (error) {
      this.close();
      throw withRemedy(error, {
        ...contextOf(plan),
        queue: plan.queues[this.queues.length] ?? 0,
        bytes: memory.bufCount * memory.bufSize,
      });
    }
  }

  #open(plan: XdpPlan, extra: Int32Array): string[] {
    const { spec, netns, queues, info } = plan;
    native.raiseMemlock();
    this.#carrier = new Carrier(spec.ifname, netns);
    for (const [i, queue] of queues.entries()) {
      const socket = openSocket(
        {
          port: spec.text,
          netns,
          ifindex: info.index,
          queue,
          copy: spec.copy,
          multiBuffer: plan.multiBuffer,
          entries: spec.slots,
          busyPoll: spec.busyPoll,
        },
        this.memory,
        this.#sockets[0],
      );
      this.#sockets.push(socket);
      const spare = extra.subarray(i * spec.slots, (i + 1) * spec.slots);
      const [rx, tx] = [new Kring(this.rx[i]), new Kring(this.tx[i])];
      this.queues.push(new XdpQueue(rx, tx, socket, this.#carrier, info.mtu + L2_BYTES_OUT, spare));
    }
    this.#gate = openGate(plan);
    // After the program, because drivers reset the device when one is attached; before its first frame.
    this.#interface = new XdpInterface(spec.ifname, netns);
    for (const [i, queue] of queues.entries()) this.#gate.enter(queue, this.#sockets[i].handle);
    return xdpNotes(spec, info, queues, this.#sockets[0], this.#gate);
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

  get fds(): readonly number[] {
    return this.#sockets.map((socket) => socket.fd);
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

  /** @throws PortError when the interface is gone */
  news(): string[] {
    const { name } = this;
    const said: string[] = [];
    const error = this.queues.find((queue) => queue.error !== 0 && queue.error !== ENETDOWN)?.error ?? 0;
    if (error !== this.#told)
      said.push(
        error === 0
          ? `${name}: the kernel takes frames again`
          : `${name}: the kernel does not move frames: ${errnoText(error)}`,
      );
    this.#told = error;
    this.#ask(() => {
      this.#interface!.look();
    });
    for (const queue of this.queues) queue.longest = this.#interface!.mtu + L2_BYTES_OUT;
    const queues = this.#interface!.queueNews(this.#gate!.queues);
    if (queues !== undefined) said.push(`${name}: ${queues}`);
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
   * The interface's, since the port was opened, whoever used it: frames it lost, `interface_…` (see XdpInterface).
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
    // Threads that share an interface tell its counters once.
    const tells = this.#gate?.first === this.#first;
    return tells ? { ...sum, ...this.#interface!.losses() } : sum;
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    // The memory may live on, with the other port of a bridge.
    for (const ring of [...this.tx, ...this.rx]) ring.i32[ring.base + RING_TAIL] = ring.head;
    this.#gate?.close();
    for (const socket of this.#sockets) socket.close();
    this.#carrier?.close();
    this.memory.release();
  }
}
