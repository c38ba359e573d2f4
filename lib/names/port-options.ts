/** The options of a port name, `@key=value,key=value`: one table entry a key says how it is read and how it is written. */
import { parseCountWithin } from '../text/units.js';
import { nearest, type Slice } from './slice.js';

/** A spec while it is put together. */
export type Draft<S> = { -readonly [K in keyof S]: S[K] };

interface Option<S> {
  /** The option written right, for messages. */
  readonly example: string;
  /** Sets what `value` says; `value` is undefined when the key stands alone. */
  read(spec: Draft<S>, key: Slice, value: Slice | undefined): void;
  /** Sets its default, where it has one. */
  reset(spec: Draft<S>): void;
  /** The option in canonical form; undefined when the spec has the default. */
  write(spec: S): string | undefined;
}

export type Options<S> = ReadonlyMap<string, Option<S>>;

/** How a value is read and written. `write` gives a text that `read` turns into the same value. */
export interface Value<T> {
  readonly read: (value: Slice) => T;
  readonly write: (value: T) => string;
}

/** A value read by a parser of text/units.ts. */
export function unit<T>(parse: (text: string) => T, write: (value: T) => string = String): Value<T> {
  return { read: (value) => value.read(parse), write };
}

/** A whole number, both ends included. */
export const integer = (min: number, max: number): Value<number> => unit((text) => parseCountWithin(text, min, max));

/** A number for which `off` means 0. */
export function orOff(value: Value<number>): Value<number> {
  return {
    read: (text) => (text.text === 'off' ? 0 : value.read(text)),
    write: (n) => (n === 0 ? 'off' : value.write(n)),
  };
}

/** Sets a field to its default, where it has one. */
function setting<S, K extends keyof S>(name: K, initial: S[K]): (spec: Draft<S>) => void {
  return (spec) => {
    if (initial !== undefined) spec[name] = initial;
  };
}

/** A spec with what is `known` of it, and every option of the table at its default. */
export function withDefaults<S extends object>(options: Options<S>, known: Partial<S>): Draft<S> {
  const spec = { ...known } as Draft<S>;
  for (const option of options.values()) option.reset(spec);
  return spec;
}

/** One word of a list. */
export function word<const T extends string>(...words: readonly T[]): Value<T> {
  return {
    read: (value) => words.find((w) => w === value.text) ?? value.fail(unknown(value, 'value', words)),
    write: (w) => w,
  };
}

/**
 * `key=value` that sets the field `name`, whose default is `initial` (undefined: none); left out of the canonical form when
 * the field has that value.
 */
export function field<S, K extends keyof S>(
  key: string,
  name: K,
  example: string,
  initial: S[K],
  form: Value<Exclude<S[K], undefined>>,
): [string, Option<S>] {
  const text = (value: S[K]) => (value === undefined ? undefined : form.write(value as Exclude<S[K], undefined>));
  const standard = text(initial);
  const option: Option<S> = {
    example: `${key}=${example}`,
    read(spec, at, value) {
      if (value === undefined || value.text === '') {
        return at.fail(`option ${at.quoted} needs a value; expected for example ${key}=${example}`, at.text.length);
      }
      spec[name] = form.read(value);
    },
    reset: setting(name, initial),
    write(spec) {
      const value = text(spec[name]);
      return value === undefined || value === standard ? undefined : `${key}=${value}`;
    },
  };
  return [key, option];
}

/** A key without a value, which sets the field `name` to `value`. */
export function flag<S, K extends keyof S>(key: string, name: K, value: S[K], initial: S[K]): [string, Option<S>] {
  const option: Option<S> = {
    example: key,
    read(spec, at, given) {
      if (given !== undefined) given.fail(`option ${at.quoted} takes no value; write it alone`, -1);
      if (spec[name] !== initial) at.fail(`option ${at.quoted} contradicts an earlier one; expected one of them`);
      spec[name] = value;
    },
    reset: setting(name, initial),
    write: (spec) => (spec[name] === value ? key : undefined),
  };
  return [key, option];
}

/** `unknown WHAT 'text'; did you mean …? expected one of …`; `of` says what it belongs to: ` of a sim port`. */
export function unknown(text: Slice, what: string, known: readonly string[], of = ''): string {
  const guess = nearest(text.text, known);
  const hint = guess === undefined ? '' : `did you mean '${guess}'? `;
  const expected = `expected ${known.length === 1 ? '' : 'one of '}${known.join(', ')}`;
  return text.text === ''
    ? `the ${what} is missing; ${expected}`
    : `unknown ${what} ${text.quoted}${of}; ${hint}${expected}`;
}

/**
 * Reads `key=value` pairs into `spec`.
 * @param list the pairs, without the `@` in front
 * @param where what has these options, for messages: `a sim port`
 */
export function readPairs<S>(list: readonly Slice[], where: string, options: Options<S>, spec: Draft<S>): void {
  const known = [...options.keys()];
  const seen = new Set<string>();
  for (const pair of list) {
    const equals = pair.text.indexOf('=');
    const key = equals < 0 ? pair : pair.cut(0, equals);
    // netmap's own tools take both host-rings and host_rings.
    const name = key.text.replaceAll('_', '-');
    const option = options.get(name);
    if (option === undefined) return key.fail(unknown(key, 'option', known, ` of ${where}`));
    if (seen.has(name)) key.fail(`option ${key.quoted} is given twice; expected it once`);
    seen.add(name);
    option.read(spec, key, equals < 0 ? undefined : pair.cut(equals + 1));
  }
}

/** The options of `spec` that differ from their defaults, in the order of the table. */
export function writePairs<S>(options: Options<S>, spec: S): string[] {
  return [...options.values()].map((option) => option.write(spec)).filter((text) => text !== undefined);
}

/** `@a=1,b=2`, or nothing when every option has its default. */
export function optionsText<S>(options: Options<S>, spec: S): string {
  const pairs = writePairs(options, spec);
  return pairs.length === 0 ? '' : `@${pairs.join(',')}`;
}

/** Splits `body` at its first `@`: what stands before, and the pairs behind. */
export function splitOptions(body: Slice): [Slice, Slice[]] {
  const at = body.text.indexOf('@');
  return at < 0 ? [body, []] : [body.cut(0, at), body.cut(at + 1).split('@,')];
}
