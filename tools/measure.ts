#!/usr/bin/env node
import { runMeasure } from '../lib/cli/measure/measure-main.js';
import { Output } from '../lib/cli/output.js';

process.exitCode = await runMeasure(process.argv.slice(2), new Output());
