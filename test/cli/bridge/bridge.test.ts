/** `bridge` from the outside, as a process. */
import assert from 'node:assert/strict';
import { execFileSync, spawn, spawnSync, type ChildProcessByStdio } from 'node:child_process';
import {
  appendFileSync,
  closeSync,
  constants,
  existsSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { gzipSync } from 'node:zlib';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { once } from 'node:events';
import type { Readable } from 'node:stream';
import { after, before, describe, it } from 'node:test';
import { says } from '../../lab/traffic.js';
import { endpoints } from '../../../lib/ports/choose.js';
import { startBridge, UsageError, type StartOptions } from '../../../lib/index.js';
import { skipWithout } from '../../support/needs.js';

const TOOL = fileURLToPath(new URL('../../../tools/bridge.js', import.meta.url));

const CAPTURES = fileURLToPath(new URL('../../../../test/captures/', import.meta.url));
const withoutTshark = skipWithout('tshark', 'capinfos');

type Child = ChildProcessByStdio<null, Readable, Readable>;
interface Result {
  code: number | null;
  out: string;
  err: string;
}

function start(...args: string[]): Child {
  return spawn(process.execPath, [TOOL, ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 120_000, // nothing hangs for ever: a process killed has no exit code
  });
}

async function finish(child: Child): Promise<Result> {
  const text = { out: '', err: '' };
  child.stdout.setEncoding('utf8').on('data', (part: string) => (text.out += part));
  child.stderr.setEncoding('utf8').on('data', (part: string) => (text.err += part));
  const [code] = (await once(child, 'close')) as [number | null];
  return { code, ...text };
}

const run = (...args: string[]): Promise<Result> => finish(start(...args));

interface Flow {
  direction: string;
  from: string;
  to: string;
  received: number;
  forwarded: number;
  bytes: number;
  slots: number;
  mpps: number;
  gbitPerSecond: number;
  averageBatch: number;
  txFull: number;
  zeroSlots: number;
  notForwarded: Record<string, number>;
}
interface Line {
  type: string;
  reason: string;
  seconds: number;
  longestGapNs?: number;
  intervalSeconds: number;
  zeroCopy: boolean;
  whyCopy?: string;
  message: string;
  sentence: string;
  code: string;
  problems: string[];
  directions: Flow[];
  ports: { name: string; driver: string; bufSize: number; txRings: number; stats: Record<string, number> }[];
}

function lines(out: string): Line[] {
  assert.ok(out === '' || out.endsWith('\n'));
  return out
    .split('\n')
    .slice(0, -1)
    .map((line) => JSON.parse(line) as Line);
}

/** Runs to the end, which must be a good one, and returns the summary, whose numbers must add up. */
async function summary(...args: string[]): Promise<Line> {
  const { code, out, err } = await run('--json', ...args);
  assert.equal(code, 0, err);
  return addsUp(lines(out).at(-1)!);
}

function addsUp(line: Line): Line {
  assert.ok(line.type === 'summary' || line.type === 'stats');
  for (const flow of line.directions) {
    const lost = Object.values(flow.notForwarded).reduce((sum, frames) => sum + frames, 0);
    assert.equal(flow.received, flow.forwarded + lost);
  }
  return line;
}

const forwarded = (line: Line): number => line.directions.reduce((sum, flow) => sum + flow.forwarded, 0);

/** Waits until the bridge has printed what it opened. */
async function opened(child: Child): Promise<void> {
  const early = once(child, 'close').then(() => assert.fail('the bridge ended before it had opened its ports'));
  await Promise.race([once(child.stdout, 'readable'), early]);
}

describe('bridge: what is written wrong', () => {
  const cases: [string, string[], RegExp][] = [
    ['no port', [], /no port is named; write bridge -i PORT -i PORT/],
    [
      'rings for more memory than ports can share', // 2 × 64 × 65,536 buffers and slots of 16 bytes
      ['sim:a@slots=65536,rings=64,buf=65472', 'sim:b'],
      /need 511\.6 GiB of memory, and ports can share 4\.0 GiB; ask for fewer slots or rings, or smaller buffers/,
    ],
    [
      'a long option that is nearly right',
      ['--brust', '4', 'sim:a', 'sim:b'],
      /unknown option --brust; did you mean --burst\?/,
    ],
    ['a long option with one hyphen', ['-json', 'sim:a'], /unknown option -json; did you mean --json\?/],
    ['a letter that is no option', ['-q', 'sim:a'], /unknown option -q; the help lists/],
    ['a missing value', ['sim:a', 'sim:b', '-b'], /option -b needs a value; write -b SLOTS/],
    ['an option where a value belongs', ['sim:a', 'sim:b', '-b', '-c'], /option -b needs a value/],
    ['a value where none belongs', ['--copy=yes', 'sim:a', 'sim:b'], /option --copy takes no value, 'yes' was given/],
    ['an option twice', ['-b', '4', '-b', '8', 'sim:a', 'sim:b'], /option -b is given twice/],
    [
      'three -i',
      ['-i', 'sim:a', '-i', 'sim:b', '-i', 'sim:c'],
      /3 ports are named \(sim:a, sim:b, sim:c\); a bridge joins two/,
    ],
    ['a third port that is read as a burst', ['sim:a', 'sim:b', 'sim:c'], /burst 'sim:c' does not begin with a digit/],
    ['four words', ['sim:a', 'sim:b', '8', 'x'], /'x' is too much/],
    ['a word beside -i', ['-i', 'sim:a', '-i', 'sim:b', '8'], /'8' is too much/],
    [
      'burst 0',
      ['-b', '0', 'sim:a', 'sim:b'],
      /-b, --burst: burst '0' is out of range; write a whole number from 1 to 65536/,
    ],
    ['burst too large', ['-b', '65537', 'sim:a', 'sim:b'], /burst '65537' is out of range/],
    ['a burst that is no number', ['-b', 'many', 'sim:a', 'sim:b'], /burst 'many' does not begin with a digit/],
    ['half a burst', ['sim:a', 'sim:b', '1.5'], /burst '1.5' is not a whole number/],
    ['the burst in two places', ['-b', '4', 'sim:a', 'sim:b', '8'], /burst is given twice/],
    ['-L with two ports', ['-L', 'sim:a', 'sim:b'], /-L loops one port back, two are named/],
    ['-n negative', ['-n', '-1', 'sim:a', 'sim:b'], /-n, --frames: count '-1'/],
    ['-n 0', ['-n', '0', 'sim:a', 'sim:b'], /-n, --frames: count '0' is out of range/],
    ['-t 0', ['-t', '0', 'sim:a', 'sim:b'], /-t, --time: time '0' is not above 0/],
    ['-w without a number', ['-w', 'soon', 'sim:a', 'sim:b'], /-w, --wait-link: time 'soon'/],
    [
      '--stats with a wrong unit',
      ['--stats', '5x', 'sim:a', 'sim:b'],
      /--stats: time '5x' has the unknown unit 'x'; write seconds/,
    ],
    [
      '--wait with another word',
      ['--wait', 'sleep', 'sim:a', 'sim:b'],
      /--wait: 'sleep' is unknown; write busy or poll/,
    ],
    ['a CPU that is not there', ['--cpu', '4095', 'sim:a', 'sim:b'], /no thread can run on CPU 4095/],
    ['a port name', ['-i', 'sim:a@slotz=4', '-i', 'sim:b'], /unknown option 'slotz'.*slots[^]*\^/],
    ['a port without a host stack, alone', ['-i', 'sim:a'], /sim:a has no host stack .* -L/],
    ['the same twice', ['sim:a', 'sim:a'], /sim:a has no host stack/],
  ];
  for (const [what, args, says] of cases) {
    it(`${what}: exit 2, nothing on stdout`, async () => {
      const { code, out, err } = await run(...args);
      assert.match(err, says);
      assert.match(err, /^bridge: [^]*\nTry: bridge --help\n$/);
      assert.deepEqual([code, out], [2, '']);
    });
  }

  it('the same with --json', async () => {
    const { code, out } = await run('--json', '-i', 'sim:a@slotz=4');
    assert.deepEqual([code, out], [2, '']);
  });
});

describe('bridge: help and version', () => {
  it('lists every option, fits a terminal, goes to stdout', async () => {
    const { code, out, err } = await run('--help');
    assert.deepEqual([code, err], [0, '']);
    const options = out.slice(out.indexOf('\noptions\n') + 9).split('\n\n', 1)[0];
    const listed = [...options.matchAll(/^ {2,6}(-\w, )?(--[a-z-]+)( [A-Z]\S*| busy\|poll)?(?= {2,}|$)/gm)].map(
      ([, short = '', long, value = '']) => short + long + value,
    );
    assert.deepEqual(listed, [
      '-i, --interface PORT',
      '-b, --burst SLOTS',
      '-c, --copy',
      '-L, --loop',
      '-w, --wait-link SECONDS',
      '-n, --frames FRAMES',
      '-t, --time SECONDS',
      '--wait busy|poll',
      '--cpu CPU',
      '--program PROGRAM',
      '--third PORT',
      '--no-promisc',
      '--stats SECONDS',
      '--json',
      '-v, --verbose',
      '-h, --help',
      '--version',
    ]);
    for (const line of out.split('\n')) assert.ok(line.length <= 120 && line === line.trimEnd(), line);
    for (const word of [
      'netmap:ix0',
      'xdp:eth0',
      'pipe:lab{1',
      'pcap:@out=',
      'sim:a',
      'FreeBSD',
      'Linux',
      'SIGTERM',
      'exit code',
    ])
      assert.ok(out.includes(word), word);
    assert.equal((await run('-h', '--stats', '1')).out, out);
  });

  it('the version is the package’s', async () => {
    const { version } = JSON.parse(readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8')) as {
      version: string;
    };
    assert.deepEqual(await run('--version'), { code: 0, out: `bridge ${version}\n`, err: '' });
  });
});

describe('bridge: ports that cannot be opened', () => {
  const noNetmap = { skip: existsSync('/dev/netmap') ? 'this machine has netmap' : false };

  it('netmap ports without netmap: exit 1, and what to do on FreeBSD and on Linux', noNetmap, async () => {
    for (const ports of [['netmap:ix0', 'netmap:ix1'], ['netmap:ix0']]) {
      const { code, out, err } = await run(...ports.flatMap((port) => ['-i', port]));
      assert.match(
        err,
        /^bridge: .*\/dev\/netmap.*\(ENOENT\): this machine has no netmap\. On FreeBSD: kldload netmap.*device netmap.*On Linux: .*modprobe netmap.*xdp:.*root/,
      );
      assert.deepEqual([code, out], [1, '']);
    }
  });

  it('the same for programs', noNetmap, async () => {
    const { code, out } = await run('--json', 'netmap:ix0', 'netmap:ix1');
    assert.equal(code, 1);
    assert.deepEqual(
      lines(out).map(({ type, code }) => [type, code]),
      [['error', 'ENOENT']],
    );
  });

  it('a bare interface takes AF_XDP on Linux without netmap, and says so', noNetmap, async () => {
    const { code, out, err } = await run('--json', 'nosuch0', 'sim:a');
    const all = lines(out);
    assert.equal(code, 1);
    if (process.platform === 'linux') {
      assert.match(all[0].sentence, /^nosuch0 is opened as xdp:nosuch0 \(AF_XDP\): this machine has no netmap$/);
      assert.match(err, /no interface nosuch0/);
    } else assert.match(err, /no netmap/);
    assert.equal(all.at(-1)?.type, 'error');
  });
});

describe('bridge: the other side of one port', () => {
  const opens = (names: string[], loop = false): string[] => endpoints(names, loop).specs.map(({ text }) => text);

  it('is its host stack, as upstream has it', () => {
    assert.deepEqual(opens(['netmap:ix0']), ['netmap:ix0', 'netmap:ix0^']);
    assert.deepEqual(opens(['netmap:ix0', 'netmap:ix0']), ['netmap:ix0', 'netmap:ix0^']);
    assert.deepEqual(opens(['netmap:ix0@conf:host-rings=2']), [
      'netmap:ix0@conf:host-rings=2',
      'netmap:ix0^@conf:host-rings=2',
    ]);
  });

  it('is itself with -L, and is left alone where both are named or there is no host stack', () => {
    assert.deepEqual(opens(['netmap:ix0'], true), ['netmap:ix0']);
    assert.deepEqual(opens(['netmap:ix0', 'netmap:ix0^']), ['netmap:ix0', 'netmap:ix0^']);
    assert.deepEqual(opens(['vale0:a']), ['vale0:a']);
    assert.deepEqual(opens(['sim:a']), ['sim:a']);
  });
});

describe('bridge: every frame accounted for', () => {
  it('says what was opened, ends with its sources, and sums up', async () => {
    const { code, out, err } = await run(
      '-v',
      '-i',
      'sim:a@rate=1G,count=1000',
      '-i',
      'sim:b@rate=1G,count=10,size=1518',
    );
    assert.deepEqual([code, err], [0, '']);
    assert.match(
      out,
      /^sim:a@rate=1G,count=1000: sim, 1 tx ring × 1024 slots, 1 rx ring × 1024 slots, buffers of 2048 bytes, memory \S+\n/,
    );
    assert.match(out, /^zero-copy: /m);
    assert.match(out, /^sim:a→sim:b: rx 0 to tx 0$/m);
    assert.match(
      out,
      /^sim:a→sim:b: 1,000 frames, 60,000 bytes; \S+ [kM]?pps, \S+ [kMG]?bit\/s on the wire; .*not forwarded: none$/m,
    );
    assert.match(out, /^sim:b→sim:a: 10 frames, 15,140 bytes; /m);
    assert.match(out, /^sim:a@rate=1G,count=1000: offered 1,000, .*longest gap /m);
  });

  it('rates use the time that forwarding ran and the bytes on the wire', async () => {
    const { seconds, directions, reason } = await summary('sim:a@slots=4096,count=2000', 'sim:b@slots=4096,count=10');
    assert.equal(reason, 'ended');
    const [{ forwarded, bytes, mpps, gbitPerSecond, slots }] = directions;
    assert.deepEqual([forwarded, bytes, slots], [2000, 2000 * 60, 2000]);
    assert.ok(Math.abs(mpps - 2000 / seconds / 1e6) <= 1e-9 * mpps);
    assert.ok(Math.abs(gbitPerSecond - (2000 * 84 * 8) / seconds / 1e9) <= 1e-9 * gbitPerSecond);
  });

  for (const wait of ['busy', 'poll']) {
    for (const [a, b] of [
      [4, 2],
      [3, 1],
      [1, 4],
      [2, 3],
    ]) {
      it(`${a} rings to ${b}, --wait ${wait}: every flow in order, nothing lost`, async () => {
        const sims = [`sim:a@rings=${a},clock=virtual,count=3000`, `sim:b@rings=${b},clock=virtual,count=2000`];
        const { ports, directions } = await summary('--wait', wait, '-b', '37', ...sims);
        assert.deepEqual(
          directions.map(({ forwarded, received }) => [forwarded, received]),
          [
            [3000, 3000],
            [2000, 2000],
          ],
        );
        assert.deepEqual(
          ports.map(({ stats }) => stats['sent']),
          [2000, 3000],
        );
        for (const { stats } of ports)
          for (const wrong of [
            'missed',
            'lost',
            'duplicates',
            'reordered',
            'corrupt',
            'foreign',
            'badSlots',
            'reinits',
          ])
            assert.equal(stats[wrong], 0, wrong);
      });
    }
  }

  it('-n: exactly so many, both directions together', async () => {
    const line = await summary('-n', '777', '-b', '50', 'sim:a@clock=virtual', 'sim:b@clock=virtual,size=9018');
    assert.equal(line.reason, 'frames');
    assert.equal(forwarded(line), 777);
    assert.deepEqual(
      line.ports.map(({ stats }) => stats['sent']),
      line.directions.map(({ forwarded }) => forwarded).reverse(),
    );
  });

  it('-t: ends after that time', async () => {
    const { reason, seconds } = await summary('-t', '150ms', 'sim:a', 'sim:b');
    assert.equal(reason, 'time');
    assert.ok(seconds >= 0.15);
  });

  it('the longest gap between turns is in the summary: a process that stood still for 300 ms had one', async () => {
    const child = start('--json', '--stats', '0.05', 'sim:a@rate=1M', 'sim:b@rate=1M');
    const ended = finish(child);
    await says(child, /"stats"/);
    child.kill('SIGSTOP');
    setTimeout(() => {
      child.kill('SIGCONT'); // that time is what is told
      child.kill('SIGTERM');
    }, 300);
    const { code, out } = await ended;
    const { seconds, longestGapNs } = lines(out).at(-1)!;
    assert.equal(code, 0);
    assert.ok(longestGapNs! >= 250e6 && longestGapNs! <= seconds * 1e9, `${longestGapNs}`);
    const { out: text } = await run('-t', '50ms', 'sim:a@rate=1M', 'sim:b@rate=1M');
    assert.match(text, /^forwarding ran for [\d.]+ m?s; longest gap between turns [\d.]+ [µm]?s$/m);
  });

  it('on the virtual clock neither rates nor gaps are told, for they would be the machine’s', async () => {
    const args = ['-n', '5000', '--stats', '0.001', 'sim:a@clock=virtual', 'sim:b@clock=virtual'];
    const { out } = await run('--json', ...args);
    assert.ok(lines(out).length > 2);
    assert.doesNotMatch(out, /mpps|gbit|gap/i);
    const { out: text } = await run(...args);
    assert.match(text, /^sim:a→sim:b: [\d,]+ frames, [\d,]+ bytes; average batch /m);
    assert.match(text, /^[\d.]+ s {2}sim:a→sim:b: [\d,]+ frames, batch /m);
    assert.doesNotMatch(text, /pps|bit\/s|gap/);
  });

  it('-L: one direction, out of where it came from', async () => {
    const { directions, ports } = await summary('-L', '-i', 'sim:a@clock=virtual,count=100');
    assert.deepEqual(
      directions.map(({ direction, forwarded }) => [direction, forwarded]),
      [['sim:a→sim:a', 100]],
    );
    assert.equal(ports[0].stats['sent'], 100);
  });

  it('-c: copies, says so, and the frames are the same', async () => {
    const { out } = await run('--json', '-c', 'sim:a@clock=virtual,count=5000', 'sim:b@clock=virtual,count=1', '64');
    const [open, ...rest] = lines(out);
    assert.deepEqual([open.type, open.zeroCopy, open.whyCopy], ['open', false, 'asked for']);
    const { ports } = addsUp(rest.at(-1)!);
    assert.deepEqual([ports[1].stats['sent'], ports[1].stats['corrupt'], ports[1].stats['lost']], [5000, 0, 0]);
  });

  it('frames longer than the whole tx ring: not forwarded, and counted as that', async () => {
    const { directions, ports } = await summary(
      'sim:a@clock=virtual,count=40,size=9018',
      'sim:b@clock=virtual,count=1,slots=4',
    );
    assert.deepEqual([directions[0].received, directions[0].forwarded], [40, 0]);
    assert.deepEqual(directions[0].notForwarded, { noTxRoom: 40 });
    assert.equal(ports[1].stats['sent'], 0);
  });

  for (const [size, slots, up] of [
    [64, 1, '30us'],
    [9018, 5, '200us'],
  ] as const) {
    it(`frames of ${slots} slots that never left count as not forwarded`, async () => {
      // The link of b goes down for good when some frames have left; the rest stays in its tx ring.
      const line = await summary(
        '-n',
        '100',
        `sim:a@clock=virtual,rate=1G,size=${size},count=100`,
        `sim:b@clock=virtual,count=1,flap=${up}/1000s`,
      );
      const [toB] = line.directions;
      const { unsent } = toB.notForwarded;
      assert.ok(unsent > 0 && toB.forwarded > 0, JSON.stringify(toB));
      assert.equal(toB.forwarded, line.ports[1].stats['sent']);
      assert.equal(toB.bytes, toB.forwarded * (size - 4));
      assert.equal(toB.slots, toB.received * slots);
    });
  }
});

describe('bridge: statistics while it runs', () => {
  it('--stats: intervals that add up to the time and the frames so far', async () => {
    const { code, out } = await run('--json', '--stats', '0.05', '-t', '0.6', 'sim:a@rate=100M', 'sim:b@rate=100M');
    assert.equal(code, 0);
    const all = lines(out);
    const stats = all.filter(({ type }) => type === 'stats');
    const last = all.at(-1)!;
    assert.ok(stats.length > 0);
    let seconds = 0;
    const frames = [0, 0];
    for (const line of stats) {
      addsUp(line);
      seconds += line.intervalSeconds;
      assert.ok(Math.abs(line.seconds - seconds) < 1e-6);
      line.directions.forEach((flow, i) => {
        frames[i] += flow.forwarded;
        assert.ok(Math.abs(flow.mpps - flow.forwarded / line.intervalSeconds / 1e6) <= 1e-9 * flow.mpps);
      });
    }
    assert.ok(seconds <= last.seconds + 0.1 * seconds + 1);
    last.directions.forEach(({ forwarded }, i) => {
      assert.ok(frames[i] <= forwarded && frames[i] > 0);
    });
  });

  it('for people: a line for each direction', async () => {
    const { out } = await run('--stats', '0.1', '-t', '0.5', 'sim:a@rate=100M', 'sim:b@rate=100M');
    assert.match(
      out,
      /^\d+\.\d s {2}sim:a→sim:b: \d[\d.]* [kM]?pps, \d[\d.]* [kMG]?bit\/s on the wire, [\d,]+ frames, batch \d+\.\d\n\d+\.\d s {2}sim:b→sim:a: /m,
    );
    assert.ok(out.lastIndexOf(' s  sim:') < out.indexOf('forwarding ran for'));
  });
});

describe('bridge: signals and closed pipes', () => {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    for (const wait of ['busy', 'poll']) {
      it(`${signal} stops it cleanly, --wait ${wait}`, async () => {
        const child = start('--json', '--wait', wait, 'sim:a@rate=100M', 'sim:b@rate=100M');
        const result = finish(child);
        await opened(child);
        child.kill(signal);
        const { code, out, err } = await result;
        assert.deepEqual([code, err], [0, '']);
        const line = addsUp(lines(out).at(-1)!);
        assert.deepEqual([line.type, line.reason], ['summary', 'stopped']);
        assert.deepEqual(
          line.directions.map(({ forwarded }) => forwarded),
          line.ports.map(({ stats }) => stats['sent']).reverse(),
        );
      });
    }
  }

  it('a second signal right after the first is the same wish: the summary appears, exit 0', async () => {
    // Frames that cannot leave hold the clean stop up, so that the second one comes while it is on.
    const child = start('--json', 'sim:a@rate=1G', 'sim:b@flap=1us/1000s');
    const result = finish(child);
    await opened(child);
    child.kill('SIGTERM');
    child.kill('SIGINT');
    const { code, out } = await result;
    assert.equal(code, 0);
    assert.deepEqual(
      lines(out).map(({ type }) => type),
      ['open', 'summary'],
    );
  });

  it('a reader that goes away neither stops nor breaks it, and the summary is on stderr', async () => {
    for (const [format, summary] of [
      [['--json'], /^\{"type":"summary","reason":"stopped".*\}\n$/],
      [[], /^\nforwarding ran for .*\nsim:a→sim:b: .*\nsim:b→sim:a: /],
    ] as const) {
      const child = start(...format, '--stats', '0.02', 'sim:a@rate=100M', 'sim:b@rate=100M');
      let err = '';
      child.stderr.setEncoding('utf8').on('data', (part: string) => (err += part));
      await opened(child);
      const ended = once(child, 'close');
      child.stdout.destroy();
      const early = await Promise.race([ended, new Promise((resolve) => setTimeout(resolve, 500, 'running'))]);
      assert.equal(early, 'running', err);
      child.kill('SIGINT');
      const [code] = (await ended) as [number | null];
      assert.equal(code, 0);
      assert.match(err, summary);
    }
  });
});

