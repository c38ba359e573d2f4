/** What is tried inside the machine, group by group. */
import { spawnSync } from 'node:child_process';
import {
  bridge,
  BOTH,
  built,
  command,
  Program,
  run,
  transfer,
  valeCtl,
  type Load,
  type Way,
  type Whose,
} from './programs.js';

/** A line of the table. */
export interface Row {
  readonly what: string;
  readonly ours: string;
  /** The same by upstream's program. */
  readonly upstreams?: string;
  readonly ok: boolean;
}

/** Seconds that an e1000 is given after it was opened. */
const LINK_S = 4;
/** ms that the port contract may take. */
const CONTRACT_MS = 600_000;

/** A generator, a bridge's two ports, a receiver. */
type Chain = Way & { readonly joined: readonly string[] };
const pipes = (k: number): Chain => ({
  from: `netmap:eth0{${k}`,
  joined: [`netmap:eth0}${k}`, `netmap:eth0{${k + 1}`],
  to: `netmap:eth0}${k + 1}`,
});
const SWITCHES: Chain = { from: 'vale0:g', joined: ['vale0:a', 'vale1:a'], to: 'vale1:s' };
const CABLES: Chain = { from: 'netmap:eth0', joined: ['netmap:eth1', 'netmap:eth2'], to: 'netmap:eth3', linkS: LINK_S };

/** The port contract on a pair of the kernel's own ports. */
async function* contractOn(ports: string): AsyncGenerator<Row> {
  const pattern = ports.replaceAll(/[^a-zA-Z0-9 :]/g, '.');
  const { stdout } = spawnSync(
    process.execPath,
    ['--test', '--test-reporter=tap', `--test-name-pattern=${pattern}`, 'dist/test/ports/port-contract.test.js'],
    { encoding: 'utf8', env: { ...process.env, NETMAP_PORTS: ports }, timeout: CONTRACT_MS, killSignal: 'SIGKILL' },
  );
  const [passed, failed] = ['pass', 'fail'].map((word) =>
    Number(new RegExp(`^# ${word} (\\d+)`, 'm').exec(stdout)?.[1] ?? NaN),
  );
  const not = [...stdout.matchAll(/^ +not ok \d+ - (.*)/gm)].map(([, name]) => `; not: ${name}`).join('');
  yield await Promise.resolve({
    what: `port contract: ${ports}`,
    ours: Number.isNaN(passed) ? `not done after ${CONTRACT_MS / 1000} s` : `${passed} of ${passed + failed}${not}`,
    ok: failed === 0 && passed > 0,
  });
}

async function* contract(): AsyncGenerator<Row> {
  yield* contractOn('netmap:eth0{1 netmap:eth0}1');
  yield* contractOn('vale0:a vale0:b');
}

/** By itself and late: what holds a NIC up in the kernel cannot be ended, and takes the machine with it. */
async function* nics(): AsyncGenerator<Row> {
  yield* contractOn('netmap:eth0 netmap:eth1');
}

/** Numbered frames through a bridge: each arrives once, in order. */
async function* frames(): AsyncGenerator<Row> {
  const tried: { what: string; chain: Chain; load: Load; options?: string[] }[] = [
    { what: 'pipes', chain: pipes(1), load: { count: 100_000 } },
    { what: 'pipes, --wait poll', chain: pipes(1), load: { count: 100_000 }, options: ['--wait', 'poll'] },
    { what: 'pipes, --copy', chain: pipes(1), load: { count: 100_000 }, options: ['--wait', 'poll', '--copy'] },
    { what: 'VALE, 3,000 a second', chain: SWITCHES, load: { count: 20_000, rate: 3000 }, options: ['--wait', 'poll'] },
    { what: 'e1000, 1,000 a second', chain: CABLES, load: { count: 5000, rate: 1000 }, options: ['--wait', 'poll'] },
  ];
  for (const nic of ['eth1', 'eth2']) run('ip', 'link', 'set', nic, 'promisc', 'on'); // upstream's bridge leaves that to the user
  for (const { what, chain, load, options = [] } of tried) {
    const through = async (whose: Whose) => {
      const running = await bridge(whose, chain.joined, options, chain.linkS);
      const arrived = await transfer(chain, load, ['ours', 'ours']);
      await running.stop();
      return arrived;
    };
    const theirs = await through("upstream's");
    const own = await through('ours');
    yield {
      what: `frames, each once and in order: ${what}`,
      ours: `${own.frames} of ${load.count}, ${own.wrong} wrong`,
      upstreams: `${theirs.frames} of ${load.count}, ${theirs.wrong} wrong`,
      ok: own.frames >= Math.min(theirs.frames, load.count) && own.wrong === 0,
    };
  }
}

