import type { Memory } from '../../rings/memory.js';
import { native, now } from '../../shim/native.js';
import { XdpRing } from './xdp-ring.js';

/** Bind flags of linux/if_xdp.h. */
const XDP_SHARED_UMEM = 1 << 0;
const XDP_COPY = 1 << 1;
const XDP_ZEROCOPY = 1 << 2;
const XDP_USE_NEED_WAKEUP = 1 << 3;
const XDP_USE_SG = 1 << 4;

const SOL_SOCKET = 1;
const SO_SNDBUFFORCE = 32;
const SO_BUSY_POLL = 46;
const SO_PREFER_BUSY_POLL = 69;
const SO_BUSY_POLL_BUDGET = 70;
const SOL_XDP = 283;
/** Linux 6.17: frames one call sends in copy mode, 32 where it is not known. */
const XDP_MAX_TX_SKB_BUDGET = 9;

/** Microseconds SO_BUSY_POLL may poll in a blocking call; ours never block, but 0 would turn busy polling off. */
const BUSY_POLL_US = 20;
/** What the kernel charges a socket for a frame on its way: the skb and its data, generously. */
const SKB_OVERHEAD = 1024;

/** ns to wait for a queue that is in use; it is let go within milliseconds, later on a machine under load. */
const QUEUE_WAIT_NS = 2e9;

export interface SocketPlan {
  /** The port as the user wrote it. */
  port: string;
  netns: string;
  ifindex: number;
  queue: number;
  copy: 'zerocopy' | 'copy' | 'auto';
  multiBuffer: boolean;
  /** Entries of each of its four rings, a power of two. */
  entries: number;
  /** Frames a busy-poll turn may handle; 0: interrupts. */
  busyPoll: number;
  /** Waits a while for a queue that is in use; where a loop must go on, it does not. */
  patient: boolean;
}

/** One AF_XDP socket, bound to a queue. */
export interface XdpSocket {
  readonly handle: number;
  /** For poll(). */
  readonly fd: number;
  readonly fill: XdpRing;
  readonly completion: XdpRing;
  readonly rx: XdpRing;
  readonly tx: XdpRing;
  /** The driver works on the buffers themselves; else the kernel copies every frame. */
  readonly zeroCopy: boolean;
  /** Frames of several descriptors are understood (XDP_USE_SG). */
  readonly multiBuffer: boolean;
  /** The interface is polled by calls instead of by interrupts. */
  readonly busyPoll: boolean;
  /** Call the kernel on behalf of a ring: 0 or an errno. */
  readonly wakeRx: () => number;
  readonly wakeTx: () => number;
  /** XDP_STATISTICS now, in the order of STATISTICS; the same array every time. */
  readonly statistics: () => Float64Array;
  readonly close: () => void;
}

/** The kernel's counters of a socket, in the order in which the shim tells them. */
export const STATISTICS = [
  'rx_dropped',
  'rx_invalid_descs',
  'tx_invalid_descs',
  'rx_ring_full',
  'rx_fill_ring_empty_descs',
  'tx_ring_empty_descs',
] as const;
export const TX_INVALID_DESCS = STATISTICS.indexOf('tx_invalid_descs');

/**
 * Opens a socket on a queue. The first of a port registers the memory's buffers as its UMEM, the others share that.
 * Every port registers them anew, although the ports of a bridge exchange buffers: the kernel takes the mode of the
 * first socket for all that share a UMEM, and so two interfaces with different abilities get on.
 *
 * @param first the port's first socket, if this is not it
 * @throws Error of the shim, with the call that failed in `syscall`
 */
export function openSocket(plan: SocketPlan, memory: Memory, first: XdpSocket | undefined): XdpSocket {
  const { handle, fd } = native.xdpSocket(plan.port, plan.netns);
  const statistics = new Float64Array(STATISTICS.length);
  const close = () => {
    native.xdpClose(handle);
  };
  try {
    const { entries } = plan;
    if (first === undefined)
      native.xdpUmem(handle, memory.handle, memory.bufBase, memory.bufCount * memory.bufSize, memory.bufSize);
    const maps = native.xdpRings(handle, entries, entries, entries, entries);
    const flags =
      XDP_USE_NEED_WAKEUP |
      (plan.multiBuffer ? XDP_USE_SG : 0) |
      (plan.copy === 'copy' ? XDP_COPY : plan.copy === 'zerocopy' ? XDP_ZEROCOPY : 0);
    bind(plan.patient ? QUEUE_WAIT_NS : 0, () => {
      native.xdpBind(handle, plan.ifindex, plan.queue, first ? XDP_SHARED_UMEM : flags, first?.handle ?? -1);
    });
    const zeroCopy = (native.xdpOptions(handle) & 1) !== 0;
    if (!zeroCopy) {
      // In copy mode every frame is an skb charged to the socket until its receiver lets it go: room for a full ring.
      native.xdpSetOption(handle, SOL_SOCKET, SO_SNDBUFFORCE, entries * (memory.bufSize + SKB_OVERHEAD));
      native.xdpSetOption(handle, SOL_XDP, XDP_MAX_TX_SKB_BUDGET, entries);
    }
    return {
      handle,
      fd,
      fill: new XdpRing(maps.fill),
      completion: new XdpRing(maps.completion),
      rx: new XdpRing(maps.rx),
      tx: new XdpRing(maps.tx),
      zeroCopy,
      multiBuffer: plan.multiBuffer,
      busyPoll: plan.busyPoll > 0 && setBusyPoll(handle, plan.busyPoll),
      wakeRx: () => native.xdpWakeRx(handle),
      wakeTx: () => native.xdpWakeTx(handle),
      statistics: () => {
        native.xdpStatistics(handle, statistics);
        return statistics;
      },
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/**
 * A queue whose socket was closed, or whose process was killed, is let go by the kernel a little later, in its own
 * time: a port that is opened again at once must wait for it.
 */
function bind(waitNs: number, attempt: () => void): void {
  for (const deadline = now() + waitNs; ;) {
    try {
      attempt();
      return;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EBUSY' || now() > deadline) throw error;
      native.sleepNs(1e6);
    }
  }
}

/** Linux 5.11: the interface is polled by our calls, and its interrupts stay off while they come. */
function setBusyPoll(handle: number, budget: number): boolean {
  return (
    native.xdpSetOption(handle, SOL_SOCKET, SO_PREFER_BUSY_POLL, 1) === 0 &&
    native.xdpSetOption(handle, SOL_SOCKET, SO_BUSY_POLL, BUSY_POLL_US) === 0 &&
    native.xdpSetOption(handle, SOL_SOCKET, SO_BUSY_POLL_BUDGET, budget) === 0
  );
}
