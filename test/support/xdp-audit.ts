// The UMEM that ports share, buffer by buffer.
import { FIRST_BUFFER } from '../../lib/rings/abi.js';
import type { Ring } from '../../lib/rings/ring.js';
import type { Port } from '../../lib/ports/port.js';
import { XdpPort } from '../../lib/ports/xdp/xdp-port.js';
import type { XdpQueue } from '../../lib/ports/xdp/xdp-queue.js';
import type { XdpRing } from '../../lib/ports/xdp/xdp-ring.js';

/** Words of a descriptor in the rx and tx rings, and in the fill and completion rings. */
const DESC_WORDS = 4;
const ADDR_WORDS = 2;

/** Where the buffers of one memory are; see auditBuffers. */
export interface BufferAudit {
  /** Buffers there are, the two reserved ones left out. */
  buffers: number;
  /** Found in a slot or in a ring shared with the kernel. */
  found: number;
  /** Handed to the kernel and in no ring. */
  kernel: number;
  /** Indices found more than once. */
  twice: number[];
  /** Buffers neither found nor with the kernel; negative when more are claimed than there are. */
  lost: number;
}

/**
 * Accounts for every buffer of the memory that the ports share: each is in exactly one slot, in exactly one of the
 * rings shared with the kernel, or with the kernel. `ports` must be all ports of that memory, and idle.
 */
export function auditBuffers(ports: readonly Port[]): BufferAudit {
  const memory = ports.find((port) => port instanceof XdpPort)?.memory;
  if (memory === undefined) throw new TypeError('auditBuffers: none of the ports is an xdp port');
  const owners = new Uint8Array(memory.bufCount);
  let kernel = 0;
  for (const port of ports) {
    if (port instanceof XdpPort) {
      for (const queue of port.queues) kernel += auditQueue(queue, owners);
    } else {
      for (const ring of [...port.tx, ...port.rx]) for (let i = 0; i < ring.numSlots; i++) owners[ring.bufIdx(i)]++;
    }
  }
  const buffers = memory.bufCount - FIRST_BUFFER;
  const found = owners.reduce((count, times) => count + (times > 0 ? 1 : 0), 0);
  const twice = [...owners.keys()].filter((index) => owners[index] > 1);
  return { buffers, found, kernel, twice, lost: buffers - found - kernel };
}

/** Counts each buffer of a queue that can be named in `owners`; returns how many the kernel has and no ring shows. */
function auditQueue({ socket, rx, tx, inFlight }: XdpQueue, owners: Uint8Array): number {
  const shift = Math.log2(rx.ring.bufSize);
  const slots = (ring: Ring, first: number, count: number): void => {
    for (let i = 0; i < count; i++) owners[ring.bufIdx(ring.after(first, i))]++;
  };
  const descriptors = (ring: XdpRing, words: number, first: number, count: number): number => {
    for (let i = 0; i < count; i++) owners[ring.i32[ring.desc + ((first + i) & ring.mask) * words] >>> shift]++;
    return count;
  };
  slots(rx.ring, 0, rx.ring.numSlots);
  // The slots after hwtail and before hwcur have given their buffers away.
  const { hwcur, hwtail, ring } = tx;
  slots(ring, hwcur, ((hwtail - hwcur + ring.numSlots) % ring.numSlots) + 1);
  const { fill, completion } = socket;
  const produced = (one: XdpRing, words: number): number =>
    descriptors(one, words, (one.mine - one.pending()) | 0, one.pending());
  const consumed = (one: XdpRing, words: number): number => descriptors(one, words, one.mine, one.available());
  return (
    fill.entries +
    inFlight -
    produced(fill, ADDR_WORDS) -
    consumed(socket.rx, DESC_WORDS) -
    produced(socket.tx, DESC_WORDS) -
    consumed(completion, ADDR_WORDS)
  );
}