describe('bridge: a process that may have little memory', () => {
  const limited = (port: string) =>
    spawnSync('sh', ['-c', `ulimit -v 4500000; exec "$@"`, 'sh', process.execPath, TOOL, '-n', '1', port, 'sim:b'], {
      encoding: 'utf8',
    });
  const skip = limited('sim:a').status === 0 ? false : 'this node itself needs more';

  it('says what it needs and the remedy; exit 1', { skip }, () => {
    const { status, stdout, stderr } = limited('sim:a@slots=65536,rings=14'); // 28 × 65,536 × 2,064 bytes
    assert.match(
      stderr,
      /^bridge: the rings .* need 3\.5 GiB of memory, and the system has not .* ask for fewer slots/,
    );
    assert.deepEqual([status, stdout], [1, '']);
  });
});

describe('startBridge(): options of a program', () => {
  const wrong: [keyof StartOptions, unknown[]][] = [
    ['burst', [0, -5, 2.5, NaN, Infinity, '8', null, 2 ** 53]],
    ['frames', [-1, 0.5, NaN, Infinity, '8', null]],
    ['cpu', [-2, 0.5, NaN, '0', null]],
    ['seconds', [-1, NaN, Infinity, '1', null]],
    ['linkWait', [-1, NaN, Infinity, '1', null]],
    ['wait', ['', 'sleep', 0, null]],
  ];
  for (const [name, values] of wrong)
    it(`${name}: what it cannot be is refused by name`, () => {
      for (const value of values)
        assert.throws(
          () => startBridge(['sim:a', 'sim:b'], { [name]: value }),
          (error) => error instanceof UsageError && error.message.startsWith(`${name}: expected `),
          String(value),
        );
    });

  it('the least of each is taken', async () => {
    const bridge = startBridge(['sim:a', 'sim:b'], { burst: 1, frames: 0, cpu: -1, seconds: 0.001, linkWait: 0 });
    assert.equal((await bridge.ended).reason, 'time');
  });
});

