// `npm test`: every compiled test file, or those whose path contains one of the words given.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

/** Files that hold the clock against what happens, by a part of their path: nothing else runs beside one of them. */
const TIMED = [
  'cli/measure/',
  'cli/signals',
  'cli/stops',
  'lab/lab.',
  'lab/outer-lab',
  'lab/xdp-interface',
  'lab/xdp-queues',
  'measure/compare/real-aa',
  'measure/results/unmeasured',
  'measure/trial/',
  'ports/sim/sim-real',
  'ports/xdp/xdp-queue',
  'shim/thread-usage',
  'threads/',
];

const words = process.argv.slice(2);
const isOneOf = (name, parts) => parts.some((part) => name.includes(part));
const files = readdirSync('dist/test', { recursive: true })
  .map((name) => `dist/test/${name}`)
  .filter((name) => name.endsWith('.test.js') && (words.length === 0 || isOneOf(name, words)))
  .sort();
if (files.length === 0) {
  console.error(`no test file matches: ${words.join(' ') || 'dist/test is empty; run npm run build'}`);
  process.exit(2);
}
/** Runs so many of the files at once; 0 where all is well. */
function run(atOnce, chosen) {
  if (chosen.length === 0) return 0;
  const { status } = spawnSync(process.execPath, ['--test', `--test-concurrency=${atOnce}`, ...chosen], {
    stdio: 'inherit',
  });
  return status ?? 1;
}
const timed = files.filter((name) => isOneOf(name, TIMED));
// Two at once: these wait for what they expect however long it takes, and share no names.
const untimed = files.filter((name) => !timed.includes(name));
process.exit(Math.max(run(2, untimed), run(1, timed)));
