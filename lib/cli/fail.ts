import { PortError, UsageError } from '../text/errors.js';
import { EXIT } from './exit.js';
import type { Output } from './output.js';

/** Prints why a tool ends, and returns its exit code. What the user wrote wrong puts nothing on stdout. */
export function fail(tool: string, error: unknown, output: Output): number {
  if (error instanceof UsageError) {
    output.error(`${tool}: ${error.message}\nTry: ${tool} --help\n`);
    return EXIT.usage;
  }
  const { message, code, stack } = error as NodeJS.ErrnoException;
  const known = error instanceof PortError || code !== undefined;
  output.json({
    type: 'error',
    message,
    ...(error instanceof PortError && { port: error.port }),
    ...(code !== undefined && { code }),
  });
  // An error that is neither is a fault in the program, and the way there is what helps.
  output.error(`${tool}: ${known ? message : `internal error: ${stack ?? message}`}\n`);
  return EXIT.failed;
}
