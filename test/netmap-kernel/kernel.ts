// Runs a function in a child process that sees kernel.c as its /dev/netmap.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Native } from '../../lib/shim/native.js';
import { missing, skipFor } from '../support/needs.js';

const source = fileURLToPath(new URL('../../../test/netmap-kernel/kernel.c', import.meta.url));
const nativeUrl = new URL('../../lib/shim/native.js', import.meta.url).href;

const CC = process.env.CC ?? 'cc';

/** {@link skipFor} where kernel.c is of no use, or cannot be compiled. */
export function skipWithoutKernel(): string | false {
  return process.platform === 'linux' ? skipFor(missing(CC)) : 'the stand-in is for Linux';
}

/** What the shim threw. */
export interface Thrown {
  name: string;
  message: string;
  code?: string;
  errno?: number;
  syscall?: string;
  port?: string;
}

/** What a child's function can use. */
export interface Help {
  /** What the call threw; throws itself when nothing was. */
  attempt: (call: () => unknown) => Thrown;
  /** Where a worker imports the addon from. */
  nativeUrl: string;
}

/** One NIOCCTRL request as the kernel read it. */
export interface Recorded {
  header: Buffer;
  body: Buffer;
  options: Buffer[];
}

export class NetmapKernel {
  readonly #folder = mkdtempSync(join(tmpdir(), 'nmb-kernel-'));
  readonly #library = join(this.#folder, 'kernel.so');
  readonly #log = join(this.#folder, 'requests');

  constructor() {
    const flags = ['-std=gnu11', '-O1', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC'];
    const built = spawnSync(CC, [...flags, source, '-o', this.#library, '-ldl'], {
      encoding: 'utf8',
    });
    if (built.status !== 0) throw new Error(`kernel.c: ${built.error?.message ?? built.stderr}`);
  }

  /**
   * Calls `body` in a child, with the addon, what helps there, and `input` (sent as JSON). `body` is sent as text: it
   * must not use anything else from outside. Its result comes back as JSON. `prefix` is a command that runs the child.
   */
  run<T, I = undefined>(
    body: (native: Native, help: Help, input: I) => T | Promise<T>,
    input?: I,
    env: NodeJS.ProcessEnv = {},
    prefix: readonly string[] = [],
  ): T {
    const script = `
      import { native } from ${JSON.stringify(nativeUrl)};
      const attempt = (call) => {
        try { call(); } catch (error) { return { name: error.name, message: error.message, ...error }; }
        throw new Error('nothing was thrown');
      };
      const help = { attempt, nativeUrl: ${JSON.stringify(nativeUrl)} };
      const result = await (${body.toString()})(native, help, ${JSON.stringify(input)});
      process.stdout.write(JSON.stringify(result ?? null));`;
    rmSync(this.#log, { force: true });
    const [command, ...args] = [...prefix, process.execPath, '--input-type=module', '-e', script];
    const child = spawnSync(command, args, {
      encoding: 'utf8',
      env: {
        ...process.env,
        ...env,
        // A sanitizer's library stays in front.
        LD_PRELOAD: [process.env.LD_PRELOAD ?? '', this.#library].join(' ').trim(),
        NETMAP_KERNEL_LOG: this.#log,
      },
    });
    if (child.status !== 0) throw new Error(`child: ${child.signal ?? child.status ?? ''} ${child.stderr}`);
    return JSON.parse(child.stdout) as T;
  }

  /** The requests of the last run. */
  requests(): Recorded[] {
    if (!existsSync(this.#log)) return [];
    return readFileSync(this.#log, 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => {
        const record = JSON.parse(line) as { header: string; body: string; options: { bytes: string }[] };
        const bytes = (hex: string) => Buffer.from(hex, 'hex');
        return {
          header: bytes(record.header),
          body: bytes(record.body),
          options: record.options.map((option) => bytes(option.bytes)),
        };
      });
  }

  close(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
