import { fail } from '../fail.js';
import type { Tool } from '../tool.js';
import { version } from '../version.js';
import { UsageError } from '../../text/errors.js';
import { runAb } from './cli-ab.js';
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
  ['ab', runAb],
  ['compare', runCompare],
  ['report', runReport],
]);

/** Those that read files and print: signals end them as they end any program, also while they wait for a file. */
const READERS = new Set(['compare', 'report']);

function commandOf(word: string): Command {
  const command = COMMANDS.get(word);
  if (command !== undefined) return command;
  throw new UsageError(`no subcommand '${word}'; there are ${[...COMMANDS.keys()].join(', ')}`);
}

/** The tool. */
export const measure: Tool = async (args, output, stop) => {
  const [word = ''] = args;
  if (word === '--version') {
    output.text(`measure ${version()}\n`);
    return 0;
  }
  const io = {
    out: output.text.bind(output),
    err: output.error.bind(output),
    result: (text: string) => {
      output.result(text);
    },
  };
  if (READERS.has(word)) stop.release();
  try {
    const plain = word === '' || word.startsWith('-');
    return await (plain ? runForward(args, io, stop.signal) : commandOf(word)(args.slice(1), io, stop.signal));
  } catch (error) {
    return fail(COMMANDS.has(word) ? `measure ${word}` : 'measure', error, output);
  }
};
