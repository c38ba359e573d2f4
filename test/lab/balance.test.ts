// What arrived = what was forwarded + what was not, by reason: the bridge's own figures against three of the kernel's.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openPort } from '../../lib/ports/open.js';
import { Lab, skipWithoutLab, type Namespace } from './lab.js';
import { Source } from './numbered.js';
import { collect, says } from './traffic.js';

const tool = fileURLToPath(new URL('../../tools/bridge.js', import.meta.url));

interface Direction {
  received: number;
  forwarded: number;
  notForwarded: Record<string, number>;
  lostAfter: number;
  balance: Record<'arrived' | 'forwarded' | 'notForwarded' | 'lostBefore' | 'waiting' | 'elsewhere', number>;
}

interface Situation {
  title: string;
  /** Options of the bridge's ports, and of the bridge. */
  ports?: string;
  bridge?: string[];
  queues?: number;
  /** Frames sent from a to b for each queue, and from b to a; bytes of each. */
  frames: number;
  back?: number;
  length?: number;
  /** Done once the bridge runs. */
  change?: (net: { middle: Namespace; b: Namespace }) => void;
  /** What must be seen of a→b, beside that all counters agree. */
  expect: (there: Direction, sent: number) => void;
}

/** rx and tx frames and drops of an interface, by sysfs, which ip(8) and, of a veth's XDP, ethtool(8) must confirm. */
function counters(ns: Namespace, link: string) {
  const sys = (name: string) => Number(ns.run('cat', `/sys/class/net/${link}/statistics/${name}`));
  const [{ stats64 }] = JSON.parse(ns.ip('-j', '-s', '-s', 'link', 'show', link)) as [
    { stats64: Record<'rx' | 'tx', { packets: number; dropped: number; errors: number }> },
  ];
  const all = {
    rx: sys('rx_packets'),
    tx: sys('tx_packets'),
    rxDropped: sys('rx_dropped'),
    txLost: sys('tx_dropped') + sys('tx_errors'),
  };
  const { rx, tx } = stats64;
  assert.deepEqual(all, { rx: rx.packets, tx: tx.packets, rxDropped: rx.dropped, txLost: tx.dropped + tx.errors });
  return all;
}

const sum = (numbers: readonly number[]): number => numbers.reduce((total, n) => total + n, 0);

/** Frames on their way at once where none is to be lost: fewer than the bridge has slots for. */
const WINDOW = 500;

/** Frames that a veth's own XDP has seen, over its queues. */
function ethtoolXdp(ns: Namespace, link: string): number {
  const lines = ns.run('ethtool', '-S', link).matchAll(/rx_queue_\d+_xdp_packets: (\d+)/g);
  return [...lines].reduce((sum, [, n]) => sum + Number(n), 0);
}

async function run(situation: Situation): Promise<void> {
  const lab = new Lab();
  try {
    const [a, b, middle] = [lab.namespace('a'), lab.namespace('b'), lab.namespace('m')];
    const queues = situation.queues ?? 1;
    lab.veth(a, { name: 'a0' }, middle, { name: 'eth1' }, { queues });
    lab.veth(b, { name: 'b0' }, middle, { name: 'eth2' }, { queues });
    const names = ['eth1', 'eth2'].map((link) => `xdp:${link}@netns=${middle.name}${situation.ports ?? ''}`);
    const words = [tool, '--json', ...names.flatMap((name) => ['-i', name]), ...(situation.bridge ?? [])];
    const child = spawn(process.execPath, words, { stdio: ['ignore', 'pipe', 'pipe'] });
    const opened = says(child, /"type":"open"/);
    const { output, ended } = collect(child);
    await opened;
    const [source, other] = [
      openPort(`xdp:a0@netns=${a.name},slots=256`),
      openPort(`xdp:b0@netns=${b.name},slots=256`),
    ];
    situation.change?.({ middle, b });
    if (situation.change !== undefined) await sleep(1200); // what changes is noticed within a second
    const ways = [
      new Source(source, situation.frames, () => situation.length ?? 60),
      new Source(other, situation.back ?? 0, () => situation.length ?? 60),
    ];
    const paced = situation.expect === all;
    const arrived = [0, 0];
    const state = () => JSON.stringify(['eth1', 'eth2'].map((link) => counters(middle, link)));
    for (let before = ''; ;) {
      for (let turn = 0; turn < 200; turn++) {
        for (const [i, way] of ways.entries()) if (!paced || sum(way.sent) - arrived[i] < WINDOW) way.turn();
        for (const [i, port] of [other, source].entries()) {
          port.rxsync();
          for (const ring of port.rx) {
            arrived[i] += ring.space;
            ring.advance(ring.space);
          }
        }
        if (turn % 20 === 0) await sleep(1);
      }
      const now = state();
      if (now === before && ways.every((way) => way.sent.every((n) => n === way.frames))) break;
      before = now;
    }
    child.kill('SIGINT');
    await ended;
    const line = output.stdout.split('\n').find((text) => text.includes('"type":"summary"'));
    assert.ok(line !== undefined, output.stderr);
    const { directions } = JSON.parse(line) as { directions: Direction[] };
    for (const [i, direction] of directions.entries()) {
      const [from, to] = i === 0 ? ['eth1', 'eth2'] : ['eth2', 'eth1'];
      const [arrival, departure] = [counters(middle, from), counters(middle, to)];
      const { balance, forwarded, lostAfter } = direction;
      assert.equal(balance.arrived, arrival.rx, JSON.stringify(direction));
      assert.equal(forwarded, balance.forwarded);
      assert.equal(
        balance.arrived,
        balance.forwarded + balance.notForwarded + balance.lostBefore + balance.waiting + balance.elsewhere,
      );
      assert.equal(lostAfter, departure.txLost);
      assert.equal(forwarded - lostAfter, departure.tx);
      if (situation.ports?.includes('generic') !== true) {
        assert.equal(balance.arrived, ethtoolXdp(middle, from));
        assert.equal(balance.lostBefore, arrival.rxDropped);
      }
    }
    situation.expect(directions[0], situation.frames * queues);
  } finally {
    lab.close();
  }
}

const all = ({ balance, notForwarded }: Direction, sent: number): void => {
  assert.deepEqual(balance, {
    arrived: sent,
    forwarded: sent,
    notForwarded: 0,
    lostBefore: 0,
    waiting: 0,
    elsewhere: 0,
  });
  assert.deepEqual(notForwarded, {});
};
const SITUATIONS: Situation[] = [
  { title: 'native, busy', ports: ',mode=native', frames: 5000, expect: all },
  { title: 'native, poll', ports: ',mode=native', bridge: ['--wait', 'poll'], frames: 5000, expect: all },
  { title: 'generic, busy', ports: ',mode=generic', frames: 5000, expect: all },
  { title: 'generic, poll', ports: ',mode=generic', bridge: ['--wait', 'poll'], frames: 5000, expect: all },
  { title: 'both ways', frames: 3000, back: 2000, expect: all },
];

describe('the balance of a bridge adds up, by sysfs, ip -s -s link and ethtool -S', { skip: skipWithoutLab() }, () => {
  for (const situation of SITUATIONS) it(situation.title, () => run(situation));
});
