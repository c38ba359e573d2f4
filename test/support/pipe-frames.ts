/** Frames whose every byte follows from a generation and a number, of 60 to 1514 bytes, every eleventh in two slots. */
import { MOREFRAG } from '../../lib/rings/abi.js';
import type { Ring } from '../../lib/rings/ring.js';

const HEADER = 12;

function sizeOf(n: number): number {
  return 60 + ((n * 37) % 1455);
}

function byteOf(n: number, at: number): number {
  return (n * 31 + at * 7) & 0xff;
}

/** Writes frame `n`: generation, number and slot, then bytes 64 apart, all of the frame's own. False: no room. */
export function putFrame(tx: Ring, generation: number, n: number): boolean {
  const slots = n % 11 === 0 ? 2 : 1;
  if (tx.space < slots) return false;
  for (let k = 0; k < slots; k++) {
    const i = tx.head;
    const size = sizeOf(n + k);
    const start = tx.dataStart(i);
    tx.i32[start / 4] = generation;
    tx.i32[start / 4 + 1] = n;
    tx.i32[start / 4 + 2] = k;
    for (let at = HEADER; at < size; at += 64) tx.u8[start + at] = byteOf(n + k, at);
    tx.setLenFlags(i, size, k + 1 < slots ? MOREFRAG : 0);
    tx.advance(1);
  }
  return true;
}

/** Reads frames and holds them against what putFrame() writes; numbers must rise by one, or by more with `gaps`. */
export class FrameChecker {
  frames = 0;
  gaps = 0;
  /** What was wrong, in words; empty: nothing. */
  readonly faults: string[] = [];
  #generation = 0;
  #next = 0;
  #slot = 0;

  constructor(readonly mayLose = false) {}

  takeAll(rx: Ring): void {
    while (rx.space > 0) {
      this.#take(rx, rx.head);
      rx.advance(1);
    }
  }

  #take(rx: Ring, i: number): void {
    if (rx.len(i) === 0) return; // carries no frame
    if (!rx.slotValid(i)) {
      this.#fault('corrupt slot', i);
      return;
    }
    const start = rx.dataStart(i);
    const generation = rx.i32[start / 4];
    const n = rx.i32[start / 4 + 1];
    const k = rx.i32[start / 4 + 2];
    const size = sizeOf(n + k);
    const more = (rx.slotFlags(i) & MOREFRAG) !== 0;
    if (rx.len(i) !== size) this.#fault(`length ${rx.len(i)}, not ${size}`, n);
    if (more !== (n % 11 === 0 && k === 0)) this.#fault('fragment flag', n);
    if (k !== this.#slot) this.#fault(`fragment ${k}, not ${this.#slot}`, n);
    for (let at = HEADER; at < size; at += 64)
      if (rx.u8[start + at] !== byteOf(n + k, at)) {
        this.#fault(`byte ${at}`, n);
        break;
      }
    this.#slot = more ? k + 1 : 0;
    if (k > 0) return;
    if (generation < this.#generation) this.#fault(`generation ${generation} after ${this.#generation}`, n);
    if (generation > this.#generation) this.#next = 0;
    this.#generation = generation;
    if (n < this.#next) this.#fault(`comes after ${this.#next - 1}`, n);
    if (n > this.#next) {
      this.gaps++;
      if (!this.mayLose) this.#fault(`${n - this.#next} missing before it`, n);
    }
    this.#next = n + 1;
    this.frames++;
  }

  #fault(what: string, n: number): void {
    if (this.faults.length < 10) this.faults.push(`frame ${n}: ${what}`);
  }
}
