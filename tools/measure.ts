#!/usr/bin/env node
import { fail } from '../lib/cli/fail.js';
import { Output } from '../lib/cli/output.js';
import { version } from '../lib/cli/version.js';
import { UsageError } from '../lib/text/errors.js';
import type { Output as Sink } from '../lib/cli/measure/measure-cli.js';
import { runBurst } from '../lib/cli/measure/cli-burst.js';
import { runCompare } from '../lib/cli/measure/cli-compare.js';
import { runForward } from '../lib/cli/measure/cli-forward.js';
import { runLatency } from '../lib/cli/measure/cli-latency.js';
import { runLoss } from '../lib/cli/measure/cli-loss.js';
import { runMatrixCommand } from '../lib/cli/measure/cli-matrix.js';
import { runReport } from '../lib/cli/measure/cli-report.js';
import { runThroughput } from '../lib/cli/measure/cli-throughput.js';

/** What `measure NAME` runs. */
const COMMANDS = new Map<string, (args: string[], io: Sink) => number | Promise<number>>([
  ['throughput', runThroughput],
  ['latency', runLatency],
  ['loss', runLoss],
  ['burst', runBurst],
  ['matrix', runMatrixCommand],
  ['compare', runCompare],
  ['report', runReport],
]);

const output = new Output();
const io: Sink = {
  out: (text) => {
    output.text(text);
  },
  err: (text) => {
    output.error(text);
  },
};

async function main(args: string[]): Promise<number> {
  const [word] = args as [string?];
  if (word === undefined || word.startsWith('-')) {
    if (word !== '--version') return runForward(args, io);
    output.text(`measure ${version()}\n`);
    return 0;
  }
  const command = COMMANDS.get(word);
  if (command === undefined)
    throw new UsageError(`no subcommand '${word}'; there are ${[...COMMANDS.keys()].join(', ')}`);
  return command(args.slice(1), io);
}

const [word = ''] = process.argv.slice(2);
const name = COMMANDS.has(word) ? `measure ${word}` : 'measure';
process.exitCode = await main(process.argv.slice(2)).catch((error: unknown) => fail(name, error, output));
