import { fstatSync } from 'node:fs';

/** The regular files that captures of this thread have open: `device:inode` to how. */
const inUse = new Map<string, { readers: number; writer: boolean }>();

function keyOf(fd: number): string | undefined {
  const stat = fstatSync(fd, { bigint: true });
  return stat.isFile() ? `${stat.dev.toString()}:${stat.ino.toString()}` : undefined;
}

/** Notes that a file is being read or written, so that no capture overwrites another by accident. Throws nothing; see conflict(). */
export function claim(fd: number, writing: boolean): () => void {
  const key = keyOf(fd);
  if (key === undefined) return () => undefined;
  const entry = inUse.get(key) ?? { readers: 0, writer: false };
  inUse.set(key, entry);
  if (writing) entry.writer = true;
  else entry.readers++;
  return () => {
    if (writing) entry.writer = false;
    else entry.readers--;
    if (entry.readers === 0 && !entry.writer) inUse.delete(key);
  };
}

/** Why a file must not be opened now, or `undefined`: reading excludes writing, and writing excludes both. */
export function conflict(fd: number, writing: boolean): string | undefined {
  const key = keyOf(fd);
  const entry = key === undefined ? undefined : inUse.get(key);
  if (entry === undefined) return undefined;
  if (entry.writer) return 'it is being written by another port; name a different file';
  return writing && entry.readers > 0 ? 'it is the file being read; name a different output file' : undefined;
}
