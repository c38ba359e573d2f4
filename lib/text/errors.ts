/** Errors that people see. The tools print the message alone and exit: 2 for a {@link UsageError}, 1 for all others. */

/** What the user wrote is wrong. The message names the text, the cause and the remedy. Tools exit with code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';

  /**
   * @param message text, cause and remedy, ready to print
   * @param at index of the offending character (UTF-16 unit) in the text that was parsed
   */
  constructor(
    message: string,
    readonly at = 0,
  ) {
    super(message);
  }
}

/** A port failed while it was opened or run. Tools exit with code 1. */
export class PortError extends Error {
  override readonly name = 'PortError';
  /** The port's name, as the user wrote it. */
  readonly port: string;
  /** The system's error code, such as `ENXIO`, where the system reported one. */
  readonly code?: string;

  constructor(message: string, port: string, options: { code?: string; cause?: unknown } = {}) {
    super(message, 'cause' in options ? { cause: options.cause } : undefined);
    this.port = port;
    if (options.code !== undefined) this.code = options.code;
  }
}

/** A port failed while frames flowed. */
export class RunError<Ended = unknown> extends PortError {
  constructor(
    message: string,
    port: string,
    /** What had been counted until then; its `reason` is `failed`. */
    readonly ended: Ended,
    options: { code?: string; cause?: unknown } = {},
  ) {
    super(message, port, options);
  }
}

/** `text` with line breaks and other control characters escaped, so that it takes one line of a terminal. */
export function printable(text: string): string {
  return text.replace(
    /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu,
    (c) => `\\u{${c.codePointAt(0)!.toString(16).padStart(2, '0')}}`,
  );
}

/** Two lines: `text`, and a caret under its character at index `at` (`text.length` points just behind it). */
export function pointAt(text: string, at: number): string {
  return `  ${printable(text)}\n  ${' '.repeat(printable(text.slice(0, at)).length)}^`;
}
