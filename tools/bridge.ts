#!/usr/bin/env node
import { runTool } from '../lib/cli/tool.js';

await runTool('bridge', async () => (await import('../lib/cli/bridge/bridge-main.js')).bridge);
