import { getSystemErrorMap } from 'node:util';
import { PortError } from '../text/errors.js';

/**
 * What to do about a system error, one table a driver: by the call that failed and its code, `open /dev/netmap ENOENT`,
 * or by a code alone, for every call. The words may name what `Context` holds.
 */
export type Remedies<Context> = ReadonlyMap<string, (context: Context) => string>;

/** What the shim threw, as an error that also says what it means and what to do. A PortError says so already. */
export function remedied<Context>(
  error: unknown,
  port: string,
  remedies: Remedies<Context>,
  context: Context,
): PortError {
  if (error instanceof PortError) return error;
  const { message, code = '', syscall = '' } = error as NodeJS.ErrnoException;
  const remedy = remedies.get(`${syscall} ${code}`) ?? remedies.get(code);
  const text = remedy === undefined ? message : `${message}: ${remedy(context)}`;
  return new PortError(text, port, { ...(code === '' ? {} : { code }), cause: error });
}

/** An errno in words: `no buffer space available (ENOBUFS)`. */
export function errnoText(errno: number): string {
  const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, 'unknown error'];
  return `${text} (${code})`;
}
