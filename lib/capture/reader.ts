import type { ByteSource } from './source.js';

/** The longest frame taken for real: libpcap's MAXIMUM_SNAPLEN (pcap-int.h) and Wireshark's limit for Ethernet. */
export const MAX_FRAME = 262144;

export type Resolution = 'us' | 'ns';

/** The unsigned 32-bit number at `at`. */
export function u32(bytes: Uint8Array, at: number, bigEndian: boolean): number {
  return bigEndian
    ? ((bytes[at] << 24) | (bytes[at + 1] << 16) | (bytes[at + 2] << 8) | bytes[at + 3]) >>> 0
    : ((bytes[at + 3] << 24) | (bytes[at + 2] << 16) | (bytes[at + 1] << 8) | bytes[at]) >>> 0;
}

/** The unsigned 16-bit number at `at`. */
export function u16(bytes: Uint8Array, at: number, bigEndian: boolean): number {
  return bigEndian ? (bytes[at] << 8) | bytes[at + 1] : (bytes[at + 1] << 8) | bytes[at];
}

/**
 * Reads the Ethernet frames of a capture one after the other. `next()` moves to a frame and leaves it in the public
 * fields, so that nothing is allocated for it; the bytes are valid until the following `next()`.
 *
 * A damaged file delivers the frames before the damage; then `next()` returns false and `problem` says what is wrong
 * at which byte. `next()` never throws.
 */
export abstract class CaptureReader {
  /** The buffer that holds the frame: `data[offset .. offset + capLen)`. */
  readonly data: Uint8Array;
  offset = 0;
  /** Bytes of the frame that were captured, without FCS unless `fcsLength` says otherwise. */
  capLen = 0;
  /** Bytes the frame had on the wire; more than `capLen` where it was captured short. */
  origLen = 0;
  /** Time of capture: seconds since 1970, 0 where the file keeps none (pcapng Simple Packet Blocks). */
  tsSec = 0;
  /** Time of capture: nanoseconds within the second, 0 to 999,999,999. */
  tsNsec = 0;
  /** Which of the capture's interfaces (within its section) the frame came from; 0 in pcap files. */
  interface = 0;
  /** Bytes of FCS that the file says end each frame of this interface; nearly always 0. */
  fcsLength = 0;
  /** Frames delivered so far: the 1-based number of the current one. */
  frame = 0;
  /** Frames passed over because they are no Ethernet frames, by link type. */
  readonly foreign = new Map<number, number>();
  /** What is wrong with the file and where, once `ended`; undefined after a clean end. */
  problem: string | undefined;
  /** No frame will come any more. False after `next()` returned false: a FIFO that has nothing just now. */
  ended = false;

  /** The resolution a copy needs to keep every timestamp as exact as nanoseconds allow. */
  abstract readonly resolution: Resolution;
  /** The longest captured frame that the file announces, 0 for no limit. */
  abstract readonly snaplen: number;
  /** The format in words: `pcap, big-endian, µs, snaplen 65535`. */
  abstract readonly format: string;

  /** What files of this format may hold and a copy of the frames does not. */
  readonly uncopied: string | undefined;

  constructor(protected readonly source: ByteSource) {
    this.data = source.bytes;
  }

  get path(): string {
    return this.source.path;
  }

  /** Moves to the next frame; false if there is none (see `ended`). */
  abstract next(): boolean;

  close(): void {
    this.ended = true;
    this.source.close();
  }

  /** Ends the reading because of what stands at byte `at`. Returns false, for `next` to return. */
  protected corrupt(at: number, cause: string): false {
    return this.stop(`${this.path}: corrupt at byte ${at}: ${cause}`);
  }

  /**
   * Fewer bytes are at hand than are needed. At the end of the file that is a truncation inside `what`, which starts at
   * byte `start` and should have `needed` bytes. Returns false, for `next` to return.
   */
  protected short(what: string, start: number, needed: number): false {
    if (!this.source.ended) return false;
    if (this.source.failure !== undefined) return this.stop(this.source.failure);
    const end = this.source.offset + this.source.available;
    return this.stop(
      `${this.path}: truncated at byte ${end} (end of file): ` +
        `${what} at byte ${start} has ${end - start} of its ${needed} bytes`,
    );
  }

  /** Ends the reading, cleanly if no problem is given. */
  protected stop(problem?: string): false {
    this.ended = true;
    this.problem = problem;
    return false;
  }
}
