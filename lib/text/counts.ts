/** Counts, and the ranges they must be in, each stated once. Parsers throw a {@link UsageError}. */
import { parseInteger, si, type Quantity } from './quantity.js';

const COUNT: Quantity = {
  what: 'count',
  units: si(''),
  remedy: 'write a whole number, if you like with k, M or G, for example 1000 or 10M',
};

/** A count: `1000`, `10M`, `1.5k`. Returns a whole number, 0 or more, that a double holds exactly. @throws UsageError */
export function parseCount(text: string): number {
  return parseInteger(COUNT, text, 0, Number.MAX_SAFE_INTEGER);
}

/** What a whole number may be, both ends included, and what it is called in messages. */
export interface Range {
  readonly what: string;
  readonly min: number;
  readonly max: number;
}

/** Slots moved at once: no ring of any port has more, so that a larger burst would change nothing. */
export const BURST: Range = { what: 'burst', min: 1, max: 65_536 };
/** Frames after which a run ends. */
export const FRAMES: Range = { what: 'count', min: 1, max: Number.MAX_SAFE_INTEGER };
/** Number of a CPU. */
export const CPU: Range = { what: 'CPU', min: 0, max: 4095 };

/** A parser of whole numbers in `range`: `line.read('burst', within(BURST))`; it throws a UsageError. */
export function within({ what, min, max }: Range): (text: string) => number {
  return (text) => parseCountWithin(text, min, max, what);
}

/** Whether a value that a program gave is in `range`. */
export function isWithin({ min, max }: Range, value: unknown): boolean {
  return Number.isInteger(value) && (value as number) >= min && (value as number) <= max;
}

/** A range in words: `1 to 65536`. */
export function rangeText({ min, max }: Range): string {
  return max === Number.MAX_SAFE_INTEGER ? `${min} up` : `${min} to ${max}`;
}

/** A whole number with limits, both included; `what` names it in messages. @throws UsageError */
export function parseCountWithin(text: string, min: number, max: number, what = 'number'): number {
  return parseInteger({ ...COUNT, what, remedy: `write a whole number from ${min} to ${max}` }, text, min, max);
}
