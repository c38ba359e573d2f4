/** Shares of a whole: what people write. Parsers throw a {@link UsageError}. */
import { parseQuantity, refuse, type Quantity } from './quantity.js';

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

/** The text that {@link parseShare} reads back exactly: 0.5 is `50%`. */
export function shareText(share: number): string {
  const text = String(share);
  const percent = Number(`${text}e2`); // NaN where text has an exponent already
  return parseQuantity(SHARE, `${Number.isNaN(percent) ? 0 : percent}%`) === share ? `${percent}%` : text;
}
