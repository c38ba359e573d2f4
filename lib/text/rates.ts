/** Bits and frames a second: what people write, and what they read. Parsers throw a {@link UsageError}. */
import { exactText, parseQuantity, refuse, scaled, si, type Quantity } from './quantity.js';
import { meanSize, WIRE_OVERHEAD_BYTES, type FrameSize } from './sizes.js';

/**
 * Frames per second at line rate: `bitsPerSecond / (8 × (sizeWithFcs + 20))`; 10G at 64 bytes is 14,880,952. Of a mix,
 * with the mean of its sizes.
 */
export function lineRate(bitsPerSecond: number, sizeWithFcs: FrameSize): number {
  return bitsPerSecond / (8 * (meanSize(sizeWithFcs) + WIRE_OVERHEAD_BYTES));
}

/** Bits in every spelling; never `B`, which would be bytes. */
const BITS = ['b', 'bit', 'bits', 'Bit', 'Bits'].flatMap((bits) => ['', '/s', 'ps', '/sec'].map((per) => bits + per));

const RATE: Quantity = {
  what: 'rate',
  units: si('', ...BITS),
  remedy: "write bits per second with k, M, G or T, for example 10G, or 'max'",
};
const FRAME_RATE: Quantity = {
  what: 'frame rate',
  units: si('', 'pps', 'fps', 'p/s', 'packets/s', 'frames/s'),
  remedy: "write frames per second with k, M or G, for example 14.88M, or 'max'",
};

function parsePerSecond(quantity: Quantity, text: string, min: number): number {
  if (text === 'max') return Infinity;
  const value = parseQuantity(quantity, text);
  return value >= min ? value : refuse(quantity, text, `is below ${min}`);
}

/** A bit rate: `10G`, `100k`, `2.5 Gbit/s`, `10gbps`, `max`. Returns bits per second, 1 or more; Infinity for `max`. @throws UsageError */
export function parseRate(text: string): number {
  return parsePerSecond(RATE, text, 1);
}

/** A frame rate: `14.88M`, `100k`, `1Mpps`, `max`. Returns frames per second, 0.001 or more; Infinity for `max`. @throws UsageError */
export function parseFrameRate(text: string): number {
  return parsePerSecond(FRAME_RATE, text, 0.001);
}

/** Frames a second that no link carries: 800 Gbit/s at 64 bytes are 1.19 × 10⁹. */
const TOO_MANY = 2e9;
const PACE = { remedy: "write frames per second, for example 14.88M, bits per second, for example 10Gbps, or 'max'" };

/** Bits per second on the wire, where the unit of how fast to send says bits; else undefined. @throws UsageError */
export function parseWirePace(text: string): number | undefined {
  return /b(its?)?(ps|\/s|\/sec)?$/i.test(text) ? parsePerSecond({ ...RATE, ...PACE }, text, 1) : undefined;
}

/**
 * How fast to send frames of `size` bytes with FCS: frames (`1M`, `14.88Mpps`), or bits on the wire where the unit says
 * so (`10Gbps`, `10 Gbit/s`). Returns frames per second; Infinity for `max`. @throws UsageError
 */
export function parsePace(text: string, size: number): number {
  const bits = parseWirePace(text);
  if (bits !== undefined) return lineRate(bits, size);
  const rate = parsePerSecond({ ...FRAME_RATE, ...PACE }, text, 0.001);
  if (rate === Infinity || rate < TOO_MANY || /p/i.test(text)) return rate;
  return refuse(
    { ...FRAME_RATE, remedy: `write ${text}bps for bits per second` },
    text,
    'is more frames than a link carries',
  );
}

/** The text that {@link parseRate} reads back exactly: 1e10 is `10G`, Infinity is `max`. */
export function rateText(bitsPerSecond: number): string {
  return bitsPerSecond === Infinity ? 'max' : exactText(RATE, bitsPerSecond);
}

/** Units that people read rates in, largest first. */
type Scale = readonly (readonly [size: number, unit: string])[];
const BIT_RATES: Scale = [
  [1e12, 'Tbit/s'],
  [1e9, 'Gbit/s'],
  [1e6, 'Mbit/s'],
  [1e3, 'kbit/s'],
  [1, 'bit/s'],
];
const FRAME_RATES: Scale = [
  [1e6, 'Mpps'],
  [1e3, 'kpps'],
  [1, 'pps'],
];

/** A bit rate for people: `9.872 Gbit/s`, four significant digits; `max` for Infinity. */
export function formatRate(bitsPerSecond: number): string {
  return bitsPerSecond === Infinity ? 'max' : scaled(bitsPerSecond, BIT_RATES);
}

/** A frame rate for people: `14.88 Mpps`, four significant digits. */
export function formatFrameRate(framesPerSecond: number): string {
  return scaled(framesPerSecond, FRAME_RATES);
}

/** One unit for the rates of a table, with three decimals. */
export interface RateColumn {
  unit: string;
  text: (rate: number) => string;
}

/** The largest unit in which a rate of `most` is 0.1 or more. */
function rateColumn(scale: Scale, most: number): RateColumn {
  const [size, unit] = scale.find(([each]) => most >= each / 10) ?? scale.at(-1)!;
  return { unit, text: (rate) => (rate / size).toFixed(3) };
}

/** For bit rates up to `most`, bits per second; Gbit/s where there is no limit. */
export function bitRateColumn(most: number): RateColumn {
  return rateColumn(BIT_RATES.slice(1), most);
}

/** For frame rates up to `most`, frames per second. */
export function frameRateColumn(most: number): RateColumn {
  return rateColumn(FRAME_RATES, most);
}
