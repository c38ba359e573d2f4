// `npm run sanitize [WORD…]`: the tests that reach deepest into the shim, with the shim built under AddressSanitizer and
// UndefinedBehaviorSanitizer. In a copy of the project, so that the real build stays what it is. Linux, gcc.
import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';

const given = process.argv.slice(2);
/** Parts of paths below test/: the shim's own calls, and pipes with peers that write nonsense. */
const TESTS = given.length > 0 ? given : ['shim/shim-netmap', 'shim/shim-memory', 'ports/pipe/'];
const SANITIZERS = '-fsanitize=address,undefined';

function library(name) {
  return spawnSync('gcc', [`-print-file-name=${name}`], { encoding: 'utf8' }).stdout?.trim();
}
const env = {
  ...process.env,
  LD_PRELOAD: `${library('libasan.so')} ${library('libubsan.so')}`,
  // Node itself leaves memory behind at exit.
  ASAN_OPTIONS: 'detect_leaks=0',
  UBSAN_OPTIONS: 'print_stacktrace=1',
};
const probe = spawnSync(process.execPath, ['-e', ''], { env, encoding: 'utf8' });
if (probe.status !== 0 || probe.stderr !== '') {
  // Seen where addresses are randomised more widely than the sanitizer expects (sysctl vm.mmap_rnd_bits above 28).
  console.log(`sanitize: Node.js does not run under AddressSanitizer here; nothing tested\n${probe.stderr}`);
  // Where it is there to be run, not running it is a failure.
  process.exit(process.env.CI ? 1 : 0);
}

const folder = mkdtempSync(join(tmpdir(), 'sanitize-'));
try {
  for (const name of ['addon', 'binding.gyp', 'dist', 'package.json', 'test'])
    cpSync(name, join(folder, name), { recursive: true });
  symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
  const built = spawnSync('node-gyp', ['rebuild'], {
    cwd: folder,
    encoding: 'utf8',
    env: {
      ...process.env,
      CC: 'gcc',
      CFLAGS: `${SANITIZERS} -fno-sanitize-recover=undefined -fno-omit-frame-pointer -g`,
      LDFLAGS: SANITIZERS,
    },
  });
  if (built.status !== 0) throw new Error(`the shim did not build: ${built.error?.message ?? built.stderr}`);
  const tests = readdirSync(join(folder, 'dist/test'), { recursive: true })
    .filter((name) => name.endsWith('.test.js') && TESTS.some((word) => name.includes(word)))
    .map((name) => `dist/test/${name}`);
  const run = spawnSync(process.execPath, ['--test', '--test-concurrency=1', ...tests], {
    cwd: folder,
    env,
    stdio: 'inherit',
  });
  process.exitCode = run.status ?? 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
