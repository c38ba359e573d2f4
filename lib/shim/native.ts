import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NetdevNative } from './native-netdev.js';
import type { NetmapNative } from './native-netmap.js';
import type { XdpNative } from './native-xdp.js';

/** Memory mapped by the shim. `buffer` is detached by closeMemory(handle). */
export interface Mapped {
  handle: number;
  buffer: ArrayBuffer;
}

/** For poll(): poll.h, the same on Linux and FreeBSD. */
export const POLLIN = 0x0001;
export const POLLOUT = 0x0004;
/** Reported without being asked for. */
export const POLLERR = 0x0008;
export const POLLHUP = 0x0010;
export const POLLNVAL = 0x0020;

/** The shim's functions. Those that can fail throw an Error with `code`, `errno`, `syscall` and `port`. */
export interface Native extends NetmapNative, NetdevNative, XdpNative {
  /** One double: where readClock() puts CLOCK_MONOTONIC, in ns. */
  readonly clock: ArrayBuffer;
  readClock(): void;
  sleepNs(ns: number): void;
  /** Lets another thread that is ready have this CPU. */
  yieldCpu(): void;
  pin(cpu: number): void;
  /** ns of user and system time, voluntary and involuntary context switches of the calling thread. */
  threadUsage(out: Float64Array): void;
  /** A counter of the calling thread, perf_event_open(2): a handle. */
  perfOpen(type: number, config: number): number;
  /** Its count; NaN when the processor had no counter to spare. */
  perfRead(counter: number): number;
  perfClose(counter: number): void;
  /** `list`: triples fd, events, revents (written). Returns how many are ready. */
  poll(list: Int32Array, count: number, timeoutMs: number): number;
  /** poll() of all in a list that is bound once: looking an array up costs more than the rest of a call. */
  poller(list: Int32Array): (timeoutMs: number) => number;

  mapAnonymous(bytes: number): Mapped;
  mapShared(path: string, bytes: number): Mapped & { created: boolean };
  closeMemory(handle: number): void;
  lock(path: string): number;
  unlock(handle: number): void;
  /** `list`: triples byte offset in dst, byte offset in src, bytes. */
  copier(dst: Int32Array, src: Int32Array, list: Int32Array): (count: number) => void;
}

function load(): Native {
  const addon = join('build', 'Release', 'netmap_bridge.node');
  // dist/lib/native.js and lib/native.ts lie at different depths below the package.
  const here = dirname(fileURLToPath(import.meta.url));
  for (let folder = here; ; folder = dirname(folder)) {
    const file = join(folder, addon);
    if (existsSync(file)) return createRequire(import.meta.url)(file) as Native;
    if (folder === dirname(folder)) throw new Error(`the native addon ${addon} is not built; run: ${remedyAt(here)}`);
  }
}

/** How the addon is built: in a project that depends on this package npm install says that all is there already. */
function remedyAt(folder: string): string {
  return folder.split(sep).includes('node_modules') ? 'npm rebuild netmap-bridge' : 'npm install';
}

export const native = load();

/**
 * Element 0: CLOCK_MONOTONIC in ns, as of the latest native.readClock() of this thread. Loops read it here, because a
 * number with a fraction that a function returns or takes is an object on the heap, unless V8 inlines the call.
 */
export const clock = new Float64Array(native.clock);

/** CLOCK_MONOTONIC in nanoseconds, read now. */
export function now(): number {
  native.readClock();
  return clock[0];
}
