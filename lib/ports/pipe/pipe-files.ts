/**
 * The files of one pipe memory: the memory itself, a lock file an end, and a guard held while anything is made, opened,
 * closed or removed. A lock dies with its holder, so whether an end is open is asked of the kernel, never of a file's
 * content.
 */
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { PortError } from '../../text/errors.js';
import { native } from '../../shim/native.js';

type End = 'master' | 'slave';

/** Linux keeps shared memory in a file system of its own; FreeBSD programs use /tmp. */
const FOLDER = process.platform === 'linux' ? '/dev/shm' : '/tmp';
/** The guard is held for milliseconds; who waits this long waits for a stopped process. */
const GUARD_TRIES = 3000;

export class PipeFiles {
  /** Path of the shared memory. */
  readonly memory: string;
  readonly #guard: string;

  constructor(name: string) {
    this.memory = `${FOLDER}/netmap-bridge.${process.geteuid!()}.${name}`;
    // Braces occur in no name and no pipe's id: these paths cannot be another memory's.
    this.#guard = `${this.memory}{}`;
  }

  /** Path of the lock file of one end. */
  lockPath(pipe: string, end: End): string {
    return `${this.memory}${end === 'master' ? '{' : '}'}${pipe}`;
  }

  /**
   * Runs `work` while no other thread or process opens or closes a pipe of this name.
   * @throws PortError when the guard stays taken
   */
  exclusively<T>(port: string, work: () => T): T {
    const guard = this.#takeGuard(port);
    try {
      return work();
    } finally {
      native.unlock(guard);
    }
  }

  #takeGuard(port: string): number {
    for (let left = GUARD_TRIES; ; left--) {
      const guard = tryLock(this.#guard, port);
      if (guard !== undefined) return guard;
      if (left === 0)
        throw new PortError(
          `${port}: another process has been opening or closing a pipe of this name for seconds (${this.#guard} is locked); ` +
            'see whether it is stopped (fuser names it) and end it',
          port,
          { code: 'EBUSY' },
        );
      native.sleepNs(1e6);
    }
  }

  /** Lock files of the ends that are open now, in any process. Only while the guard is held. */
  live(port: string): Set<string> {
    const live = new Set<string>();
    for (const path of this.#lockFiles()) {
      const lock = tryLock(path, port);
      if (lock === undefined) live.add(path);
      else native.unlock(lock);
    }
    return live;
  }

  /** Removes the memory and its lock files. Only while the guard is held and no end is open. */
  remove(): void {
    for (const path of [...this.#lockFiles(), this.memory, this.#guard]) rmSync(path, { force: true });
  }

  /** Removes the memory alone, for another to be made in its place. */
  removeMemory(): void {
    rmSync(this.memory, { force: true });
  }

  #lockFiles(): string[] {
    const name = basename(this.memory);
    return readdirSync(dirname(this.memory))
      .filter((file) => file.startsWith(`${name}{`) || file.startsWith(`${name}}`))
      .map((file) => `${FOLDER}/${file}`)
      .filter((path) => path !== this.#guard);
  }
}

/** Takes a lock; undefined while another holds it. */
export function tryLock(path: string, port: string): number | undefined {
  try {
    return native.lock(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EBUSY') return undefined;
    throw systemError(error, path, port);
  }
}

/** What the system refused, with the remedy. */
export function systemError(error: unknown, path: string, port: string): PortError {
  const { code, message, syscall } = error as NodeJS.ErrnoException;
  const remedies: Partial<Record<string, string>> = {
    EACCES: !existsSync(path)
      ? `this user may not make files in ${FOLDER}; its usual permissions are: chmod 1777 ${FOLDER}`
      : `${path} is another user's, or open to others, and cannot be trusted; remove it or choose another name`,
    ELOOP: `${path} is a symbolic link and cannot be trusted; remove it`,
    ENOSPC: `${FOLDER} is full; free some of it, make it larger (mount -o remount,size=…), or open with fewer slots=`,
    EMFILE: 'this process may open no more files; close some ports, or raise the limit (ulimit -n)',
    ENOENT: `${FOLDER} is missing; mount it (mount -t tmpfs tmpfs ${FOLDER})`,
  };
  // The shim's own limit says itself what to do.
  const remedy = code === undefined || syscall === 'handle' ? undefined : remedies[code];
  return new PortError(`${port}: ${remedy ?? message}`, port, {
    cause: error,
    ...(code === undefined ? {} : { code }),
  });
}
