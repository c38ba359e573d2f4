/**
 * One mapped memory: rings, slots and buffers in netmap's layout, seen through typed arrays.
 * Two regions with the same `id` are the same memory, whatever their addresses: their rings exchange buffers.
 */
export class Region {
  /** 32-bit words. Signed, because unsigned reads leave V8's small-integer range and allocate. */
  readonly i32: Int32Array;
  readonly u8: Uint8Array;

  /**
   * @param id     what memory this is, e.g. `netmap:1`, `pipe:lab`, `local:3`
   * @param buffer the mapping; detached when its owner closes
   * @param bytes  how much of the mapping is the region's, a multiple of 4
   */
  constructor(
    readonly id: string,
    readonly buffer: ArrayBufferLike,
    bytes = buffer.byteLength,
  ) {
    this.i32 = new Int32Array(buffer, 0, bytes / 4);
    this.u8 = new Uint8Array(buffer, 0, bytes);
  }

  /** A signed 64-bit word pair as a number; offsets inside a mapping are far below 2^53. */
  i64(word: number): number {
    return this.i32[word + 1] * 0x1_0000_0000 + (this.i32[word] >>> 0);
  }

  setI64(word: number, value: number): void {
    this.i32[word] = value;
    this.i32[word + 1] = Math.floor(value / 0x1_0000_0000);
  }
}
