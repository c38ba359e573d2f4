const BILLION = 1e9;

/** A 96-bit number in 16-bit limbs, least significant first: room for 64 bits × 10⁹. Scratch space of convert(). */
const limbs = new Uint16Array(6);

function multiply(factor: number): void {
  let carry = 0;
  for (let i = 0; i < limbs.length; i++) {
    const product = limbs[i] * factor + carry;
    limbs[i] = product; // the store keeps the low 16 bits
    carry = Math.floor(product / 65536);
  }
}

function add(addend: number): void {
  let carry = addend;
  for (let i = 0; i < limbs.length && carry > 0; i++) {
    const sum = limbs[i] + carry;
    limbs[i] = sum;
    carry = Math.floor(sum / 65536);
  }
}

/** Divides by at most 2³⁰ and returns the remainder. */
function divide(divisor: number): number {
  let remainder = 0;
  for (let i = limbs.length - 1; i >= 0; i--) {
    const dividend = remainder * 65536 + limbs[i];
    const quotient = Math.floor(dividend / divisor);
    limbs[i] = quotient;
    remainder = dividend - quotient * divisor;
  }
  return remainder;
}

/**
 * Turns a pcapng timestamp (64-bit count of units since 1970) into seconds and nanoseconds, without BigInt and without
 * allocating. Exact where the unit is a whole number of nanoseconds or 2⁻⁹ s and coarser; a finer unit is rounded to the
 * nearest nanosecond, halves up. Source: draft-ietf-opsawg-pcapng, options if_tsresol and if_tsoffset.
 */
export class TimestampScale {
  /** The last converted time: whole seconds since 1970 (exact up to 2⁵³). */
  seconds = 0;
  /** The last converted time: nanoseconds within the second, 0 to 999,999,999. */
  nanoseconds = 0;
  /** Whether every timestamp in this unit is a whole number of nanoseconds. */
  readonly exact: boolean;
  /** The unit as text: `10^-6 s`, `2^-20 s`. */
  readonly unit: string;

  readonly #offset: number;
  /** Units a second where that is a power of ten up to 10⁹, the usual case; else 0. */
  readonly #perSecond: number;
  readonly #multiplier: number;
  /** units → ns: divide by each of these, then by `#lastDivisor` with rounding. */
  readonly #divisors: number[] = [];
  readonly #lastDivisor: number;

  /**
   * @param tsresol the if_tsresol byte: a negative power of 10, or of 2 where the top bit is set
   * @param offset if_tsoffset: seconds to add
   */
  constructor(tsresol: number, offset: number) {
    const base = tsresol & 0x80 ? 2 : 10;
    const exponent = tsresol & 0x7f;
    this.#offset = offset;
    this.unit = exponent === 0 ? '1 s' : `${base}^-${exponent} s`;
    this.exact = exponent <= 9;
    this.#lastDivisor = base;
    if (exponent === 0 || (base === 10 && exponent <= 9)) {
      this.#perSecond = 10 ** exponent;
      this.#multiplier = BILLION / this.#perSecond;
      return;
    }
    this.#perSecond = 0;
    this.#multiplier = base === 2 ? BILLION : 1;
    // One power of the base is kept for the last, rounding division; the others go in steps that fit divide().
    const step = base === 2 ? 30 : 9;
    for (let left = base === 2 ? exponent - 1 : exponent - 10; left > 0; left -= step) {
      this.#divisors.push(base ** Math.min(left, step));
    }
  }

  /** Converts the timestamp whose high and low 32-bit words (unsigned) are given; leaves the result in `seconds` and `nanoseconds`. */
  convert(high: number, low: number): void {
    if (this.#perSecond > 0) this.#convertDecimal(high, low);
    else this.#convertOther(high, low);
  }

  /** Long division in steps that stay below 2⁵³. */
  #convertDecimal(high: number, low: number): void {
    const perSecond = this.#perSecond;
    const q0 = Math.floor(high / perSecond);
    let rest = (high - q0 * perSecond) * 65536 + (low >>> 16);
    const q1 = Math.floor(rest / perSecond);
    rest = (rest - q1 * perSecond) * 65536 + (low & 0xffff);
    const q2 = Math.floor(rest / perSecond);
    this.seconds = q0 * 4294967296 + q1 * 65536 + q2 + this.#offset;
    this.nanoseconds = (rest - q2 * perSecond) * this.#multiplier;
  }

  #convertOther(high: number, low: number): void {
    limbs[0] = low;
    limbs[1] = low >>> 16;
    limbs[2] = high;
    limbs[3] = high >>> 16;
    limbs[4] = limbs[5] = 0;
    multiply(this.#multiplier);
    for (const divisor of this.#divisors) divide(divisor);
    add(this.#lastDivisor / 2);
    divide(this.#lastDivisor);
    this.nanoseconds = divide(BILLION);
    let seconds = 0;
    for (let i = limbs.length - 1; i >= 0; i--) seconds = seconds * 65536 + limbs[i];
    this.seconds = seconds + this.#offset;
  }
}
