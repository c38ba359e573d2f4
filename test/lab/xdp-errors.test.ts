// What can be wrong with an interface: each names the thing, the cause and the remedy.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { after, describe, it } from 'node:test';
import { PortError } from '../../lib/text/errors.js';
import { native } from '../../lib/shim/native.js';
import { openPort, openPorts } from '../../lib/ports/open.js';
import { Lab, skipWithoutLab } from './lab.js';
import { passProgram } from './programs.js';

const library = new URL('../../lib/ports/open.js', import.meta.url).href;

describe('xdp: what can be wrong', { skip: skipWithoutLab('ethtool', 'setpriv', 'prlimit') }, () => {
  const lab = new Lab();
  after(() => {
    lab.close();
  });
  const ns = lab.namespace('m');
  lab.veth(ns, { name: 'eth1' }, ns, { name: 'far' }, { queues: 2 });
  const eth1 = (options = '') => `xdp:eth1@netns=${ns.name}${options}`;

  /** Opening fails with a PortError of this code that matches all of these; nothing is left on the interface. */
  function refuses(name: string, code: string | undefined, ...matches: RegExp[]): void {
    const held = ns.promiscuity('eth1');
    assert.throws(
      () => openPort(name),
      (error: unknown) => {
        assert.ok(error instanceof PortError, String(error));
        assert.equal(error.code, code, error.message);
        assert.equal(error.port, name);
        for (const match of matches) assert.match(error.message, match);
        return true;
      },
    );
    assert.equal(ns.promiscuity('eth1'), held);
  }

  /** What a process of its own says when it opens the port: its error's message. */
  function saidBy(command: string[], name: string): string {
    const program = `import { openPort } from ${JSON.stringify(library)};
      try { openPort(${JSON.stringify(name)}).close(); console.log('opened'); } catch (error) { console.log(error.message); }`;
    const [first, ...rest] = command;
    const result = spawnSync(first, [...rest, process.execPath, '--input-type=module', '-e', program], {
      encoding: 'utf8',
    });
    assert.equal(result.status, 0, result.stderr);
    return result.stdout;
  }

  it('an interface that is not there', () => {
    refuses(
      `xdp:nonesuch@netns=${ns.name}`,
      'ENODEV',
      /no interface nonesuch in the network namespace/,
      /ip -n .* link/,
    );
  });

  it('a namespace of which only the name is left: a plain file, as where it went away in another mount namespace', () => {
    const file = `/run/netns/${ns.name}-left`;
    writeFileSync(file, '');
    try {
      refuses(`xdp:eth1@netns=${ns.name}-left`, 'EINVAL', /no network namespace .*-left/, /ip netns list/);
    } finally {
      rmSync(file);
    }
  });

  it('a queue of a tap to which no program has attached', () => {
    ns.run('ip', 'tuntap', 'add', 'tapq', 'mode', 'tap', 'multi_queue');
    ns.run('ip', 'link', 'set', 'tapq', 'up');
    refuses(
      `xdp:tapq-1@netns=${ns.name}`,
      'EINVAL',
      /queue 1 of tapq is not there/,
      /of a tun or tap, no program has attached/,
    );
  });

  it('a namespace that is not there', () => {
    refuses('xdp:eth1@netns=nonesuch', 'ENOENT', /no network namespace nonesuch/, /ip netns list/);
  });

  it('a queue that is not there', () => {
    refuses(eth1(',queue=2'), undefined, /queue 2: eth1 has 2 rx and 2 tx queues/, /ethtool -l eth1/);
  });

  it('fewer tx than rx queues', () => {
    ns.run('ethtool', '-L', 'eth1', 'tx', '1');
    refuses(eth1(), undefined, /2 rx and 1 tx queues/, /ethtool -L/);
    openPort(eth1(',queue=0')).close();
    ns.run('ethtool', '-L', 'eth1', 'tx', '2');
  });

  it('a queue in use', () => {
    const port = openPort(eth1(',queue=1'));
    refuses(eth1(',queue=1').replace('@', '@slots=64,'), 'EBUSY', /queue 1 of eth1 is in use by another AF_XDP socket/);
    port.close();
    assert.deepEqual(ns.xdpPrograms('eth1'), []);
  });

  it('a program already attached', () => {
    const { index } = native.netdevInfo('eth1', ns.name);
    const program = native.bpfXdpProgram('test', passProgram(), 0);
    const link = native.bpfXdpLink('test', program.handle, index, 0, ns.name);
    refuses(eth1(), 'EBUSY', /already attached to eth1/, /stop that one/);
    native.bpfClose(link.handle);
    native.bpfClose(program.handle);
    openPort(eth1()).close();
  });

  it('zero-copy where the driver has none', () => {
    refuses(eth1(',zerocopy'), 'EOPNOTSUPP', /no zero-copy/);
  });

  it('native mode where the driver has none; without it, generic is taken and named', () => {
    refuses(`xdp:lo@netns=${ns.name},mode=native`, 'EOPNOTSUPP', /no XDP of its own/, /@mode=generic/);
    const port = openPort(`xdp:lo@netns=${ns.name}`);
    assert.match(port.notes.join('\n'), /lo .*generic XDP, copied by the kernel/);
    port.close();
  });

  it('an MTU beyond what a driver takes without frames of several buffers is served with them', () => {
    ns.ip('link', 'set', 'eth1', 'mtu', '9000');
    const port = openPort(eth1());
    assert.match(port.notes.join('\n'), /frames of several buffers/);
    port.close();
    ns.ip('link', 'set', 'eth1', 'mtu', '1500');
  });

  it('no privilege: the capabilities are named', () => {
    const nobody = ['ip', 'netns', 'exec', ns.name, 'setpriv', '--reuid=65534', '--clear-groups'];
    assert.match(saidBy(nobody, 'xdp:eth1'), /EPERM.*CAP_NET_RAW.*CAP_NET_ADMIN.*CAP_BPF/);
  });

  it('too little locked memory: how much is needed', () => {
    const poor = ['prlimit', '--memlock=65536:65536', 'setpriv', '--bounding-set=-ipc_lock', '--inh-caps=-ipc_lock'];
    // 2 queues, each with 2048 slots to receive, 2048 to send and 2048 in the fill ring, and two reserved buffers.
    assert.match(
      saidBy(poor, eth1()),
      new RegExp(`ENOBUFS.* ${((2 * 3 * 2048 + 2) * 2048) / 1024} KiB of locked memory`),
    );
  });

  describe(
    'the root of a user namespace',
    { skip: spawnSync('unshare', ['-Ur', 'true']).status !== 0 && 'no unshare -U' },
    () => {
      const inside = [
        'unshare',
        '-Urn',
        'sh',
        '-c',
        'ip link add c0 type veth peer name c1; ip link set c0 up; exec "$@"',
        'sh',
      ];
      it('may lock no more memory than its user', () => {
        const poor = ['prlimit', '--memlock=65536:65536', ...inside];
        assert.match(
          saidBy(poor, 'xdp:c0'),
          /ENOBUFS.* 12292 KiB of locked memory.*ulimit -l.*@slots.*outside of any user namespace/,
        );
      });
      it('may load no program', () => {
        // (3 × 16 + 2) × 2048 bytes fit everybody's limit of locked memory.
        assert.match(saidBy(inside, 'xdp:c0@slots=16'), /EPERM.*CAP_BPF.*rootless container\) are not enough/);
      });
    },
  );

  it('when the second port cannot be opened, the first is let go', () => {
    assert.throws(() => openPorts([eth1(), `xdp:nonesuch@netns=${ns.name}`]), PortError);
    assert.throws(() => openPorts([eth1(), `xdp:far@netns=${ns.name},zerocopy`]), /no zero-copy/);
    assert.deepEqual(ns.xdpPrograms('eth1'), []);
    assert.equal(ns.promiscuity('eth1'), 0);
    openPort(eth1()).close();
  });

  it('promiscuous while open, unless told not to be', () => {
    const port = openPort(eth1());
    assert.equal(ns.promiscuity('eth1'), 1);
    assert.equal(ns.xdpPrograms('eth1').length, 1);
    port.close();
    port.close();
    assert.equal(ns.promiscuity('eth1'), 0);
    assert.deepEqual(ns.xdpPrograms('eth1'), []);
    const shy = openPort(eth1(), { promisc: false });
    assert.equal(ns.promiscuity('eth1'), 0);
    shy.close();
  });

  it('views of a closed port read as empty', () => {
    const port = openPort(eth1());
    const [ring] = port.tx;
    assert.equal(ring.space, 2047);
    port.close();
    assert.equal(ring.space, 0);
    assert.equal(ring.i32.length, 0);
  });
});
