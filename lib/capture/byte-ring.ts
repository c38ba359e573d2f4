/** Words of the control block. */
const TURN = 0; // counts every change, and is what either side waits on
const WRITTEN = 1; // bytes so far, modulo 2³²
const READ = 2;
const ENDED = 3;
const GONE = 4;
const FAILURE = 5; // bytes of the text behind the control block
const WORDS = 8;
const TEXT = 1024;
/** A power of two. */
const SIZE = 1 << 20;
/** ms after which the other thread is taken for dead. */
const PATIENCE = 30_000;

/** Bytes on their way from one thread to another, through shared memory. */
export class ByteRing {
  readonly #words: Int32Array;
  readonly #text: Uint8Array;
  readonly #bytes: Uint8Array;

  constructor(readonly shared = new SharedArrayBuffer(4 * WORDS + TEXT + SIZE)) {
    this.#words = new Int32Array(shared, 0, WORDS);
    this.#text = new Uint8Array(shared, 4 * WORDS, TEXT);
    this.#bytes = new Uint8Array(shared, 4 * WORDS + TEXT, SIZE);
  }

  /** Writes all of `data`, waiting for room. Returns false where the reader has gone. */
  write(data: Uint8Array): boolean {
    for (let at = 0; at < data.length && !this.gone;) {
      const turn = this.#load(TURN);
      const written = this.#load(WRITTEN);
      const from = written & (SIZE - 1);
      const room = SIZE - ((written - this.#load(READ)) | 0);
      const length = Math.min(room, SIZE - from, data.length - at);
      if (length === 0) Atomics.wait(this.#words, TURN, turn);
      else {
        this.#bytes.set(data.subarray(at, at + length), from);
        at += length;
        this.#set(WRITTEN, written + length);
      }
    }
    return !this.gone;
  }

  /** The last has been written. */
  end(failure = ''): void {
    const { written } = new TextEncoder().encodeInto(failure, this.#text);
    this.#set(FAILURE, written);
    this.#set(ENDED, 1);
  }

  /** Whether the reader wants no more. */
  get gone(): boolean {
    return this.#load(GONE) !== 0;
  }

  /**
   * Reads into `into[at .. at + most)`. Returns the number of bytes: 0 after the last, and where there are none yet and
   * they are not waited for.
   */
  read(into: Uint8Array, at: number, most: number, wait: boolean): number {
    for (;;) {
      const turn = this.#load(TURN);
      const ended = this.ended;
      const read = this.#load(READ);
      const from = read & (SIZE - 1);
      const length = Math.min((this.#load(WRITTEN) - read) | 0, SIZE - from, most);
      if (length > 0) {
        into.set(this.#bytes.subarray(from, from + length), at);
        this.#set(READ, read + length);
        return length;
      }
      if (ended || !wait) return 0;
      if (Atomics.wait(this.#words, TURN, turn, PATIENCE) === 'timed-out') this.end('its thread does not answer');
    }
  }

  /** Whether nothing more is written; read() may still have some. */
  get ended(): boolean {
    return this.#load(ENDED) !== 0;
  }

  get failure(): string {
    return new TextDecoder().decode(this.#text.slice(0, this.#load(FAILURE)));
  }

  /** Wants no more, and waits until the writer has noticed. Returns whether it has. */
  close(): boolean {
    this.#set(GONE, 1);
    for (let turn = this.#load(TURN); !this.ended; turn = this.#load(TURN))
      if (Atomics.wait(this.#words, TURN, turn, PATIENCE) === 'timed-out') return false;
    return true;
  }

  #load(word: number): number {
    return Atomics.load(this.#words, word);
  }

  #set(word: number, value: number): void {
    Atomics.store(this.#words, word, value);
    Atomics.add(this.#words, TURN, 1);
    Atomics.notify(this.#words, TURN);
  }
}
