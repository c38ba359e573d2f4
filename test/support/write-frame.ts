import type { CaptureWriter } from '../../lib/capture/writer.js';

/** Writes a whole frame: `data[offset .. offset + length)`, which was `origLen` bytes long on the wire. */
export function writeFrame(
  writer: CaptureWriter,
  data: Uint8Array,
  offset: number,
  length: number,
  tsSec: number,
  tsNsec: number,
  origLen = length,
): void {
  writer.begin(length, origLen, tsSec, tsNsec);
  writer.piece(data, offset, length);
}
