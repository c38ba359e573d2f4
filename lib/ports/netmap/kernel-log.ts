import { closeSync, constants, openSync, readSync } from 'node:fs';

/** Lines quoted at most. */
const QUOTED = 2;

/**
 * The kernel's log from here on, where it can be read: Linux, as root as a rule. netmap's module says there, and only
 * there, why it refuses a request.
 */
export class KernelLog {
  readonly #fd: number;
  readonly #record = Buffer.alloc(8192);

  constructor(path = '/dev/kmsg') {
    let fd = -1;
    try {
      fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    } catch {
      // Then it says nothing.
    }
    this.#fd = fd;
    while (this.#next() !== undefined); // what was said before
  }

  /** What netmap has said since the last call, empty where that is nothing. */
  said(): string {
    const lines = new Set<string>();
    for (let record = this.#next(); record !== undefined; record = this.#next()) {
      // 6,812,2714375,-;096.371514 [3050] netmap_interp_ringid      invalid ring id 3
      const text = /^[^;]*;\d+\.\d+ \[ *\d+\] netmap_\w+ +(.+)/.exec(record)?.[1];
      if (text !== undefined) lines.add(text.trim());
    }
    return [...lines].slice(0, QUOTED).join('; ');
  }

  /** One record; undefined at the end. */
  #next(): string | undefined {
    if (this.#fd < 0) return undefined;
    try {
      const length = readSync(this.#fd, this.#record);
      return length === 0 ? undefined : this.#record.toString('utf8', 0, length);
    } catch (error) {
      // EPIPE: records were overwritten before they were read; the next is the oldest there is.
      return (error as NodeJS.ErrnoException).code === 'EPIPE' ? '' : undefined;
    }
  }

  close(): void {
    if (this.#fd >= 0) closeSync(this.#fd);
  }
}
