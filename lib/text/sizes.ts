/** Sizes of frames, and of what holds them. Every parser throws a {@link UsageError} with text, cause and example. */
import { UsageError } from './errors.js';
import { parseInteger, type Quantity } from './quantity.js';

/** Bytes of the frame check sequence, counted in every frame size, never in a slot's `len` (IEEE 802.3, 3.2.9). */
export const FCS_BYTES = 4;

/**
 * Bytes each frame costs on the wire beside its own: preamble and start delimiter 8, inter-packet gap 12
 * (IEEE 802.3, 3.2.1, 3.2.2 and 4.4.2; RFC 2544, appendix B, reckons its frame rates with them).
 */
export const WIRE_OVERHEAD_BYTES = 20;

/** The least Ethernet frame, in bytes with FCS (IEEE 802.3, 4.4.2: minFrameSize is 512 bits). */
export const MIN_FRAME_SIZE = 64;

/** The longest frame a ring can carry, in bytes with FCS: 64 slots (netmap.h, API 14) of 65,535 bytes (u16 `len`). */
export const MAX_FRAME_SIZE = 64 * 65535;

/** One size of a mix: bytes with FCS, and how many frames of each round have it. */
export interface WeightedSize {
  /** Bytes with FCS. */
  readonly size: number;
  /** Frames of this size in each round of the mix, 1..65535. */
  readonly weight: number;
}

/** The "simple IMIX": 7 × 64, 4 × 594, 1 × 1518 bytes with FCS (RFC 6985 describes IMIX; the 7:4:1 mix is the customary one). */
export const IMIX: readonly WeightedSize[] = [
  { size: 64, weight: 7 },
  { size: 594, weight: 4 },
  { size: 1518, weight: 1 },
];

const SIZE: Quantity = {
  what: 'frame size',
  of: 'bytes',
  units: new Map([['', 0]]),
  remedy: 'write bytes with the 4-byte FCS, 64 to 4194240, for example 1518',
};
const WEIGHT: Quantity = {
  what: 'weight',
  units: new Map([['', 0]]),
  remedy: 'write a mix with weights from 1 to 65535, for example 64*7+594*4+1518',
};

/** A frame size: `64`. Returns bytes with FCS, 64..4,194,240. @throws UsageError */
export function parseFrameSize(text: string): number {
  return parseInteger(SIZE, text, MIN_FRAME_SIZE, MAX_FRAME_SIZE);
}

/** Runs `parse` on each part of `text`; an error points into the whole text. */
function parseParts<T>(text: string, separator: string, parse: (part: string) => T): T[] {
  let start = 0;
  return text.split(separator).map((part) => {
    const at = start;
    start += part.length + separator.length;
    return moved(at, () => parse(part));
  });
}

/** Runs `parse` on a piece of a text that begins at `start` of the whole; an error's `at` is moved accordingly. */
function moved<T>(start: number, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw error instanceof UsageError ? new UsageError(error.message, start + error.at) : error;
  }
}

/** What trials are told apart by: one size in bytes with FCS, or a mix by the text that {@link parseSizeMix} reads. */
export type FrameSize = number | string;

/** A list of frame sizes and mixes: `64,128,imix`, in the order written. @throws UsageError */
export function parseSizes(text: string): FrameSize[] {
  return parseParts(text, ',', (part) => frameSizeOf(parseSizeMix(part)));
}

/** A mix as what trials are told apart by. */
export function frameSizeOf(mix: readonly WeightedSize[]): FrameSize {
  if (mix.length === 1) return mix[0].size;
  const text = sizeMixText(mix);
  return text === sizeMixText(IMIX) ? 'imix' : text;
}

/** The sizes that frames of `size` have. */
export function sizesOf(size: FrameSize): readonly WeightedSize[] {
  return typeof size === 'number' ? [{ size, weight: 1 }] : parseSizeMix(size);
}

/** Bytes with FCS of a frame, on average. */
export function meanSize(size: FrameSize): number {
  const mix = sizesOf(size);
  const sum = (of: (each: WeightedSize) => number): number => mix.reduce((total, each) => total + of(each), 0);
  return sum((each) => each.size * each.weight) / sum(({ weight }) => weight);
}

/** A size or a mix of sizes: `64`, `64*7+594*4+1518`, `imix`. Returns bytes with FCS and weights. @throws UsageError */
export function parseSizeMix(text: string): readonly WeightedSize[] {
  if (text === 'imix') return IMIX;
  return parseParts(text, '+', (part) => {
    const star = part.indexOf('*');
    if (star < 0) return { size: parseFrameSize(part), weight: 1 };
    const size = parseFrameSize(part.slice(0, star));
    return { size, weight: moved(star + 1, () => parseInteger(WEIGHT, part.slice(star + 1), 1, 65535)) };
  });
}

/** A mix as one repeating sequence of sizes in which every one comes as evenly as its weight allows. */
export function mixSequence(mix: readonly WeightedSize[]): number[] {
  const total = mix.reduce((sum, { weight }) => sum + weight, 0);
  const due = mix.map(() => 0);
  return Array.from({ length: total }, () => {
    mix.forEach(({ weight }, i) => (due[i] += weight));
    const pick = due.indexOf(Math.max(...due));
    due[pick] -= total;
    return mix[pick].size;
  });
}

/** The text that {@link parseSizeMix} reads back as `mix`. */
export function sizeMixText(mix: readonly WeightedSize[]): string {
  return mix.map(({ size, weight }) => (weight === 1 ? String(size) : `${size}*${weight}`)).join('+');
}
