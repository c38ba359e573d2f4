/** `npm run bench [-- NAME…] [--json FILE]`: all benchmarks, or those named. */
import { parseArgs } from 'node:util';
import { benchCopy, benchForward } from './lanes.js';
import { benchPrograms } from './programs.js';
import { benchSim } from './sim.js';
import { benchXdp } from './xdp.js';

const BENCHMARKS = new Map<string, (jsonFile: string | undefined) => void | Promise<void>>([
  ['forward', benchForward],
  ['copy', benchCopy],
  ['programs', benchPrograms],
  ['sim', benchSim],
  ['xdp', benchXdp],
]);

const { values, positionals } = parseArgs({ allowPositionals: true, options: { json: { type: 'string' } } });
const unknown = positionals.filter((name) => !BENCHMARKS.has(name));
if (unknown.length > 0) {
  console.error(`bench: no benchmark named ${unknown.join(', ')}; there are: ${[...BENCHMARKS.keys()].join(', ')}`);
  process.exit(2);
}
for (const [name, run] of BENCHMARKS) {
  if (positionals.length === 0 || positionals.includes(name)) await run(values.json);
}
