/**
 * How a pipe memory is laid out: a header with a table of pipes, then every pipe's rings in netmap's layout, then the
 * buffers. Numbers are 32-bit words unless named bytes. Between processes, so a change needs a new VERSION.
 */
import { FIRST_BUFFER } from '../../rings/abi.js';
import { bufferCount, ringBytes, type RingPlan } from '../../rings/memory.js';

export const MAGIC = 0x65706970;
export const VERSION = 2;
/** netmap's usual buffer, in bytes. */
export const BUF_SIZE = 2048;

/** Header words. MAGIC is written last: without it the memory is unfinished. */
export const AT_MAGIC = 0;
export const AT_VERSION = 1;
export const AT_SLOTS = 2;
export const AT_BUF_SIZE = 3;

/** Two cache lines, because processors fetch them in pairs: words of different writers never share one. */
const LINE = 32;
const PIPE_WORDS = 5 * LINE;
const MAX_PIPES = 16;
const HEADER_BYTES = 12288;

/** Within a pipe's entry: its id (16 bytes, empty: never used), owners' process ids, first words of its four rings. */
export const ID_WORDS = 4;
const OWNERS = 4;
const RINGS = 8;

/** First word of pipe `k`'s entry. */
export function entryWord(k: number): number {
  return LINE + k * PIPE_WORDS;
}
/** Word of the process id that opened an end (0 master, 1 slave) last; 0 when it was closed. */
export function ownerWord(k: number, side: number): number {
  return entryWord(k) + OWNERS + side;
}
/** Word that holds the first word of an end's tx (0) or rx (1) ring. */
export function ringWord(k: number, side: number, direction: number): number {
  return entryWord(k) + RINGS + 2 * side + direction;
}
/** Word of the first slot that `side` has not sent yet: written by `side`, read by its peer. */
export function prodWord(k: number, side: number): number {
  return entryWord(k) + LINE * (1 + 2 * side);
}
/** Word of the first slot of what `side` sent that the peer has not given back: written by the peer. */
export function consWord(k: number, side: number): number {
  return entryWord(k) + LINE * (2 + 2 * side);
}

/** The sizes that follow from the number of slots. */
export interface Geometry {
  readonly slots: number;
  /** Pipes there is room for. */
  readonly pipes: number;
  /** One end's rings; a pipe has two ends. */
  readonly plan: RingPlan;
  /** Bytes of the header: where ring memory begins. */
  readonly ringBase: number;
  /** Byte of buffer 0. */
  readonly bufBase: number;
  readonly bufCount: number;
  readonly bytes: number;
}

/** As many pipes as fit below 2 GiB, 16 at most: byte offsets stay within 31 bits. Pages nobody touched take no memory. */
export function geometry(slots: number): Geometry {
  const plan: RingPlan = { tx: [slots], rx: [slots] };
  const pipeBytes = ringBytes([plan, plan]) + 4 * slots * BUF_SIZE;
  const pipes = Math.min(MAX_PIPES, Math.floor((2 ** 31 - HEADER_BYTES - FIRST_BUFFER * BUF_SIZE) / pipeBytes));
  const plans = Array.from({ length: 2 * pipes }, () => plan);
  const bufBase = HEADER_BYTES + ringBytes(plans);
  const bufCount = bufferCount(plans);
  return { slots, pipes, plan, ringBase: HEADER_BYTES, bufBase, bufCount, bytes: bufBase + bufCount * BUF_SIZE };
}

/** First buffer that pipe `k` began with; the next pipe's first one ends them. They may since have moved to others. */
export function firstBuffer(slots: number, k: number): number {
  return FIRST_BUFFER + 4 * slots * k;
}
