#!/usr/bin/env node
import { fail } from '../lib/cli/fail.js';
import { Output } from '../lib/cli/output.js';
import { parsePktGen, PKT_GEN_HELP } from '../lib/cli/pkt-gen/pkt-gen-options.js';
import { runPktGen } from '../lib/cli/pkt-gen/pkt-gen-main.js';
import { stdoutTaken } from '../lib/cli/port-text.js';
import { version } from '../lib/cli/version.js';

async function main(output: Output): Promise<number> {
  const command = parsePktGen(process.argv.slice(2));
  switch (command.action) {
    case 'help':
      output.text(PKT_GEN_HELP);
      return 0;
    case 'version':
      output.text(`pkt-gen ${version()}\n`);
      return 0;
    case 'run':
      output.asJson = command.json;
      output.stdoutTaken = stdoutTaken([command.settings.name]);
      return runPktGen(command, output);
  }
}

const output = new Output();
// No process.exit(): what was printed into a pipe is still on its way.
process.exitCode = await main(output).catch((error: unknown) => fail('pkt-gen', error, output));
