/** Where a tool writes: text for people, or with --json one object a line for programs. */
export class Output {
  /** Whether stdout is for programs. */
  asJson = false;
  #closed = false;

  constructor() {
    // Whoever read stdout has gone (`bridge | head`): that ends the printing, not the forwarding.
    process.stdout.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
      this.#closed = true;
    });
    process.stderr.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code !== 'EPIPE') throw error;
    });
  }

  /** Text for people, on stdout. */
  text(text: string): void {
    if (!this.asJson && !this.#closed) process.stdout.write(text);
  }

  /** One line for programs, on stdout. */
  json(value: Record<string, unknown> & { type: string }): void {
    if (this.asJson && !this.#closed) process.stdout.write(`${JSON.stringify(value)}\n`);
  }

  /** On stderr, for people in either case. */
  error(text: string): void {
    process.stderr.write(text);
  }
}
