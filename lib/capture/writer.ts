import { isatty } from 'node:tty';
import { closeSync, constants, fstatSync, ftruncateSync, openSync, statSync, writeSync, type Stats } from 'node:fs';
import type { Amount } from '../rings/amount.js';
import { now, POLLOUT } from '../shim/native.js';
import { copyBytes } from './copy-bytes.js';
import { CaptureError, codeOf, fileError } from './capture-error.js';
import { claim, conflict } from './inuse.js';
import { MAX_FRAME, type Resolution } from './reader.js';
import { isReady } from './ready.js';
import { Output, PcapForm, PcapngForm } from './write-form.js';

/** Bytes gathered before they are written to the file. */
const BUFFER = 1 << 20;
/** ns between two attempts to open a FIFO that nobody reads. */
const RETRY_NS = 10e6;
/** The path that means standard output. */
const STDOUT = '-';
/** What a pipe that polls as writable takes without blocking (PIPE_BUF of Linux; 512 in POSIX). */
const PIPE_BUF = 4096;

interface CaptureOptions {
  /** Default pcap. */
  readonly format?: 'pcap' | 'pcapng';
  /** Of pcap: resolution of the timestamps: default ns. With µs, the rest of a microsecond is cut off. */
  readonly resolution?: Resolution;
  /** The longest captured frame that is written, in bytes; default 262144, the most that libpcap reads. */
  readonly snaplen?: number;
}

