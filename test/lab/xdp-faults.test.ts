// Killed bridges, interfaces that go down, come up and disappear, all under traffic; and lone frames at an idle bridge.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Lab, skipWithoutLab, type Namespace } from './lab.js';
import { collect, ping, says } from './traffic.js';

const B = '10.9.0.2';
const tool = fileURLToPath(new URL('../../tools/bridge.js', import.meta.url));

describe('xdp: faults', { skip: skipWithoutLab('ethtool', 'ping') }, () => {
  let lab: Lab;
  let a: Namespace;
  let b: Namespace;
  let middle: Namespace;
  const children = new Set<ChildProcess>();

  before(() => {
    lab = new Lab();
    [a, b, middle] = [lab.namespace('a'), lab.namespace('b'), lab.namespace('m')];
    wire();
  });
  after(() => {
    for (const child of children) child.kill('SIGKILL');
    lab.close();
  });

  function wire(): void {
    lab.veth(a, { name: 'a0', addresses: ['10.9.0.1/24'] }, middle, { name: 'eth1' });
    lab.veth(b, { name: 'b0', addresses: [`${B}/24`] }, middle, { name: 'eth2' });
    a.offloads('a0', { tx: false });
    b.offloads('b0', { tx: false });
  }

  /** Standard output and error come as one, in the order in which they were written. */
  async function start(wait: 'busy' | 'poll' = 'busy', ...options: string[]) {
    const ports = ['eth1', 'eth2'].map((link) => `xdp:${link}@netns=${middle.name}`);
    const words = [tool, ...ports.flatMap((port) => ['-i', port]), '--wait', wait, ...options];
    const child = spawn('sh', ['-c', 'exec "$@" 2>&1', 'sh', process.execPath, ...words], {
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    children.add(child);
    const collected = collect(child);
    await says(child, /eth2 \(veth\): native XDP/);
    return { child, ...collected };
  }

  /** Traffic that does not end by itself and does not care whether it is answered. */
  function flood(): ChildProcess {
    return a.spawn('ping', ['-f', '-q', B], { stdio: 'ignore' });
  }

  async function answered(): Promise<void> {
    const { received } = await ping(a, B, { count: 1, deadline: 20 });
    assert.equal(received, 1);
  }

  for (const wait of ['busy', 'poll'] as const)
    it(`lone pings at an idle bridge are answered one by one, waiting by ${wait}`, async () => {
      const bridge = await start(wait);
      for (let i = 0; i < 5; i++) {
        await answered();
        await sleep(50);
      }
      bridge.child.kill('SIGTERM');
      assert.equal((await bridge.ended).status, 0);
    });

  it('killed with SIGKILL under traffic, it leaves nothing behind, and a new one starts at once', async () => {
    for (let round = 0; round < 3; round++) {
      const bridge = await start();
      await answered();
      const traffic = flood();
      for (const link of ['eth1', 'eth2']) {
        assert.equal(middle.xdpPrograms(link).length, 1);
        assert.equal(middle.promiscuity(link), 1);
      }
      bridge.child.kill('SIGKILL');
      await bridge.ended;
      for (const link of ['eth1', 'eth2']) {
        // The kernel detaches in its own time; the runner's limit ends a wait for what never comes.
        while (middle.xdpPrograms(link).length > 0 || middle.promiscuity(link) > 0) await sleep(5);
      }
      traffic.kill('SIGKILL');
    }
  });

  for (const wait of ['busy', 'poll'] as const)
    it(`an interface set down under traffic is reported, and the bridge goes on when it is up again (${wait})`, async () => {
      const bridge = await start(wait);
      await answered();
      const traffic = flood();
      for (const link of ['eth2', 'eth1']) {
        const down = says(bridge.child, new RegExp(`xdp:${link}.*the link is down`));
        middle.ip('link', 'set', link, 'down');
        await down;
        const up = says(bridge.child, new RegExp(`xdp:${link}.*the link is up again`));
        middle.ip('link', 'set', link, 'up');
        await up;
        await answered();
      }
      traffic.kill('SIGKILL');
      bridge.child.kill('SIGTERM');
      assert.equal((await bridge.ended).status, 0);
    });

  /** Frames that an interface of a namespace has received. */
  function receivedBy(ns: Namespace, link: string): number {
    const [{ stats64 }] = JSON.parse(ns.ip('-j', '-s', 'link', 'show', link)) as [
      { stats64: { rx: { packets: number } } },
    ];
    return stats64.rx.packets;
  }

  /** Deletes eth2 under a running bridge and flood; what the bridge wrote, and the frames that it sent to a0. */
  async function deleteUnderTraffic(wait: 'busy' | 'poll', ...options: string[]) {
    const before = receivedBy(a, 'a0');
    const bridge = await start(wait, ...options);
    await answered();
    const traffic = flood();
    const some = receivedBy(a, 'a0') + 1000;
    while (receivedBy(a, 'a0') < some) await sleep(5);
    middle.ip('link', 'del', 'eth2');
    const { stdout, status } = await bridge.ended;
    assert.equal(status, 1);
    assert.deepEqual(middle.xdpPrograms('eth1'), []);
    traffic.kill('SIGKILL');
    const arrived = receivedBy(a, 'a0') - before;
    middle.ip('link', 'del', 'eth1');
    wire();
    return { lines: stdout.trimEnd().split('\n'), arrived };
  }

  const gone = /xdp:eth2@\S+: the interface eth2 is gone/;

  it('an interface deleted under traffic ends the bridge: the counters, and the error last', async () => {
    const { lines, arrived } = await deleteUnderTraffic('busy');
    assert.match(lines.at(-1)!, gone);
    const counted = lines.map((line) => /^xdp:eth2→xdp:eth1: ([\d,]+) frames, .*; not forwarded: none$/.exec(line));
    const [back] = counted.filter((found) => found !== null);
    assert.equal(Number(back[1].replaceAll(',', '')), arrived);
  });

  for (const wait of ['busy', 'poll'] as const)
    it(`an interface deleted under an idle bridge ends it within a second: the summary, and the reason last (${wait})`, async () => {
      const bridge = await start(wait);
      await answered(); // it runs
      const said = says(bridge.child, gone);
      const deleted = performance.now();
      middle.ip('link', 'del', 'eth2');
      await said;
      assert.ok(performance.now() - deleted < 1000);
      const { stdout, status } = await bridge.ended;
      assert.equal(status, 1);
      const lines = stdout.trimEnd().split('\n');
      assert.match(lines.at(-1)!, gone);
      assert.equal(
        lines.filter((line) => /^xdp:eth\d→xdp:eth\d: [\d,]+ frames, .*; not forwarded: none$/.test(line)).length,
        2,
      );
      middle.ip('link', 'del', 'eth1');
      wire();
    });

  it('the same for programs', async () => {
    const { lines, arrived } = await deleteUnderTraffic('poll', '--json');
    interface Line {
      type: string;
      reason: string;
      message: string;
      code: string;
      directions: { received: number; forwarded: number; notForwarded: Record<string, number> }[];
    }
    // The sentence for people comes after it, on standard error.
    assert.match(lines.at(-1)!, gone);
    const [summary, error] = lines.slice(-3, -1).map((line) => JSON.parse(line) as Line);
    assert.deepEqual([summary.type, summary.reason, error.type, error.code], ['summary', 'failed', 'error', 'ENODEV']);
    assert.match(error.message, gone);
    for (const { received, forwarded, notForwarded } of summary.directions)
      assert.equal(
        received,
        Object.values(notForwarded).reduce((sum, frames) => sum + frames, forwarded),
      );
    const [there, back] = summary.directions;
    assert.deepEqual([back.forwarded, back.notForwarded], [arrived, {}]);
    assert.ok(there.received >= arrived); // every answer was asked for
  });
});
