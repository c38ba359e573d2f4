/** What all that reads and writes quantities is made of: a number, and a unit that moves its decimal point. */
import { UsageError, printable } from './errors.js';

/** What one parser accepts: its name in messages, its units, and how to write it right. */
export interface Quantity {
  readonly what: string;
  /** What it counts, where it must be whole. */
  readonly of?: string;
  /** Powers of ten by suffix. */
  readonly units: ReadonlyMap<string, number>;
  /** Suffixes that stand for so many of another suffix: a minute is 60 s. */
  readonly multiples?: ReadonlyMap<string, { readonly times: number; readonly of: string }>;
  readonly remedy: string;
}

/** The SI prefixes, in the case that is written, and in the one that people type as well. */
const SI: readonly (readonly [string, number])[] = [
  ['', 0],
  ['k', 3],
  ['M', 6],
  ['G', 9],
  ['T', 12],
  ['K', 3],
  ['m', 6],
  ['g', 9],
  ['t', 12],
];

/** Each prefix followed by each of `tails`: `10G`, `10Gbit/s`. */
export function si(...tails: string[]): ReadonlyMap<string, number> {
  return new Map(tails.flatMap((tail) => SI.map(([prefix, power]) => [prefix + tail, power] as const)));
}

/** @throws UsageError always: text, cause and remedy */
export function refuse(quantity: Quantity, text: string, cause: string, at = 0): never {
  throw new UsageError(`${quantity.what} '${printable(text)}' ${cause}; ${quantity.remedy}`, at);
}

/**
 * The number `text` stands for; a blank may stand before the unit. The suffix moves the decimal point in the text
 * itself, before it becomes a double: `14.88M` is read as `14.88e6`, which is exactly 14,880,000, where 14.88 × 1e6
 * might not be.
 */
export function parseQuantity(quantity: Quantity, text: string): number {
  const match = /^(\d+(?:\.\d+)?|\.\d+)(?:[eE]([+-]?\d{1,3}))?( ?)(.*)$/s.exec(text);
  if (match === null) return refuse(quantity, text, text === '' ? 'is empty' : 'does not begin with a digit');
  const [, digits, exponent = '0', blank, unit] = match;
  const multiple = quantity.multiples?.get(unit);
  const power = quantity.units.get(multiple?.of ?? unit);
  if (power === undefined || (unit === '' && blank !== '')) {
    const cause = unit === '' ? 'has no unit' : `has the unknown unit '${printable(unit)}'`;
    return refuse(quantity, text, cause, text.length - unit.length);
  }
  const value = Number(`${digits}e${Number(exponent) + power}`) * (multiple?.times ?? 1);
  return Number.isFinite(value) ? value : refuse(quantity, text, 'is too large');
}

export function parseInteger(quantity: Quantity, text: string, min: number, max: number): number {
  const value = parseQuantity(quantity, text);
  if (!Number.isInteger(value)) {
    refuse(quantity, text, `is not a whole number${quantity.of === undefined ? '' : ` of ${quantity.of}`}`);
  }
  if (value < min || value > max) refuse(quantity, text, 'is out of range');
  return value;
}

/** `value`, 1 or more, with the largest unit that leaves 1 or more in front of it and is read back exactly. */
export function exactText(quantity: Quantity, value: number): string {
  let best = '';
  let scale = 0;
  for (const [unit, power] of quantity.units) {
    const text = `${value / 10 ** power}${unit}`;
    if (power < scale || value < 10 ** power || (best !== '' && power === scale)) continue;
    if (parseQuantity(quantity, text) === value) [best, scale] = [text, power];
  }
  return best;
}

/** `value` with four significant digits and the largest unit that keeps it at 1 or above. `units`: largest first. */
export function scaled(value: number, units: readonly (readonly [number, string])[]): string {
  const rounded = Number(value.toPrecision(4));
  const [scale, unit] = units.find(([size]) => Math.abs(rounded) >= size) ?? units.at(-1)!;
  return `${Number((rounded / scale).toPrecision(4))} ${unit}`;
}
