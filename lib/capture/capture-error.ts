import { PortError } from '../text/errors.js';

/** A capture file that cannot be read or written: the message names the file, the cause and, where there is one, the remedy. */
export class CaptureError extends Error {
  override name = 'CaptureError';
}

/** Runs `action` for the port `name`: a capture that fails is a port that fails. */
export function asPort<T>(name: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (error instanceof CaptureError) throw new PortError(error.message, name, { cause: error });
    throw error;
  }
}

/** What to do about an error of the file system, by its code. */
const REMEDIES = new Map([
  ['ENOENT', 'no such file or directory; check the path'],
  ['EACCES', 'permission denied; check the permissions of the file and its directory'],
  ['EPERM', 'not permitted; check the attributes of the file and its directory'],
  ['EISDIR', 'it is a directory; name a file'],
  ['ENOTDIR', 'a part of the path is not a directory; check the path'],
  ['ENOSPC', 'no space left on the device; free some space or name a file elsewhere'],
  ['EDQUOT', 'disk quota exceeded; free some space or name a file elsewhere'],
  ['EFBIG', 'the file would grow beyond the allowed size; raise the limit (ulimit -f) or split the capture'],
  ['EROFS', 'the file system is read-only; name a file elsewhere'],
  ['EMFILE', 'too many open files; raise the limit (ulimit -n)'],
  ['EPIPE', 'the reader of the FIFO has gone; keep it running until the capture is complete'],
  ['EIO', 'input/output error; check the device (dmesg)'],
]);

/** The code of a system error (`ENOENT`), or an empty string. */
export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

/** A system error as a sentence: `in.pcap: cannot open: no such file or directory; check the path (ENOENT)`. */
export function fileError(path: string, action: string, error: unknown): string {
  const code = codeOf(error);
  const remedy = REMEDIES.get(code);
  if (remedy !== undefined) return `${path}: cannot ${action}: ${remedy} (${code})`;
  return `${path}: cannot ${action}: ${error instanceof Error ? error.message : String(error)}`;
}
