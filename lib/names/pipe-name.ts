/** `pipe:NAME{K` and `pipe:NAME}K`: the two ends of a pipe in shared memory. */
import { field, integer, optionsText, readPairs, splitOptions, withDefaults, type Options } from './port-options.js';
import type { Slice } from './slice.js';

/** One end of a pipe between processes of this machine. */
export interface PipeSpec {
  readonly kind: 'pipe';
  /** The port name as it was written. */
  readonly text: string;
  /** Name of the shared memory: 1..64 of `A-Z a-z 0-9 . _ -`, no dot in front. */
  readonly name: string;
  /** Which pipe in that memory: 1..15 letters, digits or underscores, usually a number. */
  readonly pipe: string;
  /** `{` is the master, `}` the slave. */
  readonly end: 'master' | 'slave';
  /** Slots in each ring, 2..65536. Default 1024. */
  readonly slots: number;
}

const OPTIONS: Options<PipeSpec> = new Map([field('slots', 'slots', '2048', 1024, integer(2, 65536))]);

/** A name of our own making (not an interface's): 1..64 characters, fit for a file name. */
export function poolName(name: Slice, example: string): string {
  if (name.text === '') name.fail(`a name is missing; expected for example ${example}`);
  name.only('A-Za-z0-9._-', 'this name', 'letters, digits, dot, underscore or hyphen');
  if (name.text.startsWith('.')) name.fail('this name cannot begin with a dot; expected a letter or digit');
  if (name.text.length > 64) name.fail(`this name has at most 64 characters, not ${name.text.length}`, 64);
  return name.text;
}

/** The id of a pipe, behind its brace. */
export function pipeId(id: Slice): string {
  if (id.text === '') id.fail('the pipe is missing; expected a number behind the brace, for example {1');
  id.only('A-Za-z0-9_', 'the id of a pipe', 'letters, digits or underscore, for example {1');
  if (id.text.length > 15) id.fail(`the id of a pipe has at most 15 characters, not ${id.text.length}`, 15);
  return id.text;
}

/** Reads what follows `pipe:`. */
export function parsePipe(body: Slice): PipeSpec {
  const [port, list] = splitOptions(body);
  const brace = port.text.search(/[{}]/);
  if (brace < 0) {
    port.fail(
      "the pipe's end is missing; expected { (master) or } (slave) and a number, for example pipe:lab{1",
      port.text.length,
    );
  }
  const spec = withDefaults(OPTIONS, {
    kind: 'pipe',
    text: body.source,
    name: poolName(port.cut(0, brace), 'pipe:lab{1'),
    pipe: pipeId(port.cut(brace + 1)),
    end: port.text[brace] === '{' ? 'master' : 'slave',
  });
  readPairs(list, 'a pipe port', OPTIONS, spec);
  return spec;
}

/** The canonical form. */
export function formatPipe(spec: PipeSpec): string {
  return `pipe:${spec.name}${spec.end === 'master' ? '{' : '}'}${spec.pipe}${optionsText(OPTIONS, spec)}`;
}
