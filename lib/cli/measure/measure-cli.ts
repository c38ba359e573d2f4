/** What the subcommands of measure have in common, whatever they do. */
import type { CommandLine } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { parsePercent } from '../../text/units.js';

/** Where a command writes: results to `out`, messages to `err`. */
export interface Output {
  out: (text: string) => void;
  err: (text: string) => void;
  /** What a run came to: as `out`, but to stderr where nobody reads stdout any more. Default: `out`. */
  result?: (text: string) => void;
}

/** A subcommand: it returns the exit code. At the wish `stop` it ends with what it has. @throws UsageError, PortError */
export type Command = (args: readonly string[], io: Output, stop?: AbortSignal) => number | Promise<number>;

/** Whether the help was asked for: then it is printed. */
export function helped(line: CommandLine<'help'>, io: Output, help: string): boolean {
  if (line.has('help')) io.out(help);
  return line.has('help');
}

/** A share of which neither nothing nor all makes sense. @throws UsageError */
export function parsePart(text: string): number {
  const part = parsePercent(text);
  if (part > 0 && part < 1) return part;
  throw new UsageError(`'${text}': expected more than 0% and less than 100%, such as 0.5%`);
}

/** Names separated by commas. */
export function parseNames(text: string): string[] {
  return text.split(',').filter((name) => name !== '');
}
