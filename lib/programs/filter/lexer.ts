import { Slice } from '../../names/slice.js';

const OPERATORS = /&&|\|\||!=|==|<=|>=|<<|>>|[=<>!()[\]:+\-*/%&|^]/y;
/** Words, numbers and addresses, which may contain colons, and inside brackets not. */
const WORD = /\\?[A-Za-z0-9_.:][A-Za-z0-9_.:-]*/y;
const WORD_IN_BRACKETS = /\\?[A-Za-z0-9_.][A-Za-z0-9_.-]*/y;
const SPACE = /\s*/y;

/** The longest expression, in characters. */
const LONGEST = 65536;

/** Cuts an expression into words and operators; the last one is the empty stretch behind it. @throws UsageError */
export function tokens(text: string): Slice[] {
  const whole = new Slice(text, 0, text, 'filter');
  if (text.length > LONGEST) whole.cut(LONGEST).fail(`it is longer than ${LONGEST} characters`);
  const list: Slice[] = [];
  let depth = 0;
  let at = 0;
  const take = (pattern: RegExp): string => {
    pattern.lastIndex = at;
    return pattern.exec(text)?.[0] ?? '';
  };
  for (;;) {
    at += take(SPACE).length;
    if (at === text.length) return [...list, whole.cut(at)];
    const found = take(depth > 0 ? WORD_IN_BRACKETS : WORD) || take(OPERATORS);
    if (found === '') {
      const wrong = whole.cut(at, at + (text.codePointAt(at)! > 0xffff ? 2 : 1));
      wrong.fail(`${wrong.quoted} has no meaning here; expected a word, a number or an operator`);
    }
    if (found === '[') depth++;
    if (found === ']') depth--;
    list.push(whole.cut(at, at + found.length));
    at += found.length;
  }
}
