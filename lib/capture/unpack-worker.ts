/** The thread that unpacks a compressed capture, a piece at a time, into the ring that the port's thread reads. */
import { readSync } from 'node:fs';
import { pipeline } from 'node:stream/promises';
import { workerData } from 'node:worker_threads';
import { native, POLLIN } from '../shim/native.js';
import { ByteRing } from './byte-ring.js';
import { UNPACKERS, type UnpackJob } from './unpack.js';

/** Bytes read at once. */
const CHUNK = 1 << 16;
/** ms between two looks at whether the reader has gone. */
const POLL_MS = 20;

const { fd, format, head, live, shared } = workerData as UnpackJob;
const ring = new ByteRing(shared);

function* packed(): Generator<Uint8Array> {
  yield head;
  while (!ring.gone) {
    if (live && native.poll(Int32Array.of(fd, POLLIN, 0), 1, POLL_MS) === 0) continue;
    const chunk = new Uint8Array(CHUNK);
    const length = readSync(fd, chunk);
    if (length === 0) return;
    yield chunk.subarray(0, length);
  }
}

let failure = '';
try {
  await pipeline(packed, UNPACKERS[format]!(), async (unpacked: AsyncIterable<Uint8Array>) => {
    for await (const piece of unpacked) if (!ring.write(piece)) return;
  });
} catch (error) {
  failure = error instanceof Error ? error.message : String(error);
}
ring.end(failure);
