import { closeSync, constants, fstatSync, ftruncateSync, openSync, statSync, writeSync } from 'node:fs';
import type { Amount } from '../rings/amount.js';
import { now, POLLOUT } from '../shim/native.js';
import { copyBytes } from './copy-bytes.js';
import { CaptureError, codeOf, fileError } from './capture-error.js';
import { claim, conflict } from './inuse.js';
import { ETHERNET } from './linktype.js';
import { FILE_HEADER, MAGIC_NS, MAGIC_US, RECORD_HEADER } from './pcap.js';
import { MAX_FRAME, u32, type Resolution } from './reader.js';
import { isReady } from './ready.js';

/** Bytes gathered before they are written to the file. */
const BUFFER = 1 << 20;
/** ns between two attempts to open a FIFO that nobody reads. */
const RETRY_NS = 10e6;
/** 2.4, as two 16-bit words, major first. */
const VERSION = 2 | (4 << 16);
const MAX_U32 = 0xffffffff;

export interface CaptureOptions {
  /** Resolution of the timestamps: default ns. With µs, the rest of a microsecond is cut off. */
  readonly resolution?: Resolution;
  /** The longest captured frame that is written, in bytes; default 262144, the most that libpcap reads. */
  readonly snaplen?: number;
}

/**
 * Writes Ethernet frames to a classic pcap file (little-endian, version 2.4), through one fixed buffer. A FIFO is never
 * waited for: what it does not take stays in the buffer, and where that is full, fits() says so.
 * Every method throws CaptureError once the file cannot be written.
 */
export class CaptureWriter {
  readonly snaplen: number;
  /** Frames begun so far. */
  frames = 0;
  /** Frames begun of which not all is in the file, once it could not be written. */
  lost: Readonly<Amount> = { frames: 0, bytes: 0 };
  /** Frames whose time lies outside 1970 to 2106, what pcap can hold: they were given the nearest time that it can. */
  clampedTimes = 0;

  #resolution: Resolution;
  /** undefined: a FIFO that nobody reads yet. */
  #fd: number | undefined;
  readonly isFifo: boolean;
  #retry = 0;
  #release: () => void = () => undefined;
  readonly #buffer = new Uint8Array(BUFFER);
  #used = 0;
  /** Bytes of the buffer that the file has got: less than #used where a FIFO was full. */
  #done = 0;
  /** Bytes of the current frame that are still to come. */
  #missing = 0;
  #open = true;
  #headed = false;
  /** Whether the buffer has been written to the file before: it begins with the file header until then. */
  #drained = false;
  #failure: CaptureError | undefined;

  constructor(
    readonly path: string,
    options: CaptureOptions = {},
  ) {
    this.#resolution = options.resolution ?? 'ns';
    this.snaplen = options.snaplen ?? MAX_FRAME;
    if (!Number.isInteger(this.snaplen) || this.snaplen < 1 || this.snaplen > MAX_FRAME) {
      throw new RangeError(`snaplen must be a whole number from 1 to ${MAX_FRAME}, not ${this.snaplen}`);
    }
    this.isFifo = statSync(path, { throwIfNoEntry: false })?.isFIFO() ?? false;
    this.#connect();
  }