/**
 * Writes Ethernet frames to a pcap or pcapng file (little-endian) through one fixed buffer. A FIFO is never waited for: what it does not take stays in the buffer, and where that is full, fits() says so.
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

  readonly format: 'pcap' | 'pcapng';
  readonly #form: PcapForm | PcapngForm;
  /** undefined: a FIFO that nobody reads yet. */
  #fd: number | undefined;
  readonly isFifo: boolean;
  readonly #stdout: boolean;
  #retry = 0;
  #release: () => void = () => undefined;
  readonly #out = new Output(new Uint8Array(BUFFER));
  /** Bytes of the buffer that the file has got: not all where a FIFO was full. */
  #done = 0;
  /** Bytes of the current frame that are still to come. */
  #missing = 0;
  /** Bytes of the current frame. */
  #length = 0;
  #open = true;
  #headed = false;
  /** Bytes of the file header at the start of the buffer, until that has been written to the file. */
  #header = 0;
  #failure: CaptureError | undefined;

  /** How it is called in messages. */
  readonly path: string;

  /** Creates, or empties, the file. Throws CaptureError if that fails or the file is open as another capture. */
  constructor(path: string, options: CaptureOptions = {}) {
    this.path = path === STDOUT ? 'stdout' : path;
    this.format = options.format ?? 'pcap';
    this.#form = this.format === 'pcap' ? new PcapForm(options.resolution ?? 'ns') : new PcapngForm();
    this.snaplen = options.snaplen ?? MAX_FRAME;
    if (!Number.isInteger(this.snaplen) || this.snaplen < 1 || this.snaplen > MAX_FRAME) {
      throw new RangeError(`snaplen must be a whole number from 1 to ${MAX_FRAME}, not ${this.snaplen}`);
    }
    this.#stdout = path === STDOUT;
    const stat = this.#stdout ? fstatSync(1) : statOf(path);
    this.isFifo = stat !== undefined && (stat.isFIFO() || (this.#stdout && stat.isSocket()));
    this.#connect();
  }

  /** Opens the file; standard output is open, and emptied by who wanted that. Returns false where it is a FIFO that nobody reads yet. */
  #connect(): boolean {
    const { path } = this;
    if (this.#stdout && isatty(1)) {
      throw new CaptureError(
        `${path}: cannot write: it is a terminal; send it to a file or a program: … | tshark -r -`,
      );
    }
    let fd = 1;
    try {
      if (!this.#stdout) fd = openSync(path, constants.O_WRONLY | constants.O_CREAT | constants.O_NONBLOCK, 0o666);
    } catch (error) {
      if (this.isFifo && codeOf(error) === 'ENXIO') {
        this.#retry = now() + RETRY_NS;
        return false;
      }
      throw new CaptureError(fileError(path, 'create', error));
    }
    const refused = conflict(fd, true);
    if (refused !== undefined) {
      this.#closeFile(fd);
      throw new CaptureError(`${path}: cannot write: ${refused}`);
    }
    // Emptied only now: it might have been the file that is being read.
    if (!this.#stdout && fstatSync(fd).isFile()) ftruncateSync(fd);
    this.#fd = fd;
    this.#release = claim(fd, true);
    return true;
  }

  /** Whether the file is open: a FIFO is once somebody reads it. */
  get connected(): boolean {
    return this.#fd !== undefined || (now() >= this.#retry && this.#connect());
  }

  /** Resolution of the timestamps: pcapng's is ns. What is set once the file header has been made changes nothing. */
  get resolution(): Resolution {
    return this.#form.resolution;
  }
  set resolution(resolution: Resolution) {
    if (!this.#headed && this.#form instanceof PcapForm) this.#form.resolution = resolution;
  }

  /** Whether there is room for a frame of `length` bytes; of a file always, of a FIFO where it takes what is before. */
  fits(length: number): boolean {
    return this.#out.used + this.#form.overhead + length <= BUFFER || this.#drain();
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
    if (!this.#form.begin(this.#out, length, origLen, tsSec, tsNsec)) this.clampedTimes++;
    this.#length = this.#missing = length;
    this.frames++;
    if (length === 0) this.#form.end(this.#out, 0);
  }

  /** Adds `length` bytes at `offset` of `data` to the frame begun. Throws RangeError if that is more than announced or than there is. */
  piece(data: Uint8Array, offset: number, length: number): void {
    if (!(length >= 0 && length <= this.#missing)) {
      throw new RangeError(`${this.path}: a piece of ${length} bytes, and frame ${this.frames} lacks ${this.#missing}`);
    }
    if (!(offset >= 0 && offset + length <= data.length)) {
      throw new RangeError(`${this.path}: a piece at ${offset} of ${length} bytes in ${data.length}`);
    }
    if (length === 0) return;
    copyBytes(data, offset, this.#out.bytes, this.#out.used, length);
    this.#out.used += length;
    this.#missing -= length;
    if (this.#missing === 0) this.#form.end(this.#out, this.#length);
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
      if (this.#fd !== undefined) this.#closeFile(this.#fd);
    }
  }

  #closeFile(fd: number): void {
    if (!this.#stdout) closeSync(fd);
  }

  #head(): void {
    if (this.#headed) return;
    this.#headed = true;
    this.#form.header(this.#out, this.snaplen);
    this.#header = this.#out.used;
  }

  #drain(): boolean {
    if (this.#failure !== undefined) throw this.#failure;
    try {
      if (!this.connected) return false;
      while (this.#done < this.#out.used) {
        if (this.isFifo && !isReady(this.#fd!, POLLOUT)) return false;
        // Standard output may be one that blocks.
        const most = this.isFifo && this.#stdout ? PIPE_BUF : BUFFER;
        const length = Math.min(most, this.#out.used - this.#done);
        this.#done += writeSync(this.#fd!, this.#out.bytes, this.#done, length);
      }
    } catch (error) {
      if (codeOf(error) === 'EAGAIN') return false;
      this.#failure = error instanceof CaptureError ? error : new CaptureError(fileError(this.path, 'write', error));
      this.lost = this.#beyond(this.#done);
      this.#out.used = this.#done = 0;
      throw this.#failure;
    }
    this.#header = this.#out.used = this.#done = 0;
    return true;
  }

  /** Frames that the file has not got, or not all of. */
  get buffered(): Amount {
    return this.#beyond(this.#done);
  }

  /** The frames of the buffer that do not end in its first `done` bytes. */
  #beyond(done: number): Amount {
    const amount = { frames: 0, bytes: 0 };
    for (let at = this.#header; at < this.#out.used;) {
      const [length, frame] = this.#form.measure(this.#out.bytes, at);
      at += length;
      if (frame < 0 || at <= done) continue;
      amount.frames++;
      amount.bytes += frame;
    }
    return amount;
  }
}

/** What stands at `path`, if anything does. Throws CaptureError where nobody may know. */
function statOf(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch (error) {
    throw new CaptureError(fileError(path, 'create', error));
  }
}