describe('bridge: nowhere to print', { skip: existsSync('/dev/full') ? false : 'no /dev/full' }, () => {
  const into = (redirection: string, ...args: string[]) =>
    spawnSync('sh', ['-c', `exec "$@" ${redirection}`, 'sh', process.execPath, TOOL, ...args], { encoding: 'utf8' });
  const oneFrame = ['-n', '1', 'sim:a', 'sim:b'];
  const said = /^cannot write to stdout: .*ENOSPC.*\n$/;

  for (const [what, args] of [
    ['a run', oneFrame],
    ['a run for programs', ['--json', ...oneFrame]],
    ['the help', ['--help']],
  ] as const)
    it(`${what}: stdout on a full disk is said once, without a stack trace; exit 1`, () => {
      const { status, stderr } = into('>/dev/full', ...args);
      assert.match(stderr, said);
      assert.equal(status, 1);
    });

  it('stderr on a full disk changes nothing: the exit code tells the same', () => {
    const { status, stdout } = into('2>/dev/full', '--json', ...oneFrame);
    assert.deepEqual([status, lines(stdout).at(-1)?.type], [0, 'summary']);
    assert.equal(into('2>/dev/full', '--bogus').status, 2);
    assert.equal(into('>/dev/full 2>/dev/full', ...oneFrame).status, 1);
  });
});

