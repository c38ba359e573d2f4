/** Files that are named on a command line: what goes wrong with them is said with its cause and its remedy. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { UsageError } from '../../text/errors.js';

/** A mistake in a name is the user's; what a name cannot help (a full disk) is a failure, with the system's code. */
function fileError(file: string, error: unknown, known: Readonly<Record<string, string>>): Error {
  const { code = '', message } = error as NodeJS.ErrnoException;
  if (Object.hasOwn(known, code)) return new UsageError(`${file}: ${known[code]}`);
  const cause = code === 'ENOSPC' ? 'the disk is full; make room, or name a file elsewhere' : message;
  return Object.assign(new Error(`${file}: ${cause}`, { cause: error }), code !== '' && { code });
}

/** @param what the kind of file that is wanted: "a result file written by measure" */
export function unreadable(file: string, error: unknown, what: string): Error {
  return fileError(file, error, {
    ENOENT: `no such file; name ${what}`,
    ENOTDIR: `no such file, for a part of its path is no folder; name ${what}`,
    EISDIR: `a folder; name ${what}`,
    EACCES: `permission denied; its owner can let you read it (chmod), or name another file`,
  });
}

export function unwritable(file: string, error: unknown): Error {
  return fileError(file, error, {
    ENOENT: `there is no folder ${dirname(file)}; make it, or name a file elsewhere`,
    ENOTDIR: 'a part of its path is no folder; name a file elsewhere',
    EEXIST: 'there is a file of that name; name a folder',
    EISDIR: 'a folder; name a file in it',
    EACCES: 'permission denied; name a file where you may write',
    EPERM: 'may not be written; name another file',
    EROFS: 'on a disk that is read-only; name a file elsewhere',
  });
}

/** The text of a file. @throws UsageError; Error with `code` where no other name would help */
export function readText(file: string, what: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw unreadable(file, error, what);
  }
}

/** Writes a file. @throws as {@link readText} */
export function writeText(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw unwritable(file, error);
  }
}

/** Makes a folder, and those above it, unless it is there. @throws as {@link readText} */
export function makeFolder(folder: string): void {
  try {
    mkdirSync(folder, { recursive: true });
  } catch (error) {
    throw unwritable(folder, error);
  }
}