  /** Opens the file. Returns false where it is a FIFO that nobody reads yet. */
  #connect(): boolean {
    const { path } = this;
    let fd: number;
    try {
      fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK, 0o666);
    } catch (error) {
      if (this.isFifo && codeOf(error) === 'ENXIO') {
        this.#retry = now() + RETRY_NS;
        return false;
      }
      throw new CaptureError(fileError(path, 'create', error));
    }
    const refused = conflict(fd, true);
    if (refused !== undefined) {
      closeSync(fd);
      throw new CaptureError(`${path}: cannot write: ${refused}`);
    }
    // Emptied only now: it might have been the file that is being read.
    if (fstatSync(fd).isFile()) ftruncateSync(fd);
    this.#fd = fd;
    this.#release = claim(fd, true);
    return true;
  }

  /** Whether the file is open: a FIFO is once somebody reads it. */
  get connected(): boolean {
    return this.#fd !== undefined || (now() >= this.#retry && this.#connect());
  }

  /** Resolution of the timestamps. What is set once the file header has been made changes nothing. */
  get resolution(): Resolution {
    return this.#resolution;
  }
  set resolution(resolution: Resolution) {
    if (!this.#headed) this.#resolution = resolution;
  }

  /** Whether there is room for a frame of `length` bytes; of a file always, of a FIFO where it takes what is before. */
  fits(length: number): boolean {
    return this.#used + RECORD_HEADER + length <= BUFFER || this.#drain();
  }

  /** Writes a whole frame: `data[offset .. offset + length)`, which was `origLen` bytes long on the wire. */
  write(
    data: Uint8Array,
    offset: number,
    length: number,
    tsSec: number,
    tsNsec: number,
    origLen: number = length,
  ): void {
    this.begin(length, origLen, tsSec, tsNsec);
    this.piece(data, offset, length);
  }

  /**
   * Begins a frame of `length` bytes, which piece() brings. `tsNsec` is 0 to 999,999,999.
   * Throws RangeError if the frame is longer than `snaplen`, Error if the frame before is not complete or this one does
   * not fit.
   */
  begin(length: number, origLen: number, tsSec: number, tsNsec: number): void {
    if (this.#missing !== 0) throw new Error(`${this.path}: frame ${this.frames} lacks ${this.#missing} bytes`);
    if (!(length >= 0 && length <= this.snaplen)) {
      throw new RangeError(`${this.path}: a frame of ${length} bytes, and snaplen is ${this.snaplen}`);
    }
    if (this.#failure !== undefined) throw this.#failure;
    this.#head();
    // Whole frames go to the file, so that it can be read whenever the program is stopped.
    if (!this.fits(length)) throw new Error(`${this.path}: no room for a frame of ${length} bytes`);
    let seconds = tsSec;
    let fraction = this.#resolution === 'ns' ? tsNsec : Math.floor(tsNsec / 1000);
    if (!(seconds >= 0 && seconds <= MAX_U32)) {
      this.clampedTimes++;
      const late = seconds > MAX_U32;
      seconds = late ? MAX_U32 : 0;
      fraction = late ? (this.#resolution === 'ns' ? 999999999 : 999999) : 0;
    }
    this.#u32(seconds);
    this.#u32(fraction);
    this.#u32(length);
    this.#u32(origLen);
    this.#missing = length;
    this.frames++;
  }

  /** Adds `length` bytes at `offset` of `data` to the frame begun. Throws RangeError if that is more than announced or than there is. */
  piece(data: Uint8Array, offset: number, length: number): void {
    if (!(length >= 0 && length <= this.#missing)) {
      throw new RangeError(`${this.path}: a piece of ${length} bytes, and frame ${this.frames} lacks ${this.#missing}`);
    }
    if (!(offset >= 0 && offset + length <= data.length)) {
      throw new RangeError(`${this.path}: a piece at ${offset} of ${length} bytes in ${data.length}`);
    }
    copyBytes(data, offset, this.#buffer, this.#used, length);
    this.#used += length;
    this.#missing -= length;
  }

  /** Hands everything so far to the file. Returns whether it has got all: a FIFO takes what it has room for. */
  flush(): boolean {
    this.#head();
    return this.#drain();
  }

  /**
   * Flushes and closes. Throws CaptureError if what was left cannot be written; the file is closed all the same. Quiet
   * after a failure, and about what a FIFO does not take.
   */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    try {
      if (this.#failure === undefined) this.flush();
    } finally {
      this.#release();
      if (this.#fd !== undefined) closeSync(this.#fd);
    }
  }

  #head(): void {
    if (this.#headed) return;
    this.#headed = true;
    this.#u32(this.#resolution === 'ns' ? MAGIC_NS : MAGIC_US);
    this.#u32(VERSION);
    this.#u32(0);
    this.#u32(0);
    this.#u32(this.snaplen);
    this.#u32(ETHERNET);
  }

  #u32(value: number): void {
    const at = this.#used;
    this.#buffer[at] = value;
    this.#buffer[at + 1] = value >>> 8;
    this.#buffer[at + 2] = value >>> 16;
    this.#buffer[at + 3] = value >>> 24;
    this.#used = at + 4;
  }

  #drain(): boolean {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      if (!this.connected) return false;
      while (this.#done < this.#used) {
        if (this.isFifo && !isReady(this.#fd!, POLLOUT)) return false;
        this.#done += writeSync(this.#fd!, this.#buffer, this.#done, this.#used - this.#done);
      }
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') return false;
      this.#failure = error instanceof CaptureError ? error : new CaptureError(fileError(this.path, 'write', error));
      this.lost = this.#beyond(this.#done);
      this.#used = this.#done = 0;
      throw this.#failure;
    }
    this.#drained = true;
    this.#used = this.#done = 0;
    return true;
  }

  /** Frames that the file has not got, or not all of. */
  get buffered(): Amount {
    return this.#beyond(this.#done);
  }

  /** The frames of the buffer that do not end in its first `done` bytes. */
  #beyond(done: number): Amount {
    const amount = { frames: 0, bytes: 0 };
    for (let at = this.#drained ? 0 : FILE_HEADER; at < this.#used;) {
      const length = u32(this.#buffer, at + 8, false);
      at += RECORD_HEADER + length;
      if (at <= done) continue;
      amount.frames++;
      amount.bytes += length;
    }
    return amount;
  }
}

/** Creates, or empties, a capture file. Throws CaptureError if that fails or the file is open as another capture. */
export function createCapture(path: string, options: CaptureOptions = {}): CaptureWriter {
  return new CaptureWriter(path, options);
}
