/** From this length on, a view and a block copy together cost less than copying byte by byte. */
const BLOCK_COPY = 64;

/** Copies bytes; makes a short-lived view where that is the faster way, several times so for long frames. */
export function copyBytes(from: Uint8Array, fromAt: number, to: Uint8Array, toAt: number, length: number): void {
  if (length >= BLOCK_COPY) to.set(from.subarray(fromAt, fromAt + length), toAt);
  else for (let i = 0; i < length; i++) to[toAt + i] = from[fromAt + i]!;
}
