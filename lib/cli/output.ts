import { EXIT } from './exit.js';

/** Where a tool writes: text for people, or with --json one object a line for programs. */
export class Output {
  /** Whether stdout is for programs. */
  asJson = false;
  /** Whether stdout carries a capture: whatever is said then goes to stderr. */
  stdoutTaken = false;
  #closed = false;
  /** Whoever read stdout has gone (`bridge | head`): that ends the printing, not the forwarding. */
  #unread = false;

  constructor() {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      this.#unread ||= error.code === 'EPIPE';
      if (!this.#closed && !this.#unread) this.#lost(error);
      this.#closed = true;
    });
    // Nobody is left to be told.
    process.stderr.on('error', () => undefined);
  }

  /** A full disk, a terminal that is gone: the work goes on, but who asked for its results has not got them. */
  #lost(error: NodeJS.ErrnoException): void {
    this.error(`cannot write to stdout: ${error.message}; nothing more is printed there, and the exit code is not 0\n`);
    process.on('exit', (code) => {
      if (code === EXIT.ok) process.exitCode = EXIT.failed;
    });
  }

  /** Text for people, on stdout. */
  text(text: string): void {
    if (!this.asJson) this.#write(text);
  }

  /** One line for programs, on stdout. */
  json(value: Record<string, unknown> & { type: string }): void {
    if (this.asJson) this.#write(`${JSON.stringify(value)}\n`);
  }

  /** What a person should know of a run: on stderr, or one line for programs. */
  say(sentence: string): void {
    if (this.asJson) this.json({ type: 'say', sentence });
    else this.error(`${sentence}\n`);
  }

  /** What a run came to, for people and for programs: where nobody reads stdout any more it goes to stderr. */
  result(text: string, value?: Record<string, unknown> & { type: string }): void {
    const said = this.asJson ? `${JSON.stringify(value)}\n` : text;
    if (this.stdoutTaken || this.#unread) process.stderr.write(said);
    else if (!this.#closed)
      process.stdout.write(said, (error) => {
        if ((error as NodeJS.ErrnoException | null | undefined)?.code === 'EPIPE') process.stderr.write(said);
      });
  }

  #write(text: string): void {
    if (this.stdoutTaken) process.stderr.write(text);
    else if (!this.#closed) process.stdout.write(text);
  }

  /** On stderr, for people in either case. */
  error(text: string): void {
    process.stderr.write(text);
  }
}
