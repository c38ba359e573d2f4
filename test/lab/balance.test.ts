// What arrived = what was forwarded + what was not, by reason: the bridge's own figures against three of the kernel's.
import assert from 'node:assert/strict';
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openPort } from '../../lib/ports/open.js';
import type { Port } from '../../lib/ports/port.js';
import { Lab, skipWithoutLab, type Namespace } from './lab.js';
import { Source } from './numbered.js';
import { collect, says } from './traffic.js';

const tool = fileURLToPath(new URL('../../tools/bridge.js', import.meta.url));

type Balance = Record<'arrived' | 'forwarded' | 'notForwarded' | 'lostBefore' | 'waiting' | 'elsewhere', number>;

interface Direction {
  received: number;
  forwarded: number;
  notForwarded: Record<string, number>;
  lostAfter: number;
  balance: Balance;
}

interface Summary {
  directions: Direction[];
  ports: { stats: Record<string, number> }[];
}

/** The interface's counters that a port's statistics repeat, by their names in sysfs. */
const REPEATED = {
  interface_rx_missed: 'rx_missed_errors',
  interface_rx_dropped: 'rx_dropped',
  interface_rx_errors: 'rx_errors',
  interface_tx_dropped: 'tx_dropped',
  interface_tx_errors: 'tx_errors',
};

/** An interface's counters in sysfs; ip(8) must say the same. */
function counters(ns: Namespace, link: string): Record<string, number> {
  const files = ns.run('sh', '-c', `cd /sys/class/net/${link}/statistics && grep . *`);
  const sys = Object.fromEntries(
    files
      .trim()
      .split('\n')
      .map((line) => line.split(':'))
      .map(([name, value]) => [name, Number(value)]),
  );
  const [{ stats64 }] = JSON.parse(ns.ip('-j', '-s', '-s', 'link', 'show', link)) as [
    { stats64: Record<'rx' | 'tx', Record<string, number>> },
  ];
  for (const way of ['rx', 'tx'] as const)
    for (const counter of ['packets', 'dropped', 'errors'])
      assert.equal(stats64[way][counter], sys[`${way}_${counter}`], `${link} ${way} ${counter}`);
  return sys;
}

/** Frames that a veth's own XDP has seen, over its queues. */
function ethtoolXdp(ns: Namespace, link: string): number {
  const lines = ns.run('ethtool', '-S', link).matchAll(/rx_queue_\d+_xdp_packets: (\d+)/g);
  return sum([...lines].map(([, n]) => Number(n)));
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);

/** Frames on their way at once where none is to be lost: fewer than any fill ring has buffers, however late it is refilled. */
const WINDOW = 500;

/** Frames from one end of the lab to the other. */
class Way {
  readonly #source: Source;
  readonly #sink: Port;
  arrived = 0;

  /** @param window frames on their way at once, at most */
  constructor(
    from: Port,
    to: Port,
    frames: number,
    length: number,
    public window: number,
  ) {
    this.#source = new Source(from, frames, () => length);
    this.#sink = to;
  }

  turn(): void {
    const { sent } = this.#source;
    const room = this.window - (sum(sent) - this.arrived);
    this.#source.turn(Math.max(0, Math.floor(room / sent.length)));
    this.#sink.rxsync();
    for (const ring of this.#sink.rx) {
      this.arrived += ring.space;
      ring.advance(ring.space);
    }
  }

  get done(): boolean {
    return this.#source.done;
  }
}

/** The tool, and what it prints for programs. */
class Bridge {
  readonly child: ChildProcess;
  readonly #result: ReturnType<typeof collect>;

  constructor(words: readonly string[]) {
    const args = [tool, '--json', '--stats', '0.05', ...words];
    this.child = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    this.#result = collect(this.child);
  }

  #lines(type: string): Summary[] {
    const lines = this.#result.output.stdout.split('\n').slice(0, -1);
    return lines.map((line) => JSON.parse(line) as Summary & { type: string }).filter((line) => line.type === type);
  }

  /** Returns once its thread, which tells of every tenth of a second, has twice in a row received nothing. */
  async quiet(): Promise<void> {
    const before = this.#lines('stats').length;
    for (;;) {
      const last = this.#lines('stats').slice(before).slice(-2);
      const idle = last.every(({ directions }) => directions.every(({ received }) => received === 0));
      if (last.length === 2 && idle) return;
      await sleep(20);
    }
  }

  async summary(): Promise<Summary> {
    const { status, stderr } = await this.#result.ended;
    assert.equal(status, 0, stderr);
    return this.#lines('summary')[0];
  }
}

