/** Commands of a matrix: words with placeholders, run without a shell, never longer than their timeout. */
import { spawn } from 'node:child_process';
import { UsageError } from '../../text/errors.js';

/** A program and its arguments, placeholders not yet filled in. */
export type Words = readonly string[];

/** What placeholders stand for. A list is put in place of a word that is the placeholder alone. */
export type Fillings = Readonly<Record<string, string | readonly string[]>>;

/**
 * Splits a line into words at white space. Quotes ('…' and "…") keep a word together, a backslash outside '…' takes the next
 * character as it is; nothing else is special, for no shell reads it.
 * @throws UsageError for a quote that is not closed, or no word at all
 */
export function splitWords(line: string): string[] {
  const words: string[] = [];
  let word: string | undefined;
  let quote = '';
  for (let i = 0; i < line.length; i++) {
    const c = line[i];
    if (c === '\\' && quote !== "'" && i + 1 < line.length) {
      word = (word ?? '') + line[++i];
    } else if (quote !== '') {
      if (c === quote) quote = '';
      else word = (word ?? '') + c;
    } else if (c === "'" || c === '"') {
      quote = c;
      word ??= '';
    } else if (/\s/.test(c)) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else {
      word = (word ?? '') + c;
    }
  }
  if (quote !== '') throw new UsageError(`a quote ${quote} is not closed`);
  if (word !== undefined) words.push(word);
  if (words.length === 0) throw new UsageError('it is empty; expected a program and its arguments');
  return words;
}

const PLACEHOLDER = /\{\{|\}\}|\{([^{}\s]+)\}/g;

/** The names of the placeholders in a command, each once. `{{` and `}}` stand for the braces themselves. */
export function placeholders(words: Words): string[] {
  const names = words.flatMap((word) => [...word.matchAll(PLACEHOLDER)].flatMap((match) => match.at(1) ?? []));
  return [...new Set(names)];
}

/**
 * Fills placeholders in. What is filled in stays one word whatever it contains.
 * @throws UsageError for a placeholder that nothing stands for, or a list inside a longer word
 */
export function fill(words: Words, fillings: Fillings): string[] {
  return words.flatMap((word) => {
    const alone = /^\{([^{}\s]+)\}$/.exec(word)?.[1];
    const list = alone !== undefined && Object.hasOwn(fillings, alone) ? fillings[alone] : undefined;
    if (Array.isArray(list)) return list as string[];
    return word.replace(PLACEHOLDER, (found, name: string | undefined) => {
      if (name === undefined) return found[0];
      const value = Object.hasOwn(fillings, name) ? fillings[name] : undefined;
      if (typeof value === 'string') return value;
      const known = Object.keys(fillings).map((one) => `{${one}}`);
      const cause =
        value === undefined ? 'stands for nothing here' : 'is a list of words and must be a word of its own';
      throw new UsageError(`${found} ${cause}; known are ${known.join(', ')}; write {{ and }} for braces`);
    });
  });
}

/** A command as a person would type it. */
export function commandText(argv: Words): string {
  return argv.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`)).join(' ');
}

export interface CommandResult {
  /** Exit status; null when a signal ended it. */
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** A command could not be started, took too long or said that it failed. */
export class CommandError extends Error {
  override readonly name = 'CommandError';

  constructor(argv: Words, cause: string) {
    super(`${commandText(argv)}: ${cause}`);
  }
}

/** Bytes of output kept of each stream; more than any sensible report has. */
const MAX_OUTPUT = 1 << 26;
/** ms that a command has between being asked to end and being killed. */
const GRACE_MS = 2000;
/** ms after a command's end in which the rest of its output must come: a daemon that it left behind may keep the pipe. */
const REST_MS = 1000;

/**
 * Runs a command to its end, in a process group of its own: Ctrl-C reaches this program and not its commands, so that
 * what is being applied or undone is not cut short.
 * @param signal ends the command early: SIGTERM to its group, SIGKILL when it has not ended 2 s later
 * @throws CommandError when it cannot be started, is still running after `timeoutMs`, or was ended by `signal`
 */
export function runCommand(argv: Words, timeoutMs: number, signal?: AbortSignal): Promise<CommandResult> {
  const [program, ...args] = argv;
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(new CommandError(argv, 'not started: interrupted'));
      return;
    }
    const child = spawn(program, args, { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: { stdout: Buffer[]; stderr: Buffer[] } = { stdout: [], stderr: [] };
    const timers: NodeJS.Timeout[] = [];
    let ended: string | undefined;
    const kill = (how: NodeJS.Signals): void => {
      try {
        if (child.pid !== undefined) process.kill(-child.pid, how);
      } catch {
        // It has ended by itself meanwhile.
      }
    };
    const end = (cause: string): void => {
      if (ended !== undefined) return;
      ended = cause;
      kill('SIGTERM');
      timers.push(
        setTimeout(() => {
          kill('SIGKILL');
        }, GRACE_MS),
      );
    };
    const interrupt = (): void => {
      end('interrupted');
    };
    for (const stream of ['stdout', 'stderr'] as const) {
      let bytes = 0;
      child[stream].on('data', (chunk: Buffer) => {
        bytes += chunk.length;
        if (bytes > MAX_OUTPUT) end(`wrote more than ${MAX_OUTPUT} bytes`);
        else chunks[stream].push(chunk);
      });
    }
    const finish = (): void => {
      for (const timer of timers) clearTimeout(timer);
      signal?.removeEventListener('abort', interrupt);
    };
    child.once('error', (error: NodeJS.ErrnoException) => {
      finish();
      const cause = error.code === 'ENOENT' ? `${program} is not installed, or not in PATH` : error.message;
      reject(new CommandError(argv, cause));
    });
    child.once('exit', () => {
      timers.push(
        setTimeout(() => {
          child.stdout.destroy();
          child.stderr.destroy();
        }, REST_MS),
      );
    });
    child.once('close', (status, how) => {
      finish();
      if (ended !== undefined) {
        reject(new CommandError(argv, ended));
        return;
      }
      const text = (list: Buffer[]): string => Buffer.concat(list).toString('utf8');
      resolve({ status, signal: how, stdout: text(chunks.stdout), stderr: text(chunks.stderr) });
    });
    timers.push(
      setTimeout(() => {
        end(`still running after ${timeoutMs / 1000} s`);
      }, timeoutMs),
    );
    signal?.addEventListener('abort', interrupt, { once: true });
  });
}

/** The last lines that a failed command wrote, for a message. */
export function saidBy({ status, signal, stdout, stderr }: CommandResult): string {
  const said = (stderr.trim() === '' ? stdout : stderr).trim().split('\n').slice(-3).join('; ');
  return `${signal === null ? `exit ${status ?? '?'}` : `ended by ${signal}`}${said === '' ? '' : `: ${said}`}`;
}

/** Runs a command that must succeed; its standard output. */
export async function output(argv: Words, timeoutMs: number): Promise<string> {
  const result = await runCommand(argv, timeoutMs);
  if (result.status !== 0) throw new CommandError(argv, saidBy(result));
  return result.stdout;
}
