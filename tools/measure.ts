#!/usr/bin/env node
import { runTool } from '../lib/cli/tool.js';

await runTool('measure', async () => (await import('../lib/cli/measure/measure-main.js')).measure);