interface Situation {
  title: string;
  /** Options of the bridge's ports, and of the bridge. */
  ports?: string;
  bridge?: string[];
  /** Queues of the interfaces on a's side, and on b's. */
  queues?: [number, number];
  /** Of the interface that leads to b. */
  mtu?: number;
  /** One port alone is bridged, to itself. */
  loop?: boolean;
  /** Frames sent from a to b for each queue, and from b to a; bytes of each. */
  frames: number;
  back?: number;
  length?: number;
  /** Sent as fast as they can be, whatever is lost. */
  flood?: boolean;
  /** When the cable to b is pulled: before the first frame, and put back after the last; or in the midst of them. */
  pulled?: 'before' | 'midway';
  /** What must be seen of a→b, beside that all counters agree. */
  expect: (there: Direction, sent: number) => void;
}

const skip = skipWithoutLab('ethtool');

describe('the balance of a bridge adds up, by sysfs, ip -s -s link and ethtool -S', { skip }, () => {
  let lab: Lab;
  let a: Namespace;
  let b: Namespace;
  let middle: Namespace;
  const ports: Port[] = [];
  let child: ChildProcess | undefined;

  before(() => {
    lab = new Lab();
    [a, b, middle] = [lab.namespace('a'), lab.namespace('b'), lab.namespace('m')];
  });
  afterEach(() => {
    child?.kill('SIGKILL');
    for (const port of ports.splice(0)) port.close();
    for (const link of ['eth1', 'eth2']) spawnSync('ip', ['-n', middle.name, 'link', 'del', link], { stdio: 'ignore' });
  });
  after(() => {
    lab.close();
  });

  const start = (words: readonly string[]): Bridge => {
    const bridge = new Bridge(words);
    child = bridge.child;
    return bridge;
  };
  const open = (ns: Namespace, link: string): Port => {
    const port = openPort(`xdp:${link}@netns=${ns.name},slots=1024`);
    ports.push(port);
    return port;
  };

  /** Sends it all, and returns when nothing moves any more. */
  async function send(bridge: Bridge, { pulled, loop, ...plan }: Situation): Promise<void> {
    const [near, far] = [open(a, 'a0'), open(b, 'b0')];
    const { frames, back = 0, length = 60 } = plan;
    const window = plan.flood === true ? Infinity : WINDOW;
    const there = new Way(near, loop === true ? near : far, frames, length, window);
    const ways = loop === true ? [there] : [there, new Way(far, near, back, length, window)];
    const pull = async () => {
      const down = says(bridge.child, /the link is down/);
      b.ip('link', 'set', 'b0', 'down');
      await down;
    };
    const traffic = async (until: () => boolean) => {
      while (!until()) {
        for (let turn = 0; turn < 10; turn++) for (const way of ways) way.turn();
        await sleep(1);
      }
    };
    if (pulled === 'before') await pull();
    if (pulled === 'midway') {
      await traffic(() => there.arrived > frames / 10);
      await pull();
      there.window = Infinity;
    }
    await traffic(() => ways.every((way) => way.done));
    let quiet = false;
    void bridge.quiet().then(() => (quiet = true));
    await traffic(() => quiet);
    if (pulled !== 'before') return;
    b.ip('link', 'set', 'b0', 'up');
    await traffic(() => there.arrived === frames);
  }

  /** Holds every figure of the summary that the kernel has, too, against the kernel's. */
  function check({ directions, ports }: Summary, { ports: options = '', loop }: Situation): void {
    const links = loop === true ? ['eth1'] : ['eth1', 'eth2'];
    const kernel = links.map((link) => counters(middle, link));
    for (const [i, { stats }] of ports.entries())
      for (const [ours, theirs] of Object.entries(REPEATED)) assert.equal(stats[ours], kernel[i][theirs], ours);
    for (const [i, { balance, forwarded, received, notForwarded, lostAfter }] of directions.entries()) {
      const [from, to] = [kernel[i], kernel[loop === true ? 0 : 1 - i]];
      assert.equal(balance.arrived, from.rx_packets);
      const { lostBefore, waiting, elsewhere } = balance;
      assert.equal(balance.arrived, forwarded + balance.notForwarded + lostBefore + waiting + elsewhere);
      assert.equal(balance.forwarded, forwarded);
      assert.equal(balance.notForwarded, sum(Object.values(notForwarded)));
      assert.equal(received, forwarded + balance.notForwarded);
      assert.equal(lostAfter, to.tx_dropped + to.tx_errors);
      assert.equal(forwarded - lostAfter, to.tx_packets);
      if (options.includes('generic')) continue; // there veth and its counters know nothing of XDP
      assert.equal(balance.arrived, ethtoolXdp(middle, links[i]));
      assert.equal(from.rx_dropped, lostBefore + elsewhere);
    }
  }

  async function run(situation: Situation): Promise<void> {
    const { queues: [nearQueues, farQueues] = [1, 1], mtu = 1500, loop = false } = situation;
    lab.veth(a, { name: 'a0' }, middle, { name: 'eth1' }, { queues: nearQueues });
    lab.veth(b, { name: 'b0' }, middle, { name: 'eth2' }, { queues: farQueues, mtu });
    const names = (loop ? ['eth1'] : ['eth1', 'eth2']).map(
      (link) => `xdp:${link}@netns=${middle.name}${situation.ports ?? ''}`,
    );
    const bridge = start([...names, ...(loop ? ['-L'] : []), ...(situation.bridge ?? [])]);
    await says(bridge.child, /"type":"stats"/);
    await send(bridge, situation);
    bridge.child.kill('SIGINT');
    const summary = await bridge.summary();
    check(summary, situation);
    situation.expect(summary.directions[0], situation.frames * nearQueues);
  }

  const all = ({ balance, notForwarded, lostAfter }: Direction, sent: number): void => {
    const nothingElse = { notForwarded: 0, lostBefore: 0, waiting: 0, elsewhere: 0 };
    assert.deepEqual(balance, { arrived: sent, forwarded: sent, ...nothingElse });
    assert.deepEqual([notForwarded, lostAfter], [{}, 0]);
  };
  const overload = ({ balance }: Direction, sent: number): void => {
    assert.deepEqual([balance.arrived, balance.elsewhere, balance.waiting], [sent, 0, 0]);
    assert.ok(balance.lostBefore > 0);
  };
  const poll = { bridge: ['--wait', 'poll'] };
  const SITUATIONS: Situation[] = [
    { title: 'native, busy', ports: ',mode=native', frames: 5000, expect: all },
    { title: 'native, poll', ports: ',mode=native', ...poll, frames: 5000, expect: all },
    { title: 'generic, busy', ports: ',mode=generic', frames: 5000, expect: all },
    { title: 'generic, poll', ports: ',mode=generic', ...poll, frames: 5000, expect: all },
    { title: 'both ways', frames: 3000, back: 2000, expect: all },
    { title: 'looped back', loop: true, frames: 2000, expect: all },
    { title: 'two queues', queues: [2, 2], frames: 2000, expect: all },
    { title: 'two queues to one, both ways', queues: [2, 1], frames: 2000, back: 1000, expect: all },
    { title: 'overload, native', ports: ',slots=16,mode=native', frames: 50_000, flood: true, expect: overload },
    { title: 'overload, generic', ports: ',slots=16,mode=generic', frames: 50_000, flood: true, expect: overload },
    {
      title: 'one of two queues',
      queues: [2, 2],
      ports: ',queue=0',
      frames: 1000,
      flood: true,
      expect: ({ balance }) => {
        assert.deepEqual([balance.arrived, balance.elsewhere, balance.waiting], [2000, 1000, 0]);
      },
    },
    {
      title: 'longer than the MTU of the other side',
      mtu: 1000,
      frames: 1000,
      length: 1400,
      flood: true,
      expect: ({ balance, notForwarded }) => {
        assert.deepEqual([balance.arrived, balance.forwarded, balance.elsewhere], [1000, 0, 0]);
        assert.deepEqual(notForwarded, { refused: 1000 - balance.lostBefore });
      },
    },
    { title: 'a cable that is out, and put back', pulled: 'before', frames: 500, expect: all },
    {
      title: 'a cable that is pulled under traffic',
      ports: ',slots=1024',
      pulled: 'midway',
      frames: 20_000,
      expect: ({ balance, notForwarded }) => {
        assert.deepEqual([balance.arrived, balance.elsewhere], [20_000, 0]);
        assert.deepEqual(notForwarded, { unsent: 1023 }); // a full tx ring; others wait before it, or found no buffer
        assert.ok(balance.waiting > 0);
      },
    },
  ];
  for (const situation of SITUATIONS) it(situation.title, () => run(situation));

  it('runts out of a capture', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'balance-'));
    try {
      const file = join(folder, 'in.pcap');
      writeFileSync(file, capture([10, 13, 14, 60]));
      lab.veth(b, { name: 'b0' }, middle, { name: 'eth2' });
      const [there, back] = (await start([`pcap:${file}`, `xdp:eth2@netns=${middle.name}`]).summary()).directions;
      const { tx_packets, tx_dropped, tx_errors } = counters(middle, 'eth2');
      assert.deepEqual([there.received, there.forwarded, there.notForwarded], [4, 2, { refused: 2 }]);
      assert.deepEqual([there.balance, there.lostAfter], [undefined, 0], 'nobody counts what a file brings');
      assert.deepEqual([tx_packets, tx_dropped, tx_errors], [2, 0, 0]);
      assert.equal(back, undefined, 'nothing can be sent to a file that is read');
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

/** A capture file of frames of these lengths. */
function capture(lengths: readonly number[]): Buffer {
  const words = (...numbers: number[]) => Buffer.from(Uint32Array.from(numbers).buffer);
  const records = lengths.map((length) => Buffer.concat([words(0, 0, length, length), Buffer.alloc(length, 0xff)]));
  return Buffer.concat([words(0xa1b2c3d4, 0x00040002, 0, 0, 65535, 1), ...records]);
}
