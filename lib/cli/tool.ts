import { EXIT } from './exit.js';
import { fail } from './fail.js';
import { Output } from './output.js';
import { Stop } from './signals.js';

/** Runs a tool as its command line says. Returns the exit code; what it throws is told. */
export type Tool = (args: readonly string[], output: Output, stop: Stop) => Promise<number>;

/** Loads a tool and runs it. Signals are heard first: loading takes longer than Node.js does to begin. */
export async function runTool(name: string, load: () => Promise<Tool>): Promise<void> {
  const stop = new Stop();
  const output = new Output();
  try {
    const tool = await load();
    if (stop.signal.aborted) {
      output.error(`${name}: stopped by ${stop.signal.reason as string} before it began\n`);
      process.exitCode = EXIT.ok;
      return;
    }
    // No process.exit(): what was printed into a pipe is still on its way.
    process.exitCode = await tool(process.argv.slice(2), output, stop);
  } catch (error) {
    process.exitCode = fail(name, error, output);
  } finally {
    stop.release();
  }
}
