// `npm test`: every compiled test file, or those whose path contains one of the words given.
import { spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';

const words = process.argv.slice(2);
const files = readdirSync('dist/test', { recursive: true })
  .map((name) => `dist/test/${name}`)
  .filter((name) => name.endsWith('.test.js') && (words.length === 0 || words.some((word) => name.includes(word))))
  .sort();
if (files.length === 0) {
  console.error(`no test file matches: ${words.join(' ') || 'dist/test is empty; run npm run build'}`);
  process.exit(2);
}
// One file at a time: tests of timing and of shared names must not compete for two cores.
const run = spawnSync(process.execPath, ['--test', '--test-concurrency=1', ...files], { stdio: 'inherit' });
process.exit(run.status ?? 1);
