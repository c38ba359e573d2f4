import type { CaptureReader, Resolution } from '../../capture/reader.js';
import type { CaptureWriter } from '../../capture/writer.js';
import type { Memory } from '../../rings/memory.js';

/** No time is known for the buffer. */
const NONE = -1;

const known = new WeakMap<Memory, Stamps>();

/**
 * The times of the frames in one memory, by buffer, and how many bytes they had that were not captured: a slot has no
 * room for either, but a frame that is bridged keeps its buffers. The port that reads a capture sets them at a frame's
 * first buffer, the port that writes one takes them away again.
 *
 * Only captures keep this table. Another kind of port would fill a buffer and leave the old time standing, so it counts
 * only in a memory that captures have to themselves; elsewhere, as in copy mode, a frame has the time of writing.
 */
export class Stamps {
  readonly #sec: Float64Array;
  readonly #nsec: Int32Array;
  readonly #missing: Int32Array;
  readonly #writers: CaptureWriter[] = [];
  /** Captures that are read, those of them whose header has been, and those where it says µs. */
  #reading = 0;
  #known = 0;
  #coarse = 0;
  readonly #shares: number;
  #captures = 0;

  private constructor(memory: Memory) {
    this.#sec = new Float64Array(memory.bufCount);
    this.#nsec = new Int32Array(memory.bufCount).fill(NONE);
    this.#missing = new Int32Array(memory.bufCount);
    this.#shares = memory.shares;
  }

  static of(memory: Memory): Stamps {
    const stamps = known.get(memory) ?? new Stamps(memory);
    known.set(memory, stamps);
    return stamps;
  }

  /** Adds a port. What is written has the resolution of what is read: µs where all readers have it, else ns. */
  join(reads: boolean, writer: CaptureWriter | undefined): void {
    this.#captures++;
    if (reads) this.#reading++;
    if (writer !== undefined) this.#writers.push(writer);
    this.#resolve();
  }

  /** The header of a capture that is read has been. */
  read({ resolution }: CaptureReader): void {
    this.#known++;
    if (resolution === 'us') this.#coarse++;
    this.#resolve();
  }

  /** Whether all headers have been: the resolution of what is written does not change any more. */
  get settled(): boolean {
    return this.#known === this.#reading;
  }

  #resolve(): void {
    const resolution: Resolution = this.#reading > 0 && this.#coarse === this.#reading ? 'us' : 'ns';
    for (const each of this.#writers) each.resolution = resolution;
  }

  /** Whether what is read goes nowhere but into captures, which can hold frames of which only a part is there. */
  get onlyCaptures(): boolean {
    return this.#writers.length > 0 && this.#captures === this.#shares;
  }

  /** @param missing bytes of the frame that are not there; negative where there are more than it had */
  set(buffer: number, sec: number, nsec: number, missing: number): void {
    this.#sec[buffer] = sec;
    this.#nsec[buffer] = nsec;
    this.#missing[buffer] = missing;
  }

  clear(buffer: number): void {
    this.#nsec[buffer] = NONE;
  }

  has(buffer: number): boolean {
    return this.#captures === this.#shares && this.#nsec[buffer] !== NONE;
  }

  /** Seconds since 1970, where `has(buffer)`. */
  sec(buffer: number): number {
    return this.#sec[buffer];
  }

  /** Nanoseconds within the second, where `has(buffer)`. */
  nsec(buffer: number): number {
    return this.#nsec[buffer];
  }

  /** Bytes of the frame that were not captured, modulo 2³², where `has(buffer)`. */
  missing(buffer: number): number {
    return this.#missing[buffer];
  }
}
