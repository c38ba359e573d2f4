// The shim's view of interfaces, held against what ip(8), ethtool(8) and /sys say.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, readlinkSync } from 'node:fs';
import { constants } from 'node:os';
import { after, describe, it } from 'node:test';
import { Worker } from 'node:worker_threads';
import { native } from '../../lib/shim/native.js';
import { LOOK, LOOK_LENGTH } from '../../lib/shim/native-netdev.js';
import { Lab, skipWithoutLab } from '../lab/lab.js';

const { ENODEV, ENOENT } = constants.errno;
const nativeUrl = new URL('../../lib/shim/native.js', import.meta.url).href;
const here = () => readlinkSync('/proc/thread-self/ns/net');

describe(
  'interfaces of this machine',
  { skip: process.platform !== 'linux' && 'the expected values are of Linux' },
  () => {
    it('loopback is what /sys says', () => {
      const sys = (file: string) => readFileSync(`/sys/class/net/lo/${file}`, 'utf8').trim();
      const flags = Number(sys('flags'));
      const info = native.netdevInfo('lo', '');
      assert.equal(info.index, Number(sys('ifindex')));
      assert.equal(info.mtu, Number(sys('mtu')));
      assert.equal(info.mac, '00:00:00:00:00:00');
      assert.equal(info.flags.up, (flags & 1) !== 0);
      assert.equal(info.link, native.netdevLink('lo', '') ? 'up' : 'down');
      assert.deepEqual([info.linkType, info.ethernet, info.loopback], [Number(sys('type')), true, true]);
      assert.deepEqual([info.rings, info.coalesce, info.busInfo, info.speed], [null, null, null, null]);
    });

    it('names what fails, and on which interface', () => {
      const missing = { code: 'ENODEV', errno: ENODEV, port: 'nmb-none' };
      assert.throws(() => native.netdevInfo('nmb-none', ''), { ...missing, syscall: 'SIOCGIFINDEX' });
      assert.throws(() => native.netdevLink('nmb-none', ''), { ...missing, syscall: 'SIOCGIFFLAGS' });
      assert.throws(() => native.netdevMac('nmb-none', ''), { ...missing, syscall: 'SIOCGIFHWADDR' });
      assert.throws(() => native.netdevInfo('a-name-of-16-chr', ''), { code: 'ENAMETOOLONG' });
      assert.throws(() => native.netdevInfo('lo', 'nmb-none'), { code: 'ENOENT', errno: ENOENT, syscall: 'setns' });
      for (const path of ['../netns/x', '/proc/self/ns/net', '.', '..'])
        assert.throws(() => native.netdevInfo('lo', path), { code: 'EINVAL', syscall: 'setns' });
      assert.throws(() => native.netdevInfo('lo', 1 as unknown as string), { name: 'TypeError', code: 'EINVAL' });
    });
  },
);

