// Builds the native addon; runs at `npm install`. Plain JavaScript, because nothing is compiled yet when it runs.
// Anything missing is named in one sentence with what to install, instead of a page of node-gyp output.
import { spawnSync } from 'node:child_process';

const system = process.platform;
const install = {
  linux: 'sudo apt-get install build-essential python3 (Debian, Ubuntu) or sudo dnf install gcc make python3 (Fedora)',
  freebsd: 'pkg install gmake python3 (the compiler is part of the base system)',
}[system];

function fail(sentence) {
  console.error(`netmap-bridge: ${sentence}`);
  process.exit(1);
}

function found(command) {
  return spawnSync(command, ['--version'], { stdio: 'ignore' }).error === undefined;
}

if (!install) fail(`this system is ${system}; netmap-bridge runs on Linux and FreeBSD only.`);
if (process.config.variables.host_arch && process.arch !== 'x64' && process.arch !== 'arm64')
  fail(`this CPU is ${process.arch}; netmap-bridge runs on 64-bit x86 and ARM only.`);

const needs = [
  ['a C compiler', [process.env.CC, 'cc', 'gcc', 'clang']],
  ['make', [process.env.MAKE, system === 'freebsd' ? 'gmake' : 'make']],
  ['Python 3', [process.env.PYTHON, process.env.npm_config_python, 'python3', 'python']],
];
const missing = needs.filter(([, names]) => !names.some((name) => name && found(name))).map(([what]) => what);
if (missing.length > 0)
  fail(
    `${new Intl.ListFormat('en').format(missing)} not found, needed to build the native addon; install with: ${install}.`,
  );

// npm puts its own node-gyp on the path of the scripts it runs.
const gyp = spawnSync(
  'node-gyp',
  ['rebuild', ...(process.env.npm_config_loglevel === 'verbose' ? ['--verbose'] : [])],
  {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'pipe'],
  },
);
if (gyp.error) fail(`node-gyp could not be started (${gyp.error.message}); run this through npm: npm install.`);
process.stdout.write(gyp.stderr.includes('warning:') ? gyp.stderr : '');
if (gyp.status !== 0) {
  process.stderr.write(gyp.stdout + gyp.stderr);
  fail(`the native addon did not build; the compiler's own words are above.`);
}
