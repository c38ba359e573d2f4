import { fail } from '../fail.js';
import type { Output } from '../output.js';
import { version } from '../version.js';
import { UsageError } from '../../text/errors.js';
import { runBurst } from './cli-burst.js';
import { runCompare } from './cli-compare.js';
import { runForward } from './cli-forward.js';
import { runLatency } from './cli-latency.js';
import { runLoss } from './cli-loss.js';
import { runMatrixCommand } from './cli-matrix.js';
import { runReport } from './cli-report.js';
import { runThroughput } from './cli-throughput.js';
import type { Command } from './measure-cli.js';

/** What `measure NAME` runs. */
const COMMANDS = new Map<string, Command>([
  ['throughput', runThroughput],
  ['latency', runLatency],
  ['loss', runLoss],
  ['burst', runBurst],
  ['matrix', runMatrixCommand],
  ['compare', runCompare],
  ['report', runReport],
]);

function commandOf(word: string): Command {
  const command = COMMANDS.get(word);
  if (command !== undefined) return command;
  throw new UsageError(`no subcommand '${word}'; there are ${[...COMMANDS.keys()].join(', ')}`);
}

/** Runs `measure` as its command line says. Returns the exit code. */
export async function runMeasure(args: string[], output: Output): Promise<number> {
  const [word = ''] = args;
  if (word === '--version') {
    output.text(`measure ${version()}\n`);
    return 0;
  }
  const io = { out: output.text.bind(output), err: output.error.bind(output) };
  try {
    const plain = word === '' || word.startsWith('-');
    return plain ? await runForward(args, io) : await commandOf(word)(args.slice(1), io);
  } catch (error) {
    return fail(COMMANDS.has(word) ? `measure ${word}` : 'measure', error, output);
  }
}
