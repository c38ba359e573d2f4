import type { Frame } from '../frame.js';
import type { Test, Value } from './ast.js';

/** Whether a frame is accepted. */
export type Accepts = (frame: Frame) => boolean;

let compiled = 0;

/**
 * Makes a function of a test: straight code over the frame's bytes, in which every load is checked once and done once
 * on each way through. `break F…` leaves where the tests around it do not hold.
 */
export function compile(test: Test): Accepts {
  const body = new Code();
  const start: Known = { bytes: 0, loads: new Set() };
  body.test(test, 'F', start);
  const text = `return function filter(frame) {
const b = frame.bytes, s = frame.start | 0, n = frame.size | 0, length = frame.length | 0;
${body.declarations}
F: {
${body.text}return true;
}
return false;
}
//# sourceURL=filter-${++compiled}`;
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  return (new Function(text) as () => Accepts)();
}

/** What has been found out by the time a piece of code runs. */
interface Known {
  /** Bytes that the frame has at least. */
  readonly bytes: number;
  /** Loads whose variables are set. */
  readonly loads: ReadonlySet<string>;
}

/** What is known in either case. */
function common(a: Known, b: Known): Known {
  return { bytes: Math.min(a.bytes, b.bytes), loads: new Set([...a.loads].filter((load) => b.loads.has(load))) };
}

/** Bytes from index `i` on, big-endian. */
const LOADS = {
  1: 'b[i]',
  2: 'b[i] << 8 | b[i + 1]',
  4: 'b[i] << 24 | b[i + 1] << 16 | b[i + 2] << 8 | b[i + 3]',
} as const;

/** Numbers of 32 bits without sign are kept as signed ones, which V8 holds in registers. */
class Code {
  text = '';
  /** Variables by what they hold. */
  readonly #variables = new Map<string, string>();
  readonly #temporaries: string[] = [];
  #known: Known = { bytes: 0, loads: new Set() };
  #labels = 0;

  get declarations(): string {
    const names = ['i', ...this.#variables.values(), ...this.#temporaries];
    return `let ${names.map((name) => `${name} = 0`).join(', ')};`;
  }

  #line(text: string): void {
    this.text += `${text}\n`;
  }

  /**
   * Code that goes on behind itself where `test` holds, and leaves the block `no` where it does not.
   * Returns what is known in either case.
   */
  test(test: Test, no: string, known: Known): { yes: Known; no: Known } {
    switch (test.kind) {
      case 'compare':
        this.#known = known;
        this.#line(`if (!(${this.#compare(test)})) break ${no};`);
        return { yes: this.#known, no: this.#known };
      case 'not': {
        const inner = `N${++this.#labels}`;
        this.#line(`${inner}: {`);
        const of = this.test(test.of, inner, known);
        this.#line(`break ${no};\n}`);
        return { yes: of.no, no: of.yes };
      }
      case 'all':
        return this.#all(test.of, no, known);
      case 'any':
        return this.#any(test.of, no, known);
    }
  }

  #compare({ op, left, right }: Test & { kind: 'compare' }): string {
    const a = this.#value(left);
    const b = this.#value(right);
    if (op === '=' || op === '!=') return `${a} ${op === '=' ? '===' : '!=='} ${b}`;
    return `${unsigned(left, a)} ${op} ${unsigned(right, b)}`;
  }

  #all(tests: readonly Test[], no: string, known: Known): { yes: Known; no: Known } {
    let yes = known;
    let leaving: Known | undefined;
    for (const test of tests) {
      const after = this.test(test, no, yes);
      yes = after.yes;
      leaving = leaving === undefined ? after.no : common(leaving, after.no);
    }
    return { yes, no: leaving ?? known };
  }

  #any(tests: readonly Test[], no: string, known: Known): { yes: Known; no: Known } {
    const found = `Y${++this.#labels}`;
    let before = known;
    let yes: Known | undefined;
    this.#line(`${found}: {`);
    for (const test of tests) {
      const next = `N${++this.#labels}`;
      this.#line(`${next}: {`);
      const after = this.test(test, next, before);
      this.#line(`break ${found};\n}`);
      before = after.no;
      yes = yes === undefined ? after.yes : common(yes, after.yes);
    }
    this.#line(`break ${no};\n}`);
    return { yes: yes ?? known, no: before };
  }

  /** An expression for `value`, an integer of 32 bits. The loads in it are done by the code before. */
  #value(value: Value): string {
    switch (value.kind) {
      case 'number':
        return String(value.value | 0);
      case 'length':
        return 'length';
      case 'load':
        return this.#load(value.at, value.size);
      case 'arithmetic':
        return this.#arithmetic(value);
    }
  }

  #arithmetic({ op, left, right }: Value & { kind: 'arithmetic' }): string {
    const a = this.#value(left);
    const b = this.#value(right);
    switch (op) {
      case '*':
        return `Math.imul(${a}, ${b})`;
      case '/':
      case '%': {
        const by = this.#temporary(b);
        this.#line(`if (${by} === 0) return false;`);
        return `(${unsigned(left, a)} ${op} (${by} >>> 0) | 0)`;
      }
      case '<<':
        return this.#shift(`${a} <<`, right, b);
      case '>>':
        return this.#shift(`${a} >>>`, right, b);
      case '+':
      case '-':
        return `(${a} ${op} ${b} | 0)`;
      default:
        return `(${a} ${op} ${b})`;
    }
  }

  /** Shifts by more than 31 bits leave nothing. */
  #shift(what: string, by: Value, text: string): string {
    if (by.kind === 'number') return `(${what} ${text} | 0)`;
    const bits = this.#temporary(text);
    return `(${bits} >>> 0 > 31 ? 0 : ${what} ${bits} | 0)`;
  }

  /** A variable with the value of `expression`, which can be used twice without being worked out twice. */
  #temporary(expression: string): string {
    const name = `t${this.#temporaries.length}`;
    this.#temporaries.push(name);
    this.#line(`${name} = ${expression};`);
    return name;
  }

  /** The variable that holds `size` bytes at `at`; loads them where no code that ran before has. */
  #load(at: Value, size: 1 | 2 | 4): string {
    const offset = this.#value(at);
    const key = `${offset}:${size}`;
    const variable = this.#variables.get(key) ?? `v${this.#variables.size}`;
    this.#variables.set(key, variable);
    if (this.#known.loads.has(key)) return variable;
    let { bytes } = this.#known;
    if (at.kind !== 'number') this.#line(`if (${unsigned(at, offset)} > n - ${size}) return false;`);
    else if (bytes < at.value + size) {
      bytes = at.value + size;
      this.#line(`if (n < ${bytes}) return false;`);
    }
    this.#line(`i = s + ${offset} | 0;`);
    this.#line(`${variable} = ${LOADS[size]};`);
    this.#known = { bytes, loads: new Set([...this.#known.loads, key]) };
    return variable;
  }
}

/** `text`, which is the signed form of `value`, as a number without sign. */
function unsigned(value: Value, text: string): string {
  if (value.kind === 'number') return String(value.value);
  const small = value.kind === 'length' || (value.kind === 'load' && value.size < 4);
  return small ? text : `(${text} >>> 0)`;
}
