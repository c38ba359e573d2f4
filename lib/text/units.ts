/**
 * Frame sizes, rates, times, counts and shares: one parser each for what people write, and the formatters for what
 * they read. Every parser throws a {@link UsageError} that names the text, the cause and an example.
 */
import { UsageError, printable } from './errors.js';

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

/** Frames per second at line rate: `bitsPerSecond / (8 × (sizeWithFcs + 20))`; 10G at 64 bytes is 14,880,952. */
export function lineRate(bitsPerSecond: number, sizeWithFcs: number): number {
  return bitsPerSecond / (8 * (sizeWithFcs + WIRE_OVERHEAD_BYTES));
}

/** What one parser accepts: its name in messages, powers of ten by suffix, and how to write it right. */
interface Quantity {
  readonly what: string;
  /** What it counts, where it must be whole. */
  readonly of?: string;
  readonly units: ReadonlyMap<string, number>;
  readonly remedy: string;
}

const SI: readonly (readonly [string, number])[] = [
  ['', 0],
  ['k', 3],
  ['K', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
];

/** The SI prefixes, each also followed by one of `tails`: `10G`, `10Gbit/s`. */
function si(...tails: string[]): ReadonlyMap<string, number> {
  return new Map(['', ...tails].flatMap((tail) => SI.map(([prefix, power]) => [prefix + tail, power] as const)));
}

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
const RATE: Quantity = {
  what: 'rate',
  units: si('bit/s', 'bps', 'b/s'),
  remedy: "write bits per second with k, M, G or T, for example 10G, or 'max'",
};
const FRAME_RATE: Quantity = {
  what: 'frame rate',
  units: si('pps', 'fps'),
  remedy: "write frames per second with k, M or G, for example 14.88M, or 'max'",
};
const COUNT: Quantity = {
  what: 'count',
  units: new Map(SI),
  remedy: 'write a whole number, if you like with k, M or G, for example 1000 or 10M',
};
const TIME: Quantity = {
  what: 'time',
  of: 'nanoseconds',
  units: new Map([
    ['ns', 0],
    ['us', 3],
    ['µs', 3],
    ['μs', 3],
    ['ms', 6],
    ['s', 9],
  ]),
  remedy: 'write a number with ns, us, ms or s, for example 124us',
};
const SECONDS: Quantity = {
  ...TIME,
  units: new Map([['', 9], ...TIME.units]),
  remedy: 'write seconds, for example 10 or 0.5',
};
const PERCENT: Quantity = {
  what: 'percentage',
  units: new Map([['%', -2]]),
  remedy: 'write a number from 0 to 100 with %, for example 50%',
};
const SHARE: Quantity = {
  what: 'share',
  units: new Map([
    ['', 0],
    ['%', -2],
  ]),
  remedy: 'write a percentage or a number from 0 to 1, for example 1% or 0.01',
};

function refuse(quantity: Quantity, text: string, cause: string, at = 0): never {
  throw new UsageError(`${quantity.what} '${printable(text)}' ${cause}; ${quantity.remedy}`, at);
}

/**
 * The number `text` stands for. The suffix moves the decimal point in the text itself, before it becomes a double:
 * `14.88M` is read as `14.88e6`, which is exactly 14,880,000, where 14.88 × 1e6 might not be.
 */
function parseQuantity(quantity: Quantity, text: string): number {
  const match = /^(\d+(?:\.\d+)?)(?:[eE]([+-]?\d{1,3}))?(.*)$/s.exec(text);
  if (match === null) return refuse(quantity, text, text === '' ? 'is empty' : 'does not begin with a digit');
  const [, digits, exponent = '0', unit] = match;
  const power = quantity.units.get(unit);
  if (power === undefined) {
    const cause = unit === '' ? 'has no unit' : `has the unknown unit '${printable(unit)}'`;
    return refuse(quantity, text, cause, text.length - unit.length);
  }
  const value = Number(`${digits}e${Number(exponent) + power}`);
  return Number.isFinite(value) ? value : refuse(quantity, text, 'is too large');
}

function parseInteger(quantity: Quantity, text: string, min: number, max: number): number {
  const value = parseQuantity(quantity, text);
  if (!Number.isInteger(value)) {
    refuse(quantity, text, `is not a whole number${quantity.of === undefined ? '' : ` of ${quantity.of}`}`);
  }
  if (value < min || value > max) refuse(quantity, text, 'is out of range');
  return value;
}

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

/** A list of frame sizes: `64,128,1518`. Returns bytes with FCS, in the order written. @throws UsageError */
export function parseSizes(text: string): number[] {
  return parseParts(text, ',', parseFrameSize);
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

function parsePerSecond(quantity: Quantity, text: string, min: number): number {
  if (text === 'max') return Infinity;
  const value = parseQuantity(quantity, text);
  return value >= min ? value : refuse(quantity, text, `is below ${min}`);
}

/** A bit rate: `10G`, `100k`, `2.5Gbit/s`, `max`. Returns bits per second, 1 or more; Infinity for `max`. @throws UsageError */
export function parseRate(text: string): number {
  return parsePerSecond(RATE, text, 1);
}

/** A frame rate: `14.88M`, `100k`, `1Mpps`, `max`. Returns frames per second, 0.001 or more; Infinity for `max`. @throws UsageError */
export function parseFrameRate(text: string): number {
  return parsePerSecond(FRAME_RATE, text, 0.001);
}

/** A time: `80ns`, `124us`, `1.5ms`, `2s`, `0`. Returns whole nanoseconds. A bare number other than 0 is refused. @throws UsageError */
export function parseTime(text: string): number {
  return text === '0' ? 0 : parseInteger(TIME, text, 0, Number.MAX_SAFE_INTEGER);
}

/** A time on a command line: bare numbers are seconds, `0.5`, and the units of {@link parseTime} are taken too. Returns seconds. @throws UsageError */
export function parseSeconds(text: string): number {
  return parseInteger(SECONDS, text, 0, Number.MAX_SAFE_INTEGER) / 1e9;
}

/** A count: `1000`, `10M`, `1.5k`. Returns a whole number, 0 or more, that a double holds exactly. @throws UsageError */
export function parseCount(text: string): number {
  return parseInteger(COUNT, text, 0, Number.MAX_SAFE_INTEGER);
}

/** A whole number with limits, both included; `what` names it in messages. @throws UsageError */
export function parseCountWithin(text: string, min: number, max: number, what = 'number'): number {
  return parseInteger({ ...COUNT, what, remedy: `write a whole number from ${min} to ${max}` }, text, min, max);
}

function parseFraction(quantity: Quantity, text: string): number {
  const value = parseQuantity(quantity, text);
  return value <= 1 ? value : refuse(quantity, text, 'is above 100%');
}

/** A percentage: `50%`. Returns a fraction, 0..1. @throws UsageError */
export function parsePercent(text: string): number {
  return parseFraction(PERCENT, text);
}

/** A share or probability: `1%` or `0.01`. Returns a fraction, 0..1. @throws UsageError */
export function parseShare(text: string): number {
  return parseFraction(SHARE, text);
}

/** `value`, 1 or more, with the largest unit that leaves 1 or more in front of it and is read back exactly. */
function exactText(quantity: Quantity, value: number): string {
  let best = '';
  let scale = 0;
  for (const [unit, power] of quantity.units) {
    const text = `${value / 10 ** power}${unit}`;
    if (power < scale || value < 10 ** power || (best !== '' && power === scale)) continue;
    if (parseQuantity(quantity, text) === value) [best, scale] = [text, power];
  }
  return best;
}

/** The text that {@link parseRate} reads back exactly: 1e10 is `10G`, Infinity is `max`. */
export function rateText(bitsPerSecond: number): string {
  return bitsPerSecond === Infinity ? 'max' : exactText(RATE, bitsPerSecond);
}

/** The text that {@link parseTime} reads back exactly: 124000 is `124us`. */
export function timeText(ns: number): string {
  return ns === 0 ? '0' : exactText(TIME, ns);
}

/** The text that {@link parseShare} reads back exactly: 0.5 is `50%`. */
export function shareText(share: number): string {
  const text = String(share);
  const percent = Number(`${text}e2`); // NaN where text has an exponent already
  return parseQuantity(SHARE, `${Number.isNaN(percent) ? 0 : percent}%`) === share ? `${percent}%` : text;
}

/** `value` with four significant digits and the largest unit that keeps it at 1 or above. `units`: largest first. */
function scaled(value: number, units: readonly (readonly [number, string])[]): string {
  const rounded = Number(value.toPrecision(4));
  const [scale, unit] = units.find(([size]) => Math.abs(rounded) >= size) ?? units.at(-1)!;
  return `${Number((rounded / scale).toPrecision(4))} ${unit}`;
}

/** A bit rate for people: `9.872 Gbit/s`, four significant digits; `max` for Infinity. */
export function formatRate(bitsPerSecond: number): string {
  if (bitsPerSecond === Infinity) return 'max';
  return scaled(bitsPerSecond, [
    [1e12, 'Tbit/s'],
    [1e9, 'Gbit/s'],
    [1e6, 'Mbit/s'],
    [1e3, 'kbit/s'],
    [1, 'bit/s'],
  ]);
}

/** A frame rate for people: `14.88 Mpps`, four significant digits. */
export function formatFrameRate(framesPerSecond: number): string {
  return scaled(framesPerSecond, [
    [1e6, 'Mpps'],
    [1e3, 'kpps'],
    [1, 'pps'],
  ]);
}

/** A time in nanoseconds for people: `124 µs`, `1.5 ms`, four significant digits. */
export function formatTime(ns: number): string {
  return scaled(ns, [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
    [1, 'ns'],
  ]);
}

/** A number of bytes for people, in powers of ten: `343 MB`, four significant digits. */
export function formatBytes(bytes: number): string {
  return scaled(bytes, [
    [1e12, 'TB'],
    [1e9, 'GB'],
    [1e6, 'MB'],
    [1e3, 'kB'],
    [1, 'B'],
  ]);
}
