import { EXIT } from './exit.js';

/** Where a tool writes: text for people, or with --json one object a line for programs. */
export class Output {
  /** Whether stdout is for programs. */
  asJson = false;
  /** Whether stdout carries a capture: whatever is said then goes to stderr. */
  stdoutTaken = false;
  #closed = false;

  constructor() {
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (!this.#closed && error.code !== 'EPIPE') this.#lost(error);
      // Whoever read stdout has gone (`bridge | head`): that ends the printing, not the forwarding.
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

  #write(text: string): void {
    if (this.stdoutTaken) process.stderr.write(text);
    else if (!this.#closed) process.stdout.write(text);
  }

  /** On stderr, for people in either case. */
  error(text: string): void {
    process.stderr.write(text);
  }
}
