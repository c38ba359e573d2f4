import { UsageError } from '../errors.js';
import { parsePercent } from '../units.js';

/** Where a command writes: results to `out`, messages to `err`. */
export interface Output {
  out: (text: string) => void;
  err: (text: string) => void;
}

export const terminal: Output = {
  out: (text) => process.stdout.write(text),
  err: (text) => process.stderr.write(text),
};

/** Runs a command and turns what the user got wrong into a message and exit code 2. Other errors pass through. */
export function withUsage(command: string, io: Output, body: () => number): number {
  try {
    return body();
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (!(error instanceof UsageError) && !code.startsWith('ERR_PARSE_ARGS_')) throw error;
    io.err(`${command}: ${(error as Error).message}\nTry ${command} -h\n`);
    return 2;
  }
}

/** A percentage given to an option: "5%" is 0.05. Throws UsageError naming the option. */
export function percentOption(option: string, text: string): number {
  try {
    return parsePercent(text);
  } catch (error) {
    if (error instanceof UsageError) throw new UsageError(`${option}: ${error.message}`);
    throw error;
  }
}
