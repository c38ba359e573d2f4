/** A stretch of what a user wrote, a port name or another small language, that knows where it stands in the whole, so that every error can point at its cause. */
import { UsageError, pointAt, printable } from '../text/errors.js';

export class Slice {
  /**
   * @param source the whole text
   * @param start index of the first character in `source`
   * @param text the stretch itself
   * @param subject what the whole is, for messages
   */
  constructor(
    readonly source: string,
    readonly start = 0,
    readonly text = source,
    readonly subject = 'port name',
  ) {}

  /** The part from index `from` up to, not including, `to`. */
  cut(from: number, to = this.text.length): Slice {
    return new Slice(this.source, this.start + from, this.text.slice(from, to), this.subject);
  }

  /** The parts between the characters that `separators` names. */
  split(separators: string): Slice[] {
    const parts: Slice[] = [];
    let from = 0;
    for (let i = 0; i <= this.text.length; i++) {
      if (i < this.text.length && !separators.includes(this.text[i])) continue;
      parts.push(this.cut(from, i));
      from = i + 1;
    }
    return parts;
  }

  /** The text in quotes, for messages. */
  get quoted(): string {
    return `'${printable(this.text)}'`;
  }

  /** Throws a {@link UsageError} whose caret stands under the character at index `offset` of this stretch. */
  fail(message: string, offset = 0): never {
    const at = this.start + offset;
    throw new UsageError(`bad ${this.subject}: ${message}\n${pointAt(this.source, at)}`, at);
  }

  /** Reads the text with a parser of text/units.ts; its error becomes one that points into the whole text. */
  read<T>(parse: (text: string) => T): T {
    try {
      return parse(this.text);
    } catch (error) {
      if (error instanceof UsageError) this.fail(error.message, error.at);
      throw error;
    }
  }

  /** Refuses the first character that is not in `allowed` (the inside of a character class). */
  only(allowed: string, what: string, expected: string): this {
    const wrong = new RegExp(`[^${allowed}]`, 'u').exec(this.text);
    if (wrong !== null) this.fail(`'${printable(wrong[0])}' cannot be in ${what}; expected ${expected}`, wrong.index);
    return this;
  }
}

/** Interface names are at most 15 characters: IFNAMSIZ is 16 with the closing zero (Linux if.h, FreeBSD net/if.h). */
const INTERFACE_NAME_MAX = 15;

/** Checks the name of an interface, or of what the kernel names like one. */
export function interfaceName(name: Slice, what = 'an interface name', example = 'eth0 or ix0'): string {
  if (name.text === '') name.fail(`${what} is missing; expected for example ${example}`);
  if (name.text === '.' || name.text === '..') name.fail(`${name.quoted} is not ${what}`);
  name.only('A-Za-z0-9._-', what, 'letters, digits, dot, underscore or hyphen');
  if (name.text.length > INTERFACE_NAME_MAX) {
    const length = name.text.length;
    name.fail(`${what} has at most ${INTERFACE_NAME_MAX} characters, ${name.quoted} has ${length}`, INTERFACE_NAME_MAX);
  }
  return name.text;
}

/** The one of `names` nearest to `text` by edit distance, if it is near enough to be what was meant. */
export function nearest(text: string, names: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = 3;
  for (const name of names) {
    const distance = editDistance(text.toLowerCase(), name);
    if (distance < least && distance < name.length / 2) [best, least] = [name, distance];
  }
  return best;
}

/** Least number of characters to insert, delete or replace (Levenshtein); Infinity when the lengths alone differ by more than 2. */
function editDistance(a: string, b: string): number {
  if (Math.abs(a.length - b.length) > 2) return Infinity;
  let row = Array.from({ length: b.length + 1 }, (_, j) => j);
  for (let i = 1; i <= a.length; i++) {
    const above = row;
    row = [i];
    for (let j = 1; j <= b.length; j++) {
      row.push(Math.min(above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
  }
  return row[b.length];
}
