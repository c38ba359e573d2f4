/** What `bridge` and `pkt-gen` have in common: tools that run ports in threads until those end or are stopped. */
import type { Running } from '../threads/thread.js';
import { RunError } from '../text/errors.js';
import { every } from './every.js';
import { EXIT } from './exit.js';
import type { Output } from './output.js';
import { stdoutTaken } from './port-text.js';
import type { Stop } from './signals.js';
import type { Tool } from './tool.js';
import { version } from './version.js';

/** What their command lines ask for. */
export interface PortCommand {
  action: 'run' | 'help' | 'version';
  json: boolean;
}

/**
 * The tool that runs what its command line says, unless that asks for the help or the version.
 * @param ports the names of its ports
 */
export function portTool<Command extends PortCommand>(
  name: string,
  help: string,
  parse: (args: readonly string[]) => Command,
  ports: (command: Command) => readonly string[],
  run: (command: Command, output: Output, stop: Stop) => Promise<number>,
): Tool {
  return async (args, output, stop) => {
    const command = parse(args);
    if (command.action === 'run') {
      output.asJson = command.json;
      output.stdoutTaken = stdoutTaken(ports(command));
      return run(command, output, stop);
    }
    output.text(command.action === 'help' ? help : `${name} ${version()}\n`);
    return EXIT.ok;
  };
}

/**
 * Waits for the end of a run, and calls `report` every `seconds` until then (0: never). Where a port failed while frames
 * flowed, `failure` is that: what was counted until then is told all the same. @throws what else it failed by
 */
export async function untilEnded<Ended>(
  run: Pick<Running<unknown, Ended>, 'ended'>,
  seconds: number,
  report: (stopped: () => boolean) => Promise<void>,
): Promise<{ ended: Ended; failure?: RunError }> {
  const stopReports = seconds > 0 ? every(seconds, report) : () => undefined;
  try {
    return { ended: await run.ended };
  } catch (error) {
    if (error instanceof RunError) return { ended: (error as RunError<Ended>).ended, failure: error };
    throw error;
  } finally {
    stopReports();
  }
}
