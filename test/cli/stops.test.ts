/**
 * Stops at random moments, from before the ports are open until far into a run: each ends soon, with its result, and leaves
 * nothing behind. NETMAP_STOPS says how many (default 40), NETMAP_STOPS_SEED which.
 */
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import {
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { readResults } from '../../lib/measure/results/results.js';
import { randomStream } from '../../lib/stats/random.js';

const STOPS = Number(process.env.NETMAP_STOPS ?? 40);
const SEED = Number(process.env.NETMAP_STOPS_SEED ?? Date.now() % 1e9);
/** At once: most of a run is waiting. */
const LANES = 5;
/** From the wish to the end, ms; frames in the rings have a second to leave, and the machine may be busy. */
const SOON_MS = 15_000;

const folder = mkdtempSync(join(tmpdir(), 'stops-'));
const tag = `stops-${process.pid}-`;
const children = new Set<ChildProcess>();
after(() => {
  for (const child of children) child.kill('SIGKILL');
  rmSync(folder, { recursive: true });
});

type Kind = 'INT' | 'TERM' | 'HUP' | 'INT twice' | 'timeout' | 'npx' | 'closed pipe';
const KINDS: readonly Kind[] = ['INT', 'TERM', 'HUP', 'INT twice', 'timeout', 'npx', 'closed pipe'];

/** How a run is started, and what must be there when it was stopped. */
interface Case {
  tool: 'bridge' | 'pkt-gen' | 'measure';
  args: string[];
  /** Of what it said, in all. */
  result: RegExp;
  /** The exit code; by the signal that was the wish. Default 0. */
  code?: (signal: NodeJS.Signals) => number;
  /** What else shows what happened. */
  check?: (said: string) => void;
}

/** 60 bytes a frame behind a record's 16, after a file's 24 (libpcap's format). */
const framesIn = (file: string): number => (statSync(file).size - 24) / 76;

const summaryOf = (said: string): Record<string, unknown> =>
  JSON.parse(/^\{"type":"summary".*$/m.exec(said)![0]) as Record<string, unknown>;

const SLOW = ['-i', 'sim:a@rate=100M', '-i', 'sim:b@rate=100M', '--wait', 'poll'];
const MEASURE = [...SLOW, '--size', '64,128', '--seconds', '30'];
/** Cells by the wish: none is done in 30 s. */
const INTERRUPTED = /^interrupted: 0 of 2 sizes done$/m;

const CASES: readonly ((n: number) => Case)[] = [
  () => ({ tool: 'bridge', args: [...SLOW, '--stats', '0.1'], result: /^forwarding (ran for|ended as)/m }),
  () => ({
    tool: 'bridge',
    args: [...SLOW, '--json', '--stats', '0.05'],
    result: /^\{"type":"summary","reason":"stopped"/m,
  }),
  (n) => {
    const file = join(folder, `${n}.pcap`);
    return {
      tool: 'bridge',
      args: ['--json', '--wait', 'poll', '-i', 'sim:a@rate=1M', '-i', `pcap:@out=${file}`],
      result: /^\{"type":"summary","reason":"stopped"/m,
      // What it says it forwarded is what is in the file.
      check: (said) => {
        const { directions } = summaryOf(said) as { directions: { forwarded: number }[] };
        assert.equal(directions[0].forwarded, framesIn(file));
      },
    };
  },
  (n) => ({
    tool: 'bridge',
    args: ['--wait', 'poll', '-i', `pipe:${tag}${n}{1`, '-i', 'sim:b@load=0'],
    result: /^forwarding (ran for|ended as)/m,
  }),
  (n) => {
    const file = join(folder, `${n}.pcap`);
    return {
      tool: 'pkt-gen',
      args: ['--json', '-i', `pcap:@out=${file}`, '-f', 'tx', '-R', '1000'],
      result: /^\{"type":"summary","reason":"stopped"/m,
      check: (said) => {
        assert.equal((summaryOf(said) as { sent: { frames: number } }).sent.frames, framesIn(file));
      },
    };
  },
  (n) => ({
    tool: 'pkt-gen',
    args: ['-i', `pipe:${tag}${n}{1`, '-f', 'rx', '--wait', 'poll'],
    result: /^ran for [^]*^received 0 frames/m,
  }),
  (n) => {
    const file = join(folder, `${n}.jsonl`);
    return {
      tool: 'pkt-gen',
      args: ['-i', 'sim:a@rate=100M', '-f', 'rx', '--wait', 'poll', '--out', file, '-T', '100'],
      result: /^ran for [^]*^received /m,
      check: () => {
        assert.equal(readResults(file).lines.length, 1);
      },
    };
  },
  () => ({ tool: 'measure', args: MEASURE, result: INTERRUPTED }),
  (n) => {
    const file = join(folder, `${n}.jsonl`);
    return {
      tool: 'measure',
      args: [...MEASURE, '--csv', '--out', file],
      result: INTERRUPTED,
      // A trial that had begun is in the file as far as it came.
      check: () => {
        for (const { result } of readResults(file).lines) assert.match(result.note!, /^interrupted after /);
      },
    };
  },
  () => ({ tool: 'measure', args: ['throughput', ...MEASURE], result: INTERRUPTED }),
  () => ({ tool: 'measure', args: ['latency', ...MEASURE, '--of', 'line'], result: INTERRUPTED }),
  () => ({ tool: 'measure', args: ['loss', ...MEASURE], result: INTERRUPTED }),
  () => ({ tool: 'measure', args: ['burst', ...MEASURE], result: INTERRUPTED }),
  (n) => ({
    tool: 'measure',
    args: [
      'loss',
      '--tx',
      `pipe:${tag}${n}{1`,
      '--rx',
      `pipe:${tag}${n}}1`,
      '--rate',
      '10M',
      '--wait',
      'poll',
      '--seconds',
      '30',
      '--size',
      '64,128',
    ],
    result: /^interrupted(: 0 of 2 sizes done| before anything was measured)$/m,
  }),
  (n) => {
    const file = join(folder, `${n}.json`);
    const [a, b] = [SLOW[1], SLOW[3]];
    writeFileSync(
      file,
      JSON.stringify({
        name: 'stops',
        ports: [a, b],
        seconds: 30,
        axes: { burst: [16, 64] },
        cell: { trial: { wait: 'poll' } },
      }),
    );
    return {
      tool: 'measure',
      args: ['matrix', file],
      result: /^interrupted: 0 of 2 runs done; every setting is back as it was/m,
      code: (signal) => 128 + constants.signals[signal],
      check: () => {
        assert.deepEqual(
          readdirSync(folder).filter((name) => name.startsWith(`${n}.json.results`) && !name.endsWith('.jsonl')),
          [],
        );
      },
    };
  },
];

interface Wish {
  n: number;
  kind: Kind;
  what: Case;
  /** ms after it hears signals. */
  after: number;
}

/** The process that hears: the only child of `timeout`, or the one that was started. */
function hearing(pid: number, kind: Kind): number | undefined {
  const heard = kind === 'timeout' ? Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim()) : pid;
  // Between fork and exec it is still a copy of timeout, with its signals.
  if (heard === 0 || readlinkSync(`/proc/${heard}/exe`) !== realpathSync(process.execPath)) return undefined;
  const caught = BigInt(`0x${/SigCgt:\s+(\w+)/.exec(readFileSync(`/proc/${heard}/status`, 'utf8'))![1]}`);
  // Node.js itself handles SIGINT and SIGTERM, but not SIGHUP.
  return (caught & 1n) === 0n ? undefined : heard;
}

/** Wishes it to stop. Returns the signal that it was. */
async function wish(child: ChildProcess, kind: Kind): Promise<NodeJS.Signals> {
  const { pid } = child as { pid: number };
  switch (kind) {
    case 'INT':
    case 'TERM':
    case 'HUP':
      child.kill(`SIG${kind}`);
      return `SIG${kind}`;
    case 'INT twice':
      child.kill('SIGINT');
      child.kill('SIGINT');
      return 'SIGINT';
    case 'timeout': // passes it on to its child, and then to its group
      child.kill('SIGTERM');
      return 'SIGTERM';
    case 'npx': // the terminal signals the group, and npx passes its own on
      process.kill(-pid, 'SIGINT');
      await sleep(5);
      child.kill('SIGINT');
      return 'SIGINT';
    case 'closed pipe':
      child.stdout!.destroy();
      await sleep(100);
      child.kill('SIGTERM');
      return 'SIGTERM';
  }
}

/** Starts it, wishes it to stop, and holds what it says against what it must say. Returns the ms that it took to end. */
async function stopped({ n, kind, what, after: ms }: Wish): Promise<number> {
  const { tool, args, result, code = () => 0, check } = what;
  const words = [process.execPath, fileURLToPath(new URL(`../../tools/${tool}.js`, import.meta.url)), ...args];
  if (kind === 'timeout') words.unshift('timeout', '300');
  const child = spawn(words[0], words.slice(1), { detached: true, stdio: ['ignore', 'pipe', 'pipe'] });
  children.add(child);
  let said = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => (said += text));
  const ended = once(child, 'close') as Promise<[number | null, NodeJS.Signals | null]>;
  while (hearing(child.pid!, kind) === undefined) await sleep(2);
  await sleep(ms);
  const began = performance.now();
  const signal = await wish(child, kind);
  const [status, killed] = (await Promise.race([ended, sleep(SOON_MS, ['late', null] as const, { ref: false })])) as [
    unknown,
    unknown,
  ];
  const took = performance.now() - began;
  const early = said.includes(`stopped by ${signal} before it began`);
  const whole = early || result.test(said);
  const expected = early ? 0 : code(signal);
  assert.ok(
    status === expected && killed === null && whole,
    `stop ${n}: ${kind} after ${ms} ms: ${tool} ${args.join(' ')}\nended with ${String(status)}, ${String(killed)}, in ${took.toFixed()} ms:\n${said}`,
  );
  if (!early) check?.(said);
  children.delete(child);
  assert.throws(() => process.kill(-child.pid!, 0), { code: 'ESRCH' }, `stop ${n} left a process`);
  return took;
}

describe('stops at random moments', { skip: process.platform === 'linux' ? false : 'needs /proc' }, () => {
  it(`${STOPS} stops end soon, with a result, and leave nothing behind`, async (t) => {
    t.diagnostic(`NETMAP_STOPS=${STOPS} NETMAP_STOPS_SEED=${SEED}`);
    const random = randomStream(SEED);
    const below = (n: number): number => Math.floor(random() * n);
    // All of them equally often, in pairs that differ from seed to seed.
    const shift = below(KINDS.length);
    const wishes = Array.from({ length: STOPS }, (_, n): Wish => {
      const round = Math.floor(n / CASES.length);
      const kind = KINDS[(n + round + shift) % KINDS.length];
      return { n, kind, what: CASES[n % CASES.length](n), after: below(random() < 0.4 ? 300 : 1800) };
    });
    const took: number[] = [];
    await Promise.all(
      Array.from({ length: LANES }, async () => {
        for (let next = wishes.shift(); next !== undefined; next = wishes.shift()) took.push(await stopped(next));
      }),
    ).catch((error: unknown) => {
      wishes.length = 0; // the others start no more
      throw error;
    });
    t.diagnostic(`longest ${Math.max(...took).toFixed()} ms`);
    assert.equal(took.length, STOPS);
    assert.deepEqual(
      readdirSync('/dev/shm').filter((name) => name.includes(tag)),
      [],
    );
  });
});
