// Queues added to an interface while the bridge runs: opened, said, and every frame on them arrives.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { after, afterEach, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { openPort } from '../../lib/ports/open.js';
import type { Port } from '../../lib/ports/port.js';
import { Lab, skipWithoutLab, type Namespace } from './lab.js';
import { Sink, Source } from './numbered.js';
import { collect, says } from './traffic.js';

const tool = fileURLToPath(new URL('../../tools/bridge.js', import.meta.url));
const FRAMES = 100;

describe('xdp: queues added under a running bridge', { skip: skipWithoutLab() }, () => {
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
    for (const link of ['eth1', 'eth2']) middle.ip('link', 'del', link);
  });
  after(() => {
    lab.close();
  });

  const queues = (ns: Namespace, link: string, n: number) => {
    ns.run('ethtool', '-L', link, 'rx', String(n), 'tx', String(n));
  };
  const open = (ns: Namespace, link: string): Port => {
    const port = openPort(`xdp:${link}@netns=${ns.name}`);
    ports.push(port);
    return port;
  };

  /** Sends numbered frames, one flow out of each queue, until all are there. */
  async function all(from: Port, to: Port): Promise<void> {
    const [source, sink] = [new Source(from, FRAMES, () => 60), new Sink(to, () => 60)];
    const flows = from.tx.length;
    while (sink.total < flows * FRAMES) {
      source.turn();
      sink.turn();
      await sleep(1);
    }
    assert.deepEqual(
      sink.received,
      Array.from({ length: flows }, () => FRAMES),
    );
    assert.deepEqual([sink.disordered, sink.corrupt], [0, 0]);
  }

  for (const wait of ['busy', 'poll'])
    it(`1 to 4 on one side, then on the other: 400 of 400 frames arrive, both ways (${wait})`, async () => {
      lab.veth(a, { name: 'a0' }, middle, { name: 'eth1' }, { queues: 4 });
      lab.veth(b, { name: 'b0' }, middle, { name: 'eth2' }, { queues: 4 });
      for (const [ns, link] of [
        [middle, 'eth1'],
        [a, 'a0'],
        [middle, 'eth2'],
        [b, 'b0'],
      ] as const)
        // prettier-ignore
        queues(ns, link, 1);
      const names = ['eth1', 'eth2'].map((link) => `xdp:${link}@netns=${middle.name}`);
      child = spawn(process.execPath, [tool, '--json', '--wait', wait, ...names], {
        stdio: ['ignore', 'pipe', 'pipe'],
      });
      const opened = says(child, /"type":"open"/);
      const { output, ended } = collect(child);
      await opened;
      const grow = async (link: string, far: Namespace, farLink: string): Promise<Port> => {
        const said = says(child!, new RegExp(`${link} has 4 rx queues now, 1 before: queues 1 to 3 open, and copied`));
        const changed = Date.now();
        queues(middle, link, 4);
        queues(far, farLink, 4);
        await said;
        assert.ok(Date.now() - changed < 2000, 'said within two seconds');
        return open(far, farLink);
      };
      const [near, far] = [await grow('eth1', a, 'a0'), open(b, 'b0')];
      await all(near, far);
      far.close();
      const wide = await grow('eth2', b, 'b0');
      await all(wide, near);
      child.kill('SIGINT');
      const { status } = await ended;
      assert.equal(status, 0, output.stderr);
      const summary = output.stdout.split('\n').find((line) => line.includes('"type":"summary"'))!;
      const { directions } = JSON.parse(summary) as {
        directions: { forwarded: number; balance: Record<string, number> }[];
      };
      const nothingElse = { notForwarded: 0, lostBefore: 0, waiting: 0, elsewhere: 0 };
      for (const { balance } of directions) assert.deepEqual(balance, { arrived: 400, forwarded: 400, ...nothingElse });
    });
});
