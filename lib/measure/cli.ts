import { UsageError } from '../errors.js';

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

/** A share given as a percentage: "5%" is 0.05. Throws UsageError naming `option`. */
export function parsePercent(option: string, text: string): number {
  const match = /^(\d+(?:\.\d+)?)%$/.exec(text);
  if (!match) throw new UsageError(`${option} ${text}: must be a percentage such as 5%`);
  return Number(match[1]) / 100;
}
