#!/usr/bin/env node
import { terminal } from '../lib/measure/cli.js';
import { runCompare } from '../lib/measure/cli-compare.js';
import { runForward } from '../lib/measure/cli-forward.js';

const [command, ...rest] = process.argv.slice(2);
if (command === 'compare') process.exitCode = runCompare(rest, terminal);
else process.exitCode = await runForward(process.argv.slice(2), terminal);
