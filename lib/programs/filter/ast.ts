/**
 * What a filter comes down to: comparisons of numbers, joined by and, or and not. Numbers are 32 bits without sign. A
 * load from beyond the frame ends the whole filter: the frame is not accepted, whatever surrounds the load.
 */

export type Test =
  | { readonly kind: 'all' | 'any'; readonly of: readonly Test[] }
  | { readonly kind: 'not'; readonly of: Test }
  | { readonly kind: 'compare'; readonly op: Relation; readonly left: Value; readonly right: Value };

export type Relation = '=' | '!=' | '<' | '<=' | '>' | '>=';

export type Value =
  | { readonly kind: 'number'; readonly value: number }
  | { readonly kind: 'length' }
  /** `size` bytes at offset `at` of the frame, big-endian. */
  | { readonly kind: 'load'; readonly at: Value; readonly size: 1 | 2 | 4 }
  | { readonly kind: 'arithmetic'; readonly op: Arithmetic; readonly left: Value; readonly right: Value };

export type Arithmetic = '+' | '-' | '*' | '/' | '%' | '&' | '|' | '^' | '<<' | '>>';

export const LENGTH: Value = { kind: 'length' };

export function number(value: number): Value {
  return { kind: 'number', value: value >>> 0 };
}

export function load(at: Value | number, size: 1 | 2 | 4): Value {
  return { kind: 'load', at: typeof at === 'number' ? number(at) : at, size };
}

/** Worked out at once where both sides are numbers. Division by zero and shifts by more than 31 are the caller's to refuse. */
export function arithmetic(op: Arithmetic, left: Value, right: Value): Value {
  if (left.kind !== 'number' || right.kind !== 'number') return { kind: 'arithmetic', op, left, right };
  return number(ARITHMETIC[op](left.value, right.value));
}

const ARITHMETIC: Readonly<Record<Arithmetic, (a: number, b: number) => number>> = {
  '+': (a, b) => a + b,
  '-': (a, b) => a - b,
  '*': Math.imul,
  '/': (a, b) => Math.floor(a / b),
  '%': (a, b) => a % b,
  '&': (a, b) => a & b,
  '|': (a, b) => a | b,
  '^': (a, b) => a ^ b,
  '<<': (a, b) => a << b,
  '>>': (a, b) => a >>> b,
};

export function compare(left: Value, op: Relation, right: Value | number): Test {
  return { kind: 'compare', op, left, right: typeof right === 'number' ? number(right) : right };
}

export function all(...of: readonly Test[]): Test {
  return join('all', of);
}

export function any(...of: readonly Test[]): Test {
  return join('any', of);
}

/** Tests of the same kind within become part of the one around: a long chain stays flat. */
function join(kind: 'all' | 'any', of: readonly Test[]): Test {
  if (of.length === 1) return of[0];
  return { kind, of: of.flatMap((test) => (test.kind === kind ? test.of : [test])) };
}

export function not(of: Test): Test {
  return of.kind === 'not' ? of.of : { kind: 'not', of };
}

/** A test that every frame passes. */
export const ALWAYS = all();