/** How ours waits and moves frames where it is held against upstream's. */
const WAYS = new Map([
  ['--wait poll', ['--wait', 'poll']],
  ['busy', []],
  ['--wait poll --copy', ['--wait', 'poll', '--copy']],
]);
const TRIAL = 300_000;
/** Trials of which nothing is told: compilers warm up. */
const WARMUPS = 3;
const TRIALS = 5;

function median(numbers: number[]): number {
  return numbers.sort((x, y) => x - y)[numbers.length >> 1];
}

interface Measured {
  readonly kpps: number;
  readonly nsEach: number;
}

/** Bridges between pipes of their own, which take turns; who waits for its turn is stopped, and stays compiled. */
async function inTurns(ways: ReadonlyMap<string, string[]>): Promise<Map<string, Measured>> {
  const rivals = [];
  for (const [name, options] of [["upstream's", undefined], ...ways] as const) {
    const chain = pipes(2 * rivals.length + 1);
    const running = await bridge(options === undefined ? "upstream's" : 'ours', chain.joined, options ?? []);
    running.signal('SIGSTOP');
    rivals.push({ name, chain, running, kpps: [] as number[], ns: [] as number[] });
  }
  for (let trial = -WARMUPS; trial < TRIALS; trial++)
    for (const { chain, running, kpps, ns } of rivals) {
      running.signal('SIGCONT');
      const before = running.cpuNs;
      const { frames: arrived, pps } = await transfer(chain, { count: TRIAL });
      if (arrived !== TRIAL) throw new Error(`${arrived} of ${TRIAL} frames arrived`);
      if (trial >= 0) ns.push((running.cpuNs - before) / TRIAL);
      if (trial >= 0) kpps.push(pps / 1000);
      running.signal('SIGSTOP');
    }
  for (const { running } of rivals) await running.stop();
  return new Map(rivals.map(({ name, kpps, ns }) => [name, { kpps: median(kpps), nsEach: median(ns) }]));
}

/** Speed between pipes, in turns with upstream's. */
async function* speed(): AsyncGenerator<Row> {
  const measured = await inTurns(WAYS);
  const theirs = measured.get("upstream's")!;
  for (const [name, own] of measured) {
    if (own === theirs) continue;
    const ratio = own.kpps / theirs.kpps;
    yield {
      what: `speed between pipes: ${name}`,
      ours: `${own.kpps.toFixed(0)} kpps, ${ratio.toFixed(2)} of upstream's`,
      upstreams: `${theirs.kpps.toFixed(0)} kpps`,
      ok: ratio > 0.8,
    };
  }
}

/** Instructions a frame; where the machine's clock counts them. A bridge that spins uses all that are left, and is not asked. */
async function* instructions(): AsyncGenerator<Row> {
  const measured = await inTurns(new Map([...WAYS].filter(([, options]) => options.includes('poll'))));
  const theirs = measured.get("upstream's")!;
  for (const [name, own] of measured)
    if (own !== theirs)
      yield {
        what: `instructions a frame between pipes: ${name}`,
        ours: own.nsEach.toFixed(0),
        upstreams: theirs.nsEach.toFixed(0),
        ok: own.nsEach < 2 * theirs.nsEach,
      };
}

/** Either generator with either receiver. */
async function* generators(): AsyncGenerator<Row> {
  const load = { count: 100_000 };
  for (const sender of BOTH)
    for (const receiver of BOTH) {
      const { frames: arrived, pps } = await transfer({ from: 'netmap:eth0{1', to: 'netmap:eth0}1' }, load, [
        sender,
        receiver,
      ]);
      yield {
        what: `pkt-gen: ${sender} sends, ${receiver} receives`,
        ours: `${arrived} of ${load.count}, ${(pps / 1000).toFixed(0)} kpps`,
        ok: arrived === load.count,
      };
    }
}

