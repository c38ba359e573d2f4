#!/usr/bin/env node
import { BRIDGE_HELP, parseBridge, type BridgeCommand } from '../lib/cli/bridge/bridge-options.js';
import { runBridge } from '../lib/cli/bridge/bridge-main.js';
import { fail } from '../lib/cli/fail.js';
import { Output } from '../lib/cli/output.js';
import { stdoutTaken } from '../lib/cli/port-text.js';
import { version } from '../lib/cli/version.js';

async function main(output: Output): Promise<number> {
  const command: BridgeCommand = parseBridge(process.argv.slice(2));
  switch (command.action) {
    case 'help':
      output.text(BRIDGE_HELP);
      return 0;
    case 'version':
      output.text(`bridge ${version()}\n`);
      return 0;
    case 'run':
      output.asJson = command.json;
      output.stdoutTaken = stdoutTaken(command.ports);
      return runBridge(command, output);
  }
}

const output = new Output();
// No process.exit(): what was printed into a pipe is still on its way.
process.exitCode = await main(output).catch((error: unknown) => fail('bridge', error, output));
