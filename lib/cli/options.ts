/** Command lines: one table an option set, from which the parser, its messages and the help are made. */
import { parseArgs } from 'node:util';
import { printable, UsageError } from '../text/errors.js';
import { nearest } from '../names/slice.js';

interface Option {
  /** Its single letter, without the hyphen. */
  readonly short?: string;
  /** What its value is called in the help; a switch has none. */
  readonly value?: string;
  /** May be given more than once. */
  readonly repeat?: boolean;
  /** One sentence or more for the help. */
  readonly help: string;
}

export type OptionTable<Name extends string = string> = Readonly<Record<Name, Option>>;

/** What a command line said. */
export class CommandLine<Name extends string> {
  /** What is no option, in order. */
  readonly positionals: readonly string[];
  readonly #given: ReadonlyMap<string, readonly string[]>;

  /** @throws UsageError for an option that is unknown, lacks its value, has one too many, or is given twice */
  constructor(
    readonly table: OptionTable<Name>,
    args: readonly string[],
  ) {
    const positionals: string[] = [];
    const given = new Map<string, string[]>();
    const known: OptionTable = table;
    const { tokens } = parseArgs({
      args: [...args],
      options: Object.fromEntries(
        Object.entries(known).map(([name, { short, value }]) => {
          return [name, { type: value === undefined ? 'boolean' : 'string', ...(short !== undefined && { short }) }];
        }),
      ),
      strict: false,
      tokens: true,
    });
    for (const token of tokens) {
      if (token.kind === 'positional') positionals.push(token.value);
      if (token.kind !== 'option') continue;
      const { name, rawName, value } = token;
      if (!Object.hasOwn(known, name)) throw unknownOption(known, rawName, args[token.index]);
      const option = known[name];
      if (option.value === undefined && value !== undefined)
        throw new UsageError(
          `option ${rawName} takes no value, '${printable(value)}' was given; write ${rawName} alone`,
        );
      if (option.value !== undefined && (value === undefined || (!token.inlineValue && isOption(known, value))))
        throw new UsageError(`option ${rawName} needs a value; write ${rawName} ${option.value}`);
      const before = given.get(name) ?? [];
      if (before.length > 0 && option.repeat !== true)
        throw new UsageError(`option ${rawName} is given twice; write it once`);
      given.set(name, [...before, value ?? '']);
    }
    this.positionals = positionals;
    this.#given = given;
  }

  /** Times the option was given. */
  count(name: Name): number {
    return this.#given.get(name)?.length ?? 0;
  }
  has(name: Name): boolean {
    return this.count(name) > 0;
  }
  /** All values of the option, in order. */
  all(name: Name): readonly string[] {
    return this.#given.get(name) ?? [];
  }

  /**
   * The option's value as `parse` reads it; undefined when the option was not given.
   * @throws UsageError that names the option
   */
  read<T>(name: Name, parse: (text: string) => T): T | undefined {
    const [text] = this.all(name) as readonly [string?];
    if (text === undefined) return undefined;
    try {
      return parse(text);
    } catch (error) {
      if (!(error instanceof UsageError)) throw error;
      throw new UsageError(`option ${spelling(name, this.table[name])}: ${error.message}`);
    }
  }

  /** The option's value, one of `words`; undefined when the option was not given. */
  word<const T extends string>(name: Name, words: readonly T[]): T | undefined {
    return this.read(name, (text) => {
      const found = words.find((word) => word === text);
      if (found !== undefined) return found;
      throw new UsageError(`'${printable(text)}' is unknown; write ${words.join(' or ')}`);
    });
  }
}

function isOption(table: OptionTable, text: string): boolean {
  return /^--./.test(text) || Object.values(table).some(({ short }) => short !== undefined && text === `-${short}`);
}

function unknownOption(table: OptionTable, rawName: string, argument: string): UsageError {
  const names = Object.keys(table);
  const long = argument.replace(/^-+/, '').replace(/=.*/s, '');
  const guess = names.includes(long) ? long : nearest(long, names);
  return new UsageError(
    `unknown option ${printable(rawName.length > 2 ? rawName : argument)}; ` +
      (guess === undefined || long.length < 2 ? 'the help lists all there are' : `did you mean --${guess}?`),
  );
}

/** `-b, --burst` */
function spelling(name: string, { short }: Option): string {
  return short === undefined ? `--${name}` : `-${short}, --${name}`;
}

/** Column at which the explanations begin, and the width of the help. */
const INDENT = 28;
const WIDTH = 118;

/** The options for the help, a paragraph each. */
export function optionsHelp(table: OptionTable): string {
  return Object.entries(table)
    .map(([name, option]) => {
      const left =
        `  ${option.short === undefined ? '    ' : ''}${spelling(name, option)} ${option.value ?? ''}`.trimEnd();
      const lines = wrap(option.help, WIDTH - INDENT).map((line) => ' '.repeat(INDENT) + line);
      if (left.length > INDENT - 2) return [left, ...lines];
      return [left.padEnd(INDENT) + lines[0].trimStart(), ...lines.slice(1)];
    })
    .flat()
    .join('\n');
}

function wrap(text: string, width: number): string[] {
  const lines = [''];
  for (const word of text.split(' ')) {
    const line = lines.at(-1)!;
    if (line !== '' && line.length + 1 + word.length > width) lines.push(word);
    else lines[lines.length - 1] = line === '' ? word : `${line} ${word}`;
  }
  return lines;
}