describe('interfaces in namespaces', { skip: skipWithoutLab('ethtool') }, () => {
  const lab = new Lab();
  after(() => {
    lab.close();
  });
  const a = lab.namespace('a');
  const b = lab.namespace('b');
  const mac = '02:00:00:00:0a:01';
  lab.veth(a, { name: 'left', mac }, b, { name: 'right' }, { mtu: 4000, queues: 2, offloads: { gro: true } });

  it('tells all of a veth', () => {
    const shown = JSON.parse(a.ip('-j', 'link', 'show', 'left')) as [{ ifindex: number }];
    assert.deepEqual(native.netdevInfo('left', a.name), {
      index: shown[0].ifindex,
      mtu: 4000,
      flags: { up: true, running: true, promisc: false },
      link: 'up',
      ethernet: true,
      loopback: false,
      linkType: 1, // ARPHRD_ETHER
      kind: 'veth',
      address: null,
      master: null,
      mac,
      driver: 'veth',
      busInfo: null,
      speed: 10_000,
      rxQueues: 2,
      txQueues: 2,
      rings: null,
      coalesce: null,
      offloads: {
        ...{ rxChecksum: true, txChecksum: true, tso: true, gso: true, gro: true },
        ...{ lro: false, rxVlan: true, txVlan: true },
      },
    });
    assert.equal(native.netdevMac('left', a.name), mac);
  });

  it('tells what it is a member of, and the address the host has on it', () => {
    a.ip('link', 'add', 'br0', 'type', 'bridge');
    a.ip('link', 'set', 'left', 'master', 'br0');
    assert.deepEqual(native.netdevInfo('left', a.name).master, { name: 'br0', kind: 'bridge' });
    a.ip('link', 'del', 'br0');
    assert.equal(native.netdevInfo('left', a.name).master, null);
    a.ip('addr', 'add', '10.1.2.3/24', 'dev', 'left');
    assert.equal(native.netdevInfo('left', a.name).address, '10.1.2.3');
    a.ip('addr', 'del', '10.1.2.3/24', 'dev', 'left');
    assert.equal(native.netdevInfo('left', a.name).address, null);
  });

  it('what changes while a port is open: queues, MTU and the counters that ip -s shows', () => {
    const look = new Float64Array(LOOK_LENGTH);
    native.netdevLook('left', a.name, look);
    const [{ stats64 }] = JSON.parse(a.ip('-j', '-s', 'link', 'show', 'left')) as [
      { stats64: Record<'rx' | 'tx', { packets: number; errors: number; dropped: number }> },
    ];
    assert.deepEqual(
      [...look],
      [1, 4000, 2, 2, stats64.rx.packets, stats64.tx.packets, stats64.rx.errors, stats64.tx.errors, 0, 0, 0],
    );
    a.run('ethtool', '-L', 'left', 'rx', '1', 'tx', '1');
    native.netdevLook('left', a.name, look);
    assert.deepEqual([look[LOOK.rxQueues], look[LOOK.txQueues]], [1, 1]);
    a.run('ethtool', '-L', 'left', 'rx', '2', 'tx', '2');
    assert.throws(
      () => {
        native.netdevLook('none', a.name, look);
      },
      { code: 'ENODEV', port: 'none' },
    );
  });

  it('whether it runs, asked again and again without a lock', () => {
    const handle = native.netdevOpen('left', a.name);
    assert.equal(native.netdevRunning(handle), 1);
    a.ip('link', 'set', 'left', 'down');
    assert.equal(native.netdevRunning(handle), 0);
    a.ip('link', 'set', 'left', 'up');
    a.ip('link', 'set', 'left', 'name', 'renamed');
    assert.equal(native.netdevRunning(handle), -ENODEV);
    a.ip('link', 'set', 'renamed', 'name', 'left');
    native.netdevClose(handle);
  });

  it('sees each offload that is switched off', () => {
    const { name } = a;
    const keys = ['rx', 'tx', 'gro', 'rxvlan', 'txvlan'];
    a.offloads('left', Object.fromEntries(keys.map((key) => [key, false])));
    const { offloads } = native.netdevInfo('left', name);
    // The kernel drops TSO with the checksum it needs, and says so in ethtool -k too.
    const expected = { rxChecksum: false, txChecksum: false, tso: false, gro: false, rxVlan: false, txVlan: false };
    assert.deepEqual(offloads, { ...offloads, ...expected });
    const says = a.run('ethtool', '-k', 'left');
    assert.equal(offloads.gso, /^generic-segmentation-offload: on/m.test(says));
    a.offloads('left', Object.fromEntries(keys.map((key) => [key, true])));
  });

  it('follows the link', () => {
    assert.equal(native.netdevLink('left', a.name), true);
    b.ip('link', 'set', 'right', 'down');
    assert.equal(native.netdevLink('left', a.name), false);
    const { flags, link } = native.netdevInfo('left', a.name);
    assert.deepEqual([flags.up, link], [true, 'down']);
    a.ip('link', 'set', 'left', 'down');
    assert.equal(native.netdevInfo('left', a.name).flags.up, false);
    a.ip('link', 'set', 'left', 'up');
    b.ip('link', 'set', 'right', 'up');
    assert.equal(native.netdevLink('left', a.name), true);
  });

  it('promiscuous mode is counted, and ends with its last holder', () => {
    const first = native.netdevPromiscOpen('left', a.name);
    const second = native.netdevPromiscOpen('left', a.name);
    assert.equal(a.promiscuity('left'), 2);
    assert.equal(native.netdevInfo('left', a.name).flags.promisc, true);
    native.netdevPromiscClose(first);
    assert.throws(
      () => {
        native.netdevPromiscClose(first);
      },
      { code: 'EBADF' },
    );
    assert.equal(a.promiscuity('left'), 1);
    native.netdevPromiscClose(second);
    assert.equal(a.promiscuity('left'), 0);
    assert.equal(native.netdevInfo('left', a.name).flags.promisc, false);
    assert.throws(() => native.netdevPromiscOpen('none', a.name), { code: 'ENODEV', port: 'none' });
  });

  it('the kernel takes promiscuous mode back from a killed process', async () => {
    const script = `import { native } from ${JSON.stringify(nativeUrl)};
      native.netdevPromiscOpen('left', ${JSON.stringify(a.name)});
      process.stdout.write('on');
      setInterval(() => {}, 1000);`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    await once(child.stdout, 'data');
    assert.equal(a.promiscuity('left'), 1);
    child.kill('SIGKILL');
    await once(child, 'exit');
    assert.equal(a.promiscuity('left'), 0);
  });

  it('the thread never stays in the namespace, whatever happens there', async () => {
    const before = here();
    native.netdevInfo('left', a.name);
    assert.throws(() => native.netdevInfo('none', a.name), { code: 'ENODEV' });
    native.netdevPromiscClose(native.netdevPromiscOpen('left', a.name));
    assert.equal(here(), before);
    assert.throws(() => native.netdevInfo('left', ''), { code: 'ENODEV' }, 'it exists only over there');
    const worker = new Worker(
      `import('node:worker_threads').then(async ({ parentPort, workerData }) => {
        const { native } = await import(workerData.url);
        const { readlinkSync } = await import('node:fs');
        const { mtu } = native.netdevInfo('left', workerData.netns);
        parentPort.postMessage([mtu, readlinkSync('/proc/thread-self/ns/net')]);
      });`,
      { eval: true, workerData: { url: nativeUrl, netns: a.name } },
    );
    assert.deepEqual((await once(worker, 'message'))[0], [4000, before]);
    await worker.terminate();
  });

  it('an interface that goes away is reported as such', () => {
    const promisc = native.netdevPromiscOpen('left', a.name);
    a.ip('link', 'del', 'left');
    assert.throws(() => native.netdevLink('left', a.name), { code: 'ENODEV', port: 'left' });
    native.netdevPromiscClose(promisc);
  });
});
