import { DROP, FORWARD, type ProgramFactory } from '../program.js';
import { compile, type Accepts } from './compile.js';
import { parseFilter } from './parse.js';

export type { Accepts };

/**
 * The function that tells whether a frame passes `expression`, in tcpdump's words: see parse.ts. Its verdict is that of
 * libpcap on an Ethernet frame. @throws UsageError with a caret under what is wrong
 */
export function compileFilter(expression: string): Accepts {
  return compile(parseFilter(expression));
}

/** Forwards the frames that pass `expression` and drops the others. */
export function filter(expression: string): ProgramFactory {
  const test = parseFilter(expression);
  return (setup) => {
    const accepts = compile(test); // one for each thread, or V8 would share what it has learnt of their memories
    const dropped = setup.counter('dropped');
    return (frame) => {
      if (accepts(frame)) return FORWARD;
      dropped.add();
      return DROP;
    };
  };
}
