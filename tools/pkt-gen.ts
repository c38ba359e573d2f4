#!/usr/bin/env node
import { runTool } from '../lib/cli/tool.js';

await runTool('pkt-gen', async () => (await import('../lib/cli/pkt-gen/pkt-gen-main.js')).pktGen);