/** An interface and its own host stack: the other end of its cable reaches it through the bridge. */
async function* hosts(): AsyncGenerator<Row> {
  for (const [name, nic, address] of [
    ['left', 'eth0', '10.77.0.1/24'],
    ['right', 'eth1', '10.77.0.2/24'],
  ]) {
    run('ip', 'netns', 'add', name);
    run('ip', 'link', 'set', nic, 'netns', name);
    run('ip', '-n', name, 'address', 'add', address, 'dev', nic);
    run('ip', '-n', name, 'link', 'set', nic, 'up');
  }
  // The bridge is where its interface is.
  const running = new Program([
    'ip',
    'netns',
    'exec',
    'right',
    ...command('ours', 'bridge'),
    '--wait',
    'poll',
    '-i',
    'netmap:eth1',
  ]);
  await running.until(/→.*\n.*→/);
  const ping = new Program([
    'ip',
    'netns',
    'exec',
    'left',
    built('busybox'),
    'ping',
    '-c',
    '10',
    '-W',
    '5',
    '10.77.0.2',
  ]);
  await ping.ended(60);
  await running.stop();
  const [, received = '0'] = /(\d+) packets received/.exec(ping.said) ?? [];
  yield {
    what: 'host rings: pings answered through the bare form',
    ours: `${received} of 10`,
    ok: Number(received) >= 5,
  };
  for (const name of ['left', 'right']) run('ip', 'netns', 'delete', name);
}

/** Ports of a switch that last, and those that end with their program. */
async function* switches(): AsyncGenerator<Row> {
  valeCtl('-n', 'lasting');
  valeCtl('-a', 'vale3:lasting');
  const arrived = await transfer({ from: 'vale3:lasting', to: 'vale3:other' }, { count: 10_000, rate: 3000 }, [
    'ours',
    'ours',
  ]);
  yield {
    what: 'VALE: a lasting port to one that is not',
    ours: `${arrived.frames} of 10000`,
    ok: arrived.frames === 10_000,
  };
}

/** Opened, closed, killed, opened again. */
async function* life(): AsyncGenerator<Row> {
  const chain = pipes(1);
  const first = await bridge(
    'ours',
    chain.joined.map((port) => `${port}/x`),
    ['--wait', 'poll'],
  );
  const second = new Program([...command('ours', 'bridge'), ...chain.joined.flatMap((port) => ['-i', `${port}/x`])]);
  const refused = await second.ended(60);
  yield {
    what: 'life: a second exclusive bridge is refused',
    ours: `exit status ${refused ?? 'none'}`,
    ok: refused === 1,
  };
  first.signal('SIGKILL');
  await first.ended(30);
  const again = await bridge(
    'ours',
    chain.joined.map((port) => `${port}/x`),
    ['--wait', 'poll'],
  );
  const { frames: arrived } = await transfer(chain, { count: 50_000 });
  await again.stop();
  yield {
    what: 'life: after SIGKILL it opens again and forwards',
    ours: `${arrived} of 50000`,
    ok: arrived === 50_000,
  };
  const script =
    `const { openPort } = await import('${process.cwd()}/dist/lib/ports/open.js');` +
    "for (let i = 0; i < 200; i++) openPort(i % 2 ? 'netmap:eth0{1/x' : 'vale0:a/x').close();";
  run(process.execPath, '--input-type=module', '-e', script);
  yield { what: 'life: opened and closed 200 times', ours: 'each time', ok: true };
}

/** The group that reads the machine's clock as a count of instructions. */
export const COUNTED = 'instructions';

export const CHECKS: ReadonlyMap<string, () => AsyncGenerator<Row>> = new Map([
  ['contract', contract],
  ['frames', frames],
  ['speed', speed],
  ['generators', generators],
  ['switches', switches],
  ['life', life],
  ['hosts', hosts],
  ['nics', nics],
  [COUNTED, instructions],
]);
