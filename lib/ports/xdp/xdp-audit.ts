import { FIRST_BUFFER } from '../../rings/abi.js';
import type { Port } from '../port.js';
import { XdpPort } from './xdp-port.js';

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
      for (const queue of port.queues) kernel += queue.audit(owners).kernel;
    } else {
      for (const ring of [...port.tx, ...port.rx]) for (let i = 0; i < ring.numSlots; i++) owners[ring.bufIdx(i)]++;
    }
  }
  const buffers = memory.bufCount - FIRST_BUFFER;
  const found = owners.reduce((count, times) => count + (times > 0 ? 1 : 0), 0);
  const twice = [...owners.keys()].filter((index) => owners[index] > 1);
  return { buffers, found, kernel, twice, lost: buffers - found - kernel };
}