describe('bridge: capture files', () => {
  /** Link type 113 by `capinfos -E`. */
  const cooked = ['RADIUS-RFC3162.pcap', 'tcp-handshake-nano.pcap'];
  const captures = readdirSync(CAPTURES).filter((file) => /\.pcap(ng)?$/.test(file) && !cooked.includes(file));
  let dir = '';
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'bridge-test-'));
  });
  after(() => {
    rmSync(dir, { recursive: true });
  });
  const there = (): string => join(dir, 'out.pcap');

  it('there are captures to be tested with', () => {
    assert.equal(captures.length, 7);
  });

  for (const file of captures) {
    const from = join(CAPTURES, file);
    for (const how of [[], ['-c', '-b', '3'], ['--wait', 'poll']]) {
      it(`${file} ${how.join(' ')}: the same frames in the file written`, { skip: withoutTshark }, async () => {
        const { reason, directions, ports } = await summary(...how, '-i', `pcap:${from}`, '-i', `pcap:@out=${there()}`);
        assert.equal(reason, 'ended');
        const theirs = frames(from);
        assert.ok(theirs.length > 0);
        // A copied frame is a new one: it has the time of writing.
        const kept = how.includes('-c') ? bytesOf : (all: Seen[]): Seen[] => all;
        assert.deepEqual(kept(frames(there())), kept(theirs));
        assert.deepEqual(
          directions.map(({ received, forwarded }) => [received, forwarded]),
          [[theirs.length, theirs.length]],
        );
        assert.equal(ports[1].stats['framesWritten'], theirs.length);
      });
    }

    it(`${file} through a pipe between two processes: the same bytes`, { skip: withoutTshark }, async () => {
      const theirs = bytesOf(frames(from));
      const name = `bridge-test-${process.pid}`;
      const [sent, received] = await Promise.all([
        summary('-i', `pcap:${from}`, '-i', `pipe:${name}{1`),
        summary('-n', String(theirs.length), '-i', `pipe:${name}}1`, '-i', `pcap:@out=${there()}`),
      ]);
      assert.deepEqual([sent.reason, forwarded(sent)], ['ended', theirs.length]);
      assert.deepEqual([received.reason, forwarded(received)], ['frames', theirs.length]);
      assert.deepEqual(bytesOf(frames(there())), theirs);
    });
  }

  for (const file of cooked) {
    it(`${file}: another link type is refused by name, exit 1, nothing written`, async () => {
      const to = join(dir, 'no.pcap');
      const { code, out, err } = await run('-i', `pcap:${join(CAPTURES, file)}`, '-i', `pcap:@out=${to}`);
      assert.match(err, /^bridge: .*: link type 113 \(LINKTYPE_LINUX_SLL\) carries no Ethernet frames/);
      assert.deepEqual([code, out, existsSync(to)], [1, '', false]);
    });
  }

  it('a truncated file: what is whole is forwarded, then where it broke, exit 1', async () => {
    const whole = readFileSync(join(CAPTURES, 'pptp.pcap'));
    const cut = join(dir, 'cut.pcap');
    writeFileSync(cut, whole.subarray(0, whole.length - 5));
    const { code, out, err } = await run('--json', '-i', `pcap:${cut}`, '-i', `pcap:@out=${there()}`);
    assert.equal(code, 1);
    const { directions, problems, type } = addsUp(lines(out).at(-1)!);
    assert.equal(type, 'summary');
    assert.equal(directions[0].forwarded, 22); // capinfos -c pptp.pcap: 23
    assert.match(problems[0], /cut\.pcap.*byte \d+/);
    assert.ok(err.includes(problems[0]));
  });

  it('a file that cannot grow: the frames in it are forwarded, all others are accounted for, the error is last', () => {
    const to = join(dir, 'limited.pcap');
    const words = [TOOL, '--json', 'sim:a@rate=1G,size=1004,count=100,clock=virtual', `pcap:@out=${to}`];
    // dash counts blocks of 512 bytes, bash of 1024: the file says how many frames of 16 + 1000 bytes it has.
    const { status, stdout, stderr } = spawnSync(
      'sh',
      ['-c', 'ulimit -f 20; exec "$@"', 'sh', process.execPath, ...words],
      {
        encoding: 'utf8',
      },
    );
    assert.equal(status, 1);
    const [summary, error] = lines(stdout).slice(-2);
    assert.deepEqual([summary.reason, error.type], ['failed', 'error']);
    assert.match(error.message, /limited\.pcap: cannot write: the file would grow beyond the allowed size.*ulimit -f/);
    assert.equal(stderr, `bridge: ${error.message}\n`);
    const [{ received, forwarded, bytes, notForwarded }] = addsUp(summary).directions;
    assert.equal(forwarded, Math.floor((readFileSync(to).length - 24) / 1016));
    assert.ok(forwarded > 0 && notForwarded['refused'] > 0);
    assert.deepEqual([received <= 100, bytes], [true, forwarded * 1000]);
    assert.equal(summary.ports[1].stats['framesWritten'], forwarded);
  });

  it('standard input and output carry captures, and all that is said goes to stderr', { skip: withoutTshark }, () => {
    const original = join(CAPTURES, 'afs.pcap');
    const theirs = frames(original);
    for (const [out, words] of [
      ['-', []],
      ['/dev/stdout', ['--json']],
      ['-,format=pcapng', ['-v']],
    ] as const) {
      const copy = join(dir, 'stdout.pcap');
      const piped = spawnSync(
        'sh',
        [
          '-c',
          'cat "$1" | "$0" "$2" $5 -i pcap:- -i "pcap:@out=$3" | cat >"$4"',
          process.execPath,
          original,
          TOOL,
          out,
          copy,
          ...words,
        ],
        { encoding: 'utf8' },
      );
      assert.equal(piped.stdout, '');
      assert.match(piped.stderr, words[0] === '--json' ? /"type":"summary"/ : /forwarding ran for /);
      assert.deepEqual(frames(copy), theirs, out);
    }
    // A file behind stdout is added to, not emptied.
    const added = join(dir, 'added');
    writeFileSync(added, 'before');
    execFileSync('sh', ['-c', '"$0" "$1" "pcap:$2" pcap:@out=- >>"$3"', process.execPath, TOOL, original, added], {
      stdio: 'pipe',
    });
    assert.equal(readFileSync(added).length, 6 + readFileSync(original).length);
  });

  it('a gzip capture into pcapng: the same frames, which tshark reads from both', { skip: withoutTshark }, async () => {
    const [packed, to] = [join(dir, 'in.pcap.gz'), join(dir, 'out.pcapng')];
    writeFileSync(packed, gzipSync(readFileSync(join(CAPTURES, 'afs.pcap'))));
    const { directions, reason } = await summary(`pcap:${packed}`, `pcap:@out=${to}`);
    assert.deepEqual([reason, directions[0].forwarded], ['ended', 601]);
    assert.deepEqual(frames(to), frames(packed));
    assert.match(execFileSync('capinfos', ['-t', to], { encoding: 'utf8' }), /- pcapng\n/);
  });

  it(
    '-c: frames captured short are left out, and those with more bytes than they had lose these',
    { skip: withoutTshark },
    async () => {
      const words = (...values: number[]): Buffer => Buffer.from(Uint32Array.from(values).buffer);
      const file = join(dir, 'odd.pcap');
      // Not zeros: of those tshark would make records of a variant of pcap.
      const records = [words(1, 2, 68, 1514), Buffer.alloc(68, 0xaa), words(3, 4, 801, 785), Buffer.alloc(801, 0xaa)];
      writeFileSync(file, Buffer.concat([words(0xa1b2c3d4, 0x40002, 0, 0, 65535, 1), ...records]));
      const lengths = (): number[][] =>
        execFileSync('tshark', ['-r', there(), '-T', 'fields', '-e', 'frame.cap_len', '-e', 'frame.len'], {
          encoding: 'utf8',
          stdio: ['ignore', 'pipe', 'ignore'],
        })
          .trim()
          .split('\n')
          .map((line) => line.split('\t').map(Number));
      const kept = await summary(`pcap:${file}`, `pcap:@out=${there()}`);
      assert.deepEqual(lengths(), [
        [68, 1514],
        [801, 785],
      ]);
      assert.deepEqual([kept.ports[0].stats['shortKept'], kept.ports[0].stats['excessKept']], [1, 1]);
      const copied = await summary('-c', `pcap:${file}`, `pcap:@out=${there()}`);
      assert.deepEqual(lengths(), [[785, 785]]);
      assert.deepEqual([copied.ports[0].stats['shortCaptured'], copied.ports[0].stats['excessCut']], [1, 1]);
    },
  );

  it('a file that is followed: what is appended is forwarded, until a signal', async () => {
    const file = join(dir, 'grows.pcap');
    const whole = readFileSync(join(CAPTURES, 'pptp.pcap'));
    writeFileSync(file, whole.subarray(0, 100));
    const child = start('--json', '--wait', 'poll', '-n', '23', `pcap:${file}@follow`, `pcap:@out=${there()}`);
    const result = finish(child);
    await opened(child);
    appendFileSync(file, whole.subarray(100));
    const { code, out, err } = await result;
    assert.deepEqual([code, lines(out).at(-1)?.reason, forwarded(lines(out).at(-1)!)], [0, 'frames', 23], err);
  });

  it('two files that are only read have nothing to say to each other', async () => {
    const file = `pcap:${join(CAPTURES, 'pptp.pcap')}`;
    const { code, err } = await run(file, `pcap:${join(CAPTURES, 'afs.pcap')}`);
    assert.match(err, /nothing can flow between /);
    assert.equal(code, 2);
  });
});

