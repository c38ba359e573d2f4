import { Worker } from 'node:worker_threads';
import * as zlib from 'node:zlib';
import { ByteRing } from './byte-ring.js';

/** Compressed formats by their first bytes, and the command that unpacks a file of each. */
const FORMATS = {
  gzip: { magic: [0x1f, 0x8b], command: 'gunzip' },
  zstd: { magic: [0x28, 0xb5, 0x2f, 0xfd], command: 'zstd -d' },
  lz4: { magic: [0x04, 0x22, 0x4d, 0x18], command: 'lz4 -d' },
  xz: { magic: [0xfd, 0x37, 0x7a, 0x58, 0x5a], command: 'xz -d' },
} as const;
export type Packed = keyof typeof FORMATS;

/** Makes the stream that unpacks a format; undefined: this Node.js has none (zstd before 22.15). */
export const UNPACKERS: Partial<Record<Packed, (() => zlib.Gunzip) | undefined>> = {
  gzip: zlib.createGunzip,
  zstd: (zlib as { createZstdDecompress?: () => zlib.Gunzip }).createZstdDecompress,
};

/** The format that a file beginning with `bytes` is compressed with. */
export function packedWith(bytes: Uint8Array): Packed | undefined {
  return (Object.keys(FORMATS) as Packed[]).find((format) =>
    FORMATS[format].magic.every((byte, i) => bytes[i] === byte),
  );
}

/** What makes a capture of a compressed file, for a format that is not unpacked here. */
export function unpackFirst(path: string, format: Packed): string {
  return `compressed with ${format}; unpack it first: ${FORMATS[format].command} < ${path} > FILE.pcap`;
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
