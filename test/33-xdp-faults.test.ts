// Killed bridges, interfaces that go down, come up and disappear, all under traffic; and lone frames at an idle bridge.
import assert from 'node:assert/strict';
import { spawn, type ChildProcess } from 'node:child_process';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Lab, skipWithoutLab, type Namespace } from './lab/lab.js';
import { collect, ping, says } from './lab/traffic.js';

const B = '10.9.0.2';
const tool = fileURLToPath(new URL('../tools/bridge.js', import.meta.url));

describe('xdp: faults', { skip: skipWithoutLab() }, () => {
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

  async function start(wait: 'busy' | 'poll' = 'busy') {
    const ports = ['eth1', 'eth2'].map((link) => `xdp:${link}@netns=${middle.name}`);
    const child = spawn(process.execPath, [tool, ...ports.flatMap((port) => ['-i', port]), '--wait', wait], {
      stdio: ['ignore', 'pipe', 'pipe'],
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

  for (const wait of ['busy', 'poll'] as const)
    it(`an interface deleted under traffic ends the bridge with a clear error (${wait})`, async () => {
      const bridge = await start(wait);
      await answered();
      const traffic = flood();
      middle.ip('link', 'del', 'eth2');
      const { stderr, status } = await bridge.ended;
      assert.match(stderr, /xdp:eth2@\S+: the interface eth2 is gone/);
      assert.equal(status, 1);
      assert.deepEqual(middle.xdpPrograms('eth1'), []);
      traffic.kill('SIGKILL');
      middle.ip('link', 'del', 'eth1');
      wire();
    });
});
