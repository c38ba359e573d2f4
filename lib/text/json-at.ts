/** A value inside a JSON file that knows where it stands, so that every error names the file and the path. */
import { UsageError } from './errors.js';

export class JsonAt {
  constructor(
    readonly file: string,
    readonly path: string,
    readonly value: unknown,
  ) {}

  /** The whole of a JSON text. Throws UsageError with line and column where it is not JSON. */
  static parse(file: string, text: string): JsonAt {
    try {
      return new JsonAt(file, '', JSON.parse(text));
    } catch (error) {
      const { message } = error as Error;
      const position = /at position (\d+)/.exec(message);
      const before = text.slice(0, position === null ? text.length : Number(position[1])).split('\n');
      const cause = message.replace(/ in JSON at position.*$/s, '').replace(/, \.*".*$/s, '');
      throw new UsageError(
        `${file}:${before.length}:${before.at(-1)!.length + 1}: not JSON: ${cause}; mend that place`,
      );
    }
  }

  fail(message: string): never {
    throw new UsageError(`${this.file}: ${this.path === '' ? 'the file' : this.path}: ${message}`);
  }

  /** What this is, for messages. */
  get shown(): string {
    const text = this.value === undefined ? 'nothing' : JSON.stringify(this.value);
    return text.length > 60 ? `${text.slice(0, 60)}…` : text;
  }

  /** Calls `read` and gives what goes wrong in it the path of this value. */
  read<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      if (error instanceof UsageError) this.fail(error.message);
      throw error;
    }
  }

  get missing(): boolean {
    return this.value === undefined;
  }

  get isObject(): boolean {
    return typeof this.value === 'object' && this.value !== null && !Array.isArray(this.value);
  }

  get(key: string): JsonAt {
    const own = this.isObject && Object.hasOwn(this.value as object, key);
    const value = own ? (this.value as Record<string, unknown>)[key] : undefined;
    return new JsonAt(this.file, this.path === '' ? key : `${this.path}.${key}`, value);
  }

  /** The entries of an object. */
  entries(what: string): [string, JsonAt][] {
    if (!this.isObject) this.fail(`expected ${what}, got ${this.shown}`);
    return Object.keys(this.value as object).map((key) => [key, this.get(key)]);
  }

  /** Refuses all keys but these. */
  only(...keys: string[]): this {
    for (const [key, value] of this.entries(`an object with ${keys.join(', ')}`)) {
      if (!keys.includes(key)) value.fail(`not known here; expected ${keys.join(', ')}`);
    }
    return this;
  }

  /** The items of a list that has at least one. */
  items(what: string): JsonAt[] {
    if (!Array.isArray(this.value) || this.value.length === 0) return this.fail(`expected ${what}, got ${this.shown}`);
    return this.value.map((item, i) => new JsonAt(this.file, `${this.path}[${i}]`, item));
  }

  string(what: string): string {
    return typeof this.value === 'string' && this.value !== ''
      ? this.value
      : this.fail(`expected ${what}, got ${this.shown}`);
  }

  scalar(what: string): string | number | boolean {
    const { value } = this;
    if (typeof value === 'string' || typeof value === 'boolean' || Number.isFinite(value)) return value as string;
    return this.fail(`expected ${what}, got ${this.shown}`);
  }

  /** A number within limits. */
  number(what: string, min: number, max: number): number {
    const { value } = this;
    return typeof value === 'number' && value >= min && value <= max
      ? value
      : this.fail(`expected ${what}, ${min} to ${max}, got ${this.shown}`);
  }

  integer(what: string, min: number, max: number): number {
    const value = this.number(what, min, max);
    return Number.isInteger(value) ? value : this.fail(`expected ${what}, a whole number, got ${this.shown}`);
  }
}