describe('bridge: FIFOs', { skip: skipWithout('mkfifo') }, () => {
  let dir = '';
  let fifos = 0;
  before(() => {
    dir = mkdtempSync(join(tmpdir(), 'bridge-test-'));
  });
  after(() => {
    rmSync(dir, { recursive: true });
  });
  const makeFifo = (): string => {
    const path = join(dir, `fifo${++fifos}`);
    execFileSync('mkfifo', [path]);
    return path;
  };
  const capture = join(CAPTURES, 'pptp.pcap');
  const FRAMES = 23; // capinfos -c pptp.pcap

  for (const wait of ['busy', 'poll'])
    for (const way of ['pcap:', 'pcap:@out='])
      it(`${way}FIFO that nobody else opens: the first signal stops it cleanly, --wait ${wait}`, async () => {
        const child = start('--json', '--wait', wait, `${way}${makeFifo()}`, 'sim:b@rate=100M');
        const result = finish(child);
        await opened(child);
        child.kill('SIGINT');
        const { code, out, err } = await result;
        assert.deepEqual([code, lines(out).at(-1)?.reason], [0, 'stopped'], err);
        const [flow] = addsUp(lines(out).at(-1)!).directions;
        assert.equal(flow.forwarded, 0); // what has come for it did not get out
      });

  it('opened late, by a writer and a reader: every frame comes through', async () => {
    const [from, to] = [makeFifo(), makeFifo()];
    const child = start('--json', `pcap:${from}`, `pcap:@out=${to}`);
    const result = finish(child);
    await opened(child);
    const copy = join(dir, 'copy.pcap');
    execFileSync('sh', ['-c', 'cat "$0" >"$1" & cat "$2" >"$3"', capture, from, to, copy]);
    const { code, out, err } = await result;
    assert.equal(code, 0, err);
    const plain = join(dir, 'plain.pcap');
    await summary(`pcap:${capture}`, `pcap:@out=${plain}`);
    assert.ok(readFileSync(copy).equals(readFileSync(plain)));
    const [{ received, forwarded }] = addsUp(lines(out).at(-1)!).directions;
    assert.deepEqual([received, forwarded], [FRAMES, FRAMES]);
    assert.equal(lines(out)[1].sentence, `waiting up to 4 s for the link of pcap:@out=${to}`);
  });

  it('what it brings is no capture: exit 1, and why', async () => {
    const from = makeFifo();
    const child = start('--json', `pcap:${from}`, 'sim:b@rate=100M');
    const result = finish(child);
    await opened(child);
    writeFileSync(from, 'hello, world\n');
    const { code, out } = await result;
    assert.equal(code, 1);
    const [ended, error] = lines(out).slice(-2);
    assert.deepEqual([ended.reason, error.type], ['failed', 'error']);
    assert.match(error.message, /neither pcap nor pcapng/);
  });

  it('standard input', { skip: existsSync('/dev/stdin') ? false : 'no /dev/stdin' }, () => {
    const { status, stdout, stderr } = spawnSync(
      'sh',
      [
        '-c',
        'cat "$1" | "$0" "$2" --json pcap:/dev/stdin sim:b@count=1,clock=virtual',
        process.execPath,
        capture,
        TOOL,
      ],
      { encoding: 'utf8' },
    );
    assert.equal(status, 0, stderr);
    assert.equal(addsUp(lines(stdout).at(-1)!).directions[0].forwarded, FRAMES);
  });

  it('a reader that does not read holds it up, not its end: forwarded is what the FIFO got', async () => {
    const to = makeFifo();
    const reader = openSync(to, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      const child = start('--json', 'sim:a@rate=1G,size=1004,clock=virtual', `pcap:@out=${to}`);
      const result = finish(child);
      const stalled = /has not moved for/;
      let err = '';
      await new Promise<void>((resolve) => {
        child.stdout.on('data', (text: string) => {
          err += text;
          if (stalled.test(err)) resolve();
        });
      });
      child.kill('SIGTERM');
      const { code, out } = await result;
      assert.equal(code, 0);
      const [{ forwarded, notForwarded }] = addsUp(lines(out).at(-1)!).directions;
      const got = readFileSync(reader).length;
      assert.equal(forwarded, Math.floor((got - 24) / (16 + 1000)));
      assert.ok(forwarded > 0 && notForwarded['unsent'] > 1023);
      assert.equal(lines(out).at(-1)!.ports[1].stats['framesWritten'], forwarded);
    } finally {
      closeSync(reader);
    }
  });
});

interface Seen {
  time: string;
  bytes: string;
}
const bytesOf = (frames: Seen[]): string[] => frames.map(({ bytes }) => bytes);

/** Frames as tshark sees them: time and, from its hex dump, bytes. */
function frames(path: string): Seen[] {
  const json = execFileSync('tshark', ['-n', '-r', path, '-T', 'json', '-x', '-J', 'frame'], {
    encoding: 'utf8',
    maxBuffer: 1 << 28,
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  const packets = JSON.parse(json) as {
    _source: { layers: { frame_raw: [string]; frame: Record<string, string> } };
  }[];
  return packets.map(({ _source: { layers } }) => ({
    time: layers.frame['frame.time_epoch'],
    bytes: layers.frame_raw[0],
  }));
}
