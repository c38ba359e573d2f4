import { closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { POLLIN } from '../shim/native.js';
import { CaptureError, fileError } from './capture-error.js';
import { claim, conflict } from './inuse.js';
import type { ByteRing } from './byte-ring.js';
import { isReady } from './ready.js';
import { unpack, type Packed } from './unpack.js';

/** Bytes of the one buffer a file is read through; also the longest run of bytes that `have` can bring together. */
export const CHUNK = 1 << 20;

/** The path that means standard input. */
const STDIN = '-';

/**
 * A file, FIFO or standard input read front to back through one fixed buffer. The unread bytes are `bytes[pos..end)`.
 * Reading what is live never blocks: `have` just says no, and `ended` stays false while a writer has it open.
 */
export class ByteSource {
  readonly bytes = new Uint8Array(CHUNK);
  /** A FIFO or socket: what has been read of it is gone. */
  readonly isFifo: boolean;
  /** What is to come may not be there yet: of a FIFO, or of a file that is followed. */
  readonly live: boolean;
  pos = 0;
  end = 0;
  /** No more bytes will come: the end of the file, or an error, which `failure` then tells. */
  ended = false;
  failure: string | undefined;

  readonly #fd: number;
  readonly #release: () => void;
  /** What a compressed file is read through. */
  #unpacked: ByteRing | undefined;
  #format: Packed | undefined;
  #base = 0;
  #open = true;

  /** How it is called in messages. */
  readonly path: string;

  /**
   * Opens a regular file, or a FIFO, which need not have a writer yet. Throws CaptureError.
   * @param follow the end of a file is not the end: it is being written
   */
  constructor(path: string, follow = false) {
    this.path = path === STDIN ? 'stdin' : path;
    const fd = path === STDIN ? 0 : openToRead(path);
    const stat = fstatSync(fd);
    this.isFifo = stat.isFIFO() || stat.isSocket();
    this.live = this.isFifo || follow;
    const refused = stat.isDirectory()
      ? 'it is a directory; name a file'
      : stat.isFile() || this.isFifo
        ? conflict(fd, false)
        : 'neither a regular file nor a FIFO; copy the capture to a file first';
    if (refused !== undefined) {
      this.#close(fd);
      throw new CaptureError(`${this.path}: cannot read: ${refused}`);
    }
    this.#fd = fd;
    this.#release = claim(fd, false);
  }

  /** Offset in the file of the next unread byte. */
  get offset(): number {
    return this.#base + this.pos;
  }

  /** Unread bytes at hand. */
  get available(): number {
    return this.end - this.pos;
  }

  /** Whether `length` bytes (at most CHUNK) lie at `pos`, after reading if need be. Reading moves unread bytes to the front. */
  have(length: number): boolean {
    return this.end - this.pos >= length || this.#fill(length);
  }

  /** Passes over up to `length` bytes and returns how many are left to pass over. */
  skip(length: number): number {
    let left = length;
    while (left > 0 && this.have(1)) {
      const step = Math.min(left, this.end - this.pos);
      this.pos += step;
      left -= step;
    }
    return left;
  }

  /** Makes the source the unpacked one of what follows; call before anything has been passed over. */
  unpack(format: Packed): void {
    this.#format = format;
    this.#unpacked = unpack({ format, fd: this.#fd, live: this.isFifo, head: this.bytes.slice(this.pos, this.end) });
    this.pos = this.end = 0;
    this.ended = false;
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    this.ended = true;
    this.#release();
    // A descriptor that another thread still reads is not closed: its number might be given to another file.
    if (this.#unpacked?.close() ?? true) this.#close(this.#fd);
  }

  #close(fd: number): void {
    if (fd !== 0) closeSync(fd);
  }

  #fill(length: number): boolean {
    this.bytes.copyWithin(0, this.pos, this.end);
    this.#base += this.pos;
    this.end -= this.pos;
    this.pos = 0;
    while (this.end < length && !this.ended) {
      const count = this.#unpacked === undefined ? this.#read() : this.#readUnpacked(this.#unpacked);
      if (count === undefined) break;
      if (count === 0) this.ended = true;
      this.end += count;
    }
    return this.end >= length;
  }

  /** Reads behind `end`. Returns how many bytes; 0: no more will come, undefined: not yet. */
  #read(): number | undefined {
    // A FIFO that no writer has opened yet reads as ended, but does not poll so.
    if (this.isFifo && !isReady(this.#fd, POLLIN)) return undefined;
    try {
      const count = readSync(this.#fd, this.bytes, this.end, CHUNK - this.end, null);
      // What is followed goes on, and a FIFO that ends does not.
      return count === 0 && this.live && !this.isFifo ? undefined : count;
    } catch (error) {
      this.failure = fileError(this.path, `read at byte ${this.#base + this.end}`, error);
      return 0;
    }
  }

  #readUnpacked(ring: ByteRing): number | undefined {
    const ended = ring.ended;
    const count = ring.read(this.bytes, this.end, CHUNK - this.end, !this.live);
    if (count > 0) return count;
    if (this.live && !ended) return undefined;
    const { failure } = ring;
    if (failure !== '')
      this.failure = `${this.path}: cannot unpack the ${this.#format} data at byte ${this.#base + this.end} of what it holds: ${failure}`;
    return 0;
  }
}

function openToRead(path: string): number {
  try {
    return openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    throw new CaptureError(fileError(path, 'open', error));
  }
}
