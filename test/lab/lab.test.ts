// The lab itself: what it makes is there, and nothing outlives its process.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { after, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { Lab, run, skipWithoutLab } from './lab.js';
import { Capture, iperf3, ping, says, tcpreplay } from './traffic.js';

const ours = (pid: number) => readdirSync('/run/netns').filter((name) => name.startsWith(`nmb${pid}-`));

describe('lab', { skip: skipWithoutLab('ethtool', 'ping', 'iperf3', 'tcpdump', 'tcpreplay') }, () => {
  const lab = new Lab();
  after(() => {
    lab.close();
  });
  const a = lab.namespace('a');
  const b = lab.namespace('b');
  lab.veth(
    a,
    { name: 'left', addresses: ['10.9.0.1/24'] },
    b,
    { name: 'right', addresses: ['10.9.0.2/24'] },
    {
      queues: 2,
      mtu: 4000,
      offloads: { tx: false },
    },
  );

  it('makes what was asked: queues, MTU, addresses, offloads', () => {
    assert.match(a.run('ethtool', '-l', 'left'), /Current hardware settings:\s+RX:\s+2\s+TX:\s+2/);
    assert.match(b.run('ethtool', '-k', 'right'), /tx-checksumming: off/);
    assert.match(b.ip('link', 'show', 'right'), /mtu 4000/);
  });

  it('carries traffic that the helpers count', async () => {
    const file = `${tmpdir()}/nmb-lab-${process.pid}.pcap`;
    const capture = await Capture.start(b, 'right', file, { filter: 'icmp' });
    assert.deepEqual(await ping(a, '10.9.0.2', { count: 5, flood: true }), { sent: 5, received: 5, duplicates: 0 });
    assert.equal(await capture.stop(), 5);
    assert.equal(await tcpreplay(a, 'left', file), 5);
    run('rm', file);
    const report = await iperf3(a, b, '10.9.0.2', { seconds: 1 });
    assert.ok(report.bitsPerSecond > 0);
    assert.deepEqual(await ping(a, '10.9.0.77', { count: 1, deadline: 1 }).then((r) => r.received), 0);
  });

  it('leaves nothing behind when its process is killed', async () => {
    const program = `
      import { Lab } from ${JSON.stringify(new URL('./lab.js', import.meta.url).href)};
      const lab = new Lab();
      const ns = lab.namespace('doomed');
      ns.spawn('sleep', ['1000']);
      lab.veth(ns, { name: 'x' }, ns, { name: 'y' });
      console.log('built'); setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await says(child, /built/);
    assert.ok(child.pid !== undefined);
    assert.equal(ours(child.pid).length, 1);
    child.kill('SIGKILL');
    while (ours(child.pid).length > 0) await sleep(20); // the test runner's own limit ends a watcher that never cleans
  });

  it('sweeps what a dead process left', () => {
    const gone = run('sh', '-c', 'echo $$').trim();
    run('ip', 'netns', 'add', `nmb${gone}-0-left`);
    new Lab().close();
    assert.equal(existsSync(`/run/netns/nmb${gone}-0-left`), false);
  });
});
