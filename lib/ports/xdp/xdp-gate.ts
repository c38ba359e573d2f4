import { native } from '../../shim/native.js';
import type { XdpSpec } from '../../names/portspec.js';
import { attach, type Attachment, type XdpMode } from './xdp-attach.js';
import { redirectProgram } from './xdp-program.js';

/** Queues that the map has room for at least, 8 bytes each: an interface may get more while it is open. */
const QUEUES = 1024;

/** A gate that another thread of this process keeps open; plain data. */
export interface SharedGate {
  /** Descriptor of its map. */
  fd: number;
  mode: XdpMode;
  /** Queues whose frames come through it, and the first of them. */
  queues: number;
  first: number;
}

/**
 * What brings an interface's frames to AF_XDP sockets: a map from queue to socket, the program that looks a frame's queue
 * up in it, and promiscuous mode. There is one of each for an interface, so the threads that have a share of its queues
 * each go through the gate that the first of them opened.
 */
export class XdpGate {
  readonly mode: XdpMode;
  /** Queues whose frames come through it. */
  queues: number;
  readonly first: number;
  readonly #map: { handle: number; fd: number };
  #attachment: Attachment | undefined;
  #promisc = -1;

  /**
   * @param frags whether frames of several buffers may come
   * @param shared a gate that is open already: this one then only adds to it
   * @throws Error of the shim, with the call that failed in `syscall`
   */
  constructor(
    spec: XdpSpec,
    {
      ifindex,
      queues,
      frags,
      promisc,
    }: { ifindex: number; queues: readonly number[]; frags: boolean; promisc: boolean },
    shared?: SharedGate,
  ) {
    const { text, ifname, netns = '' } = spec;
    if (shared !== undefined) {
      this.mode = shared.mode;
      this.queues = shared.queues;
      this.first = shared.first;
      this.#map = native.bpfDup(text, shared.fd);
      return;
    }
    this.queues = queues.length;
    this.first = queues[0];
    this.#map = native.bpfXskMap(text, Math.max(QUEUES, queues.at(-1)! + 1));
    try {
      this.#attachment = attach({ text, ifindex, netns }, redirectProgram(this.#map.fd), spec.mode, frags);
      this.mode = this.#attachment.mode;
      // After the program: drivers reset the device when one is attached.
      if (promisc) this.#promisc = native.netdevPromiscOpen(ifname, netns);
    } catch (error) {
      this.close();
      throw error;
    }
  }

  /** For other threads of this process, while this gate is open. */
  get shared(): SharedGate {
    return { fd: this.#map.fd, mode: this.mode, queues: this.queues, first: this.first };
  }

  /** From now on the queue's frames go to the socket. */
  enter(queue: number, socket: number): void {
    native.bpfMapSet(this.#map.handle, queue, socket);
  }

  /** Lets frames through that arrive on rx queues which were added since. */
  renew(): void {
    this.#attachment?.renew();
  }

  close(): void {
    if (this.#promisc >= 0) native.netdevPromiscClose(this.#promisc);
    this.#attachment?.close();
    native.bpfClose(this.#map.handle);
  }
}
