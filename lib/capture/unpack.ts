import { Worker } from 'node:worker_threads';
import * as zlib from 'node:zlib';
import { ByteRing } from './byte-ring.js';

/** Compressed formats that can be read, by their first bytes. */
const MAGICS = { gzip: [0x1f, 0x8b], zstd: [0x28, 0xb5, 0x2f, 0xfd] } as const;
export type Packed = keyof typeof MAGICS;

/** Makes the stream that unpacks a format; undefined: this Node.js has none (zstd before 22.15). */
export const UNPACKERS: Record<Packed, (() => zlib.Gunzip) | undefined> = {
  gzip: zlib.createGunzip,
  zstd: (zlib as { createZstdDecompress?: () => zlib.Gunzip }).createZstdDecompress,
};

/** The format that a file beginning with `bytes` is compressed with, where this Node.js can unpack it. */
export function packedWith(bytes: Uint8Array): Packed | undefined {
  return (Object.keys(MAGICS) as Packed[]).find(
    (format) => UNPACKERS[format] !== undefined && MAGICS[format].every((byte, i) => bytes[i] === byte),
  );
}

/** What the unpacking thread is given. */
export interface UnpackJob {
  readonly format: Packed;
  readonly fd: number;
  /** A FIFO: polled, so that the thread can be stopped. */
  readonly live: boolean;
  /** The file's first bytes, which have been read. */
  readonly head: Uint8Array;
  readonly shared: SharedArrayBuffer;
}

/** Starts a thread that unpacks the rest of a file into a ring, which it ends when it lets go of `fd`. */
export function unpack(job: Omit<UnpackJob, 'shared'>): ByteRing {
  const ring = new ByteRing();
  const workerData: UnpackJob = { ...job, shared: ring.shared };
  const worker = new Worker(new URL('./unpack-worker.js', import.meta.url), {
    workerData,
    name: 'unpack',
    execArgv: [],
  });
  worker.on('error', (error) => {
    ring.end(String(error));
  });
  worker.unref();
  return ring;
}
