// The interface behind an xdp port: what it does not send, what it is, what changes about it, and what it is called.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { after, afterEach, beforeEach, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { MOREFRAG } from '../../lib/rings/abi.js';
import { PortError } from '../../lib/text/errors.js';
import { openPort } from '../../lib/ports/open.js';
import type { Port } from '../../lib/ports/port.js';
import { XdpPort } from '../../lib/ports/xdp/xdp-port.js';
import { openSocket } from '../../lib/ports/xdp/xdp-socket.js';
import { Memory } from '../../lib/rings/memory.js';
import { native } from '../../lib/shim/native.js';
import { Lab, skipWithoutLab, type Namespace } from './lab.js';

const library = new URL('../../lib/ports/open.js', import.meta.url).href;

/** An interface's counters as the kernel keeps them. */
function kernel(ns: Namespace, link: string, counter: string): number {
  return Number(ns.run('cat', `/sys/class/net/${link}/statistics/${counter}`));
}

/** Puts a frame of each length into the tx ring and syncs: broadcast, so that its receiver counts it. */
function send(port: Port, lengths: readonly number[]): void {
  const [ring] = port.tx;
  for (const [i, length] of lengths.entries()) {
    const slot = ring.after(ring.head, i);
    ring.setLenFlags(slot, length, 0);
    ring.data(slot).fill(0xff);
  }
  ring.advance(lengths.length);
  port.txsync();
}

/** A socket of somebody else's on one queue. */
function openSocketOn(ns: Namespace, link: string, queue: number): { close: () => void } {
  const slots = 64;
  const memory = new Memory({ plans: [{ tx: [slots], rx: [slots] }], bufSize: 2048 });
  const plan = { port: link, netns: ns.name, ifindex: native.netdevInfo(link, ns.name).index, queue };
  const how = { copy: 'auto', multiBuffer: false, entries: slots, busyPoll: 0, patient: true } as const;
  const socket = openSocket({ ...plan, ...how }, memory, undefined);
  return {
    close: () => {
      socket.close();
      memory.release();
    },
  };
}

/** Turns `port` until `done`; the runner's limit ends a wait for what never comes. */
async function until(port: Port, done: () => boolean): Promise<void> {
  while (!done()) {
    port.txsync();
    port.rxsync();
    await sleep(1);
  }
}

describe('xdp: the interface behind the port', { skip: skipWithoutLab('ethtool') }, () => {
  const lab = new Lab();
  const ns = lab.namespace('m');
  const far = lab.namespace('far');
  let port: Port | undefined;
  const open = (name: string): Port => (port = openPort(name));
  const eth1 = (options = '') => `xdp:eth1@netns=${ns.name}${options}`;

  beforeEach(() => {
    // After a skipped test no afterEach runs.
    spawnSync('ip', ['-n', ns.name, 'link', 'del', 'eth1'], { stdio: 'ignore' });
    lab.veth(ns, { name: 'eth1' }, far, { name: 'far1' }, { queues: 4 });
  });
  afterEach(() => {
    port?.close();
    port = undefined;
    ns.ip('link', 'del', 'eth1');
  });
  after(() => {
    lab.close();
  });

  for (const mode of ['native', 'generic'])
    it(`refuses what the kernel would drop in silence: runts, and more than MTU, header and one tag (${mode})`, async () => {
      const port = open(eth1(`,mode=${mode}`));
      send(port, [13, 14, 60, 1514, 1518, 1519, 1792]);
      await until(port, () => port.txPending() === 0);
      const { tx_refused, tx_too_long, tx_too_short, interface_tx_dropped } = port.stats();
      assert.deepEqual(
        { tx_refused, tx_too_long, tx_too_short, interface_tx_dropped },
        { tx_refused: 3, tx_too_long: 2, tx_too_short: 1, interface_tx_dropped: 0 },
      );
      assert.deepEqual(port.refused!(), { frames: 3, bytes: 13 + 1519 + 1792 });
      assert.equal(kernel(far, 'far1', 'rx_packets'), 4);
      assert.equal(kernel(ns, 'eth1', 'tx_packets'), 4);
      assert.equal(kernel(ns, 'eth1', 'tx_dropped'), 0);
      assert.equal(port.tx[0].space, port.tx[0].numSlots - 1, 'their slots are free again');
    });

  it('a frame of several buffers is measured as a whole', async () => {
    for (const [at, link] of [
      [ns, 'eth1'],
      [far, 'far1'],
    ] as const)
      at.ip('link', 'set', link, 'mtu', '4000');
    const port = open(eth1(',mode=native'));
    const [ring] = port.tx;
    for (const last of [4018 - 2048, 4019 - 2048]) {
      ring.setLenFlags(ring.head, 2048, MOREFRAG);
      ring.data(ring.head).fill(0xff);
      ring.setLenFlags(ring.after(ring.head), last, 0);
      ring.advance(2);
    }
    port.txsync();
    await until(port, () => port.txPending() === 0);
    assert.equal(port.stats().tx_too_long, 1);
    assert.equal(kernel(far, 'far1', 'rx_packets'), 1);
  });

  it('an MTU that changes while it is open is followed', async () => {
    const port = open(eth1());
    for (const [at, link] of [
      [ns, 'eth1'],
      [far, 'far1'],
    ] as const)
      at.ip('link', 'set', link, 'mtu', '1000');
    const refused = () => port.stats().tx_too_long;
    while (refused() === 0) {
      port.look!(false);
      send(port, [1019]);
      await sleep(20);
    }
    send(port, [1018]);
    await until(port, () => port.txPending() === 0);
    const { interface_tx_dropped, tx_refused } = port.stats();
    assert.equal(interface_tx_dropped, kernel(ns, 'eth1', 'tx_dropped'), 'what was sent before it was known');
    assert.equal(tx_refused, 1);
  });

  for (const mode of ['native', 'generic'])
    it(`without carrier frames wait in the ring, and all of them leave when it is back (${mode})`, async () => {
      const port = open(eth1(`,mode=${mode},slots=64`));
      send(port, [60]);
      await until(port, () => port.txPending() === 0);
      far.ip('link', 'set', 'far1', 'down');
      while (port.linkUp()) await sleep(1);
      await sleep(1100); // the kernel tells a second change within a second late
      send(
        port,
        Array.from({ length: 63 }, () => 100),
      );
      assert.equal(port.txPending(), 63);
      assert.equal(port.tx[0].space, 0, 'back-pressure');
      assert.deepEqual(port.unsent!(), { frames: 63, bytes: 6300 });
      port.txsync();
      assert.equal(kernel(ns, 'eth1', 'tx_dropped'), 0);
      far.ip('link', 'set', 'far1', 'up');
      await until(port, () => port.txPending() === 0);
      assert.equal(kernel(ns, 'eth1', 'tx_packets'), 64);
      assert.equal(kernel(ns, 'eth1', 'tx_dropped'), 0);
      assert.equal(port.stats().interface_tx_dropped, 0);
    });

  describe('queues that come and go', () => {
    const queues = (n: number) => {
      // A veth's XDP refuses more queues at its peer than it has itself.
      for (const [at, link] of [
        [ns, 'eth1'],
        [far, 'far1'],
      ] as const)
        // prettier-ignore
        at.run('ethtool', '-L', link, 'rx', String(n), 'tx', String(n));
    };
    const look = (port: Port, grow: boolean): string => {
      port.look!(grow);
      return port.news!().join('\n');
    };

    it('are told once, and not opened without leave', () => {
      queues(1);
      const port = open(eth1());
      assert.equal(look(port, false), '');
      ns.run('ethtool', '-L', 'eth1', 'rx', '4', 'tx', '4');
      assert.match(look(port, false), /eth1 has 4 rx queues now, 1 before: .* go to the host.*start again/);
      assert.equal(look(port, false), '');
      assert.equal(port.rx.length, 1);
      ns.run('ethtool', '-L', 'eth1', 'rx', '1', 'tx', '1');
      assert.match(look(port, false), /eth1 has 1 rx queue now, 4 before: this port has all of them/);
    });

    it('are opened with leave, as rings that go on where the others end', () => {
      queues(1);
      const port = open(eth1());
      ns.run('ethtool', '-L', 'eth1', 'rx', '4', 'tx', '4');
      assert.match(look(port, true), /eth1 has 4 rx queues now, 1 before: queues 1 to 3 open, and copied/);
      for (const rings of [port.rx, port.tx])
        assert.deepEqual(
          rings.map(({ id }) => id),
          [0, 1, 2, 3],
        );
      assert.equal(port.fds.length, 4);
      assert.equal(look(port, true), '');
    });

    it('stay closed where the port is to have certain queues only', () => {
      queues(1);
      const port = open(eth1(',queue=0'));
      ns.run('ethtool', '-L', 'eth1', 'rx', '2', 'tx', '2');
      assert.match(look(port, true), /eth1 has 2 rx queues now, 1 before: .* go to the host/);
      assert.equal(port.rx.length, 1);
    });

    it('that somebody else has are left to the host, at once, and all others work on', async () => {
      queues(1);
      const port = open(eth1(',slots=64'));
      ns.run('ethtool', '-L', 'eth1', 'rx', '2', 'tx', '2');
      const other = openSocketOn(ns, 'eth1', 1);
      try {
        const before = Date.now();
        assert.match(look(port, true), /what arrives on the new ones goes to the host.*queue 1 of eth1 is in use/);
        assert.ok(Date.now() - before < 1000, 'it did not wait for the queue');
        send(port, [60]);
        await until(port, () => port.txPending() === 0);
        assert.equal(port.rx.length, 1);
      } finally {
        other.close();
      }
    });
  });

  it('a wake-up that the kernel refuses is told, and that it is over', () => {
    const port = open(eth1(',copy'));
    assert.ok(port instanceof XdpPort);
    const { socket } = port.queues[0];
    const answer = (errno: number) => Object.assign(socket, { wakeTx: () => errno });
    const { wakeTx } = socket;
    answer(12);
    send(port, [60]);
    assert.match(port.news().join(), /eth1.*the kernel does not move frames: .*\(ENOMEM\)/);
    assert.deepEqual(port.news(), []);
    Object.assign(socket, { wakeTx });
    port.txsync();
    assert.match(port.news().join(), /eth1.*the kernel takes frames again/);
  });

  describe('what the host loses is said at the start', () => {
    const hostNotes = (name: string) => open(name).notes.filter((note) => /host's|member|loopback/.test(note));

    it('nothing, on an interface that only carries', () => {
      assert.deepEqual(hostNotes(eth1()), []);
    });
    it('loopback', () => {
      assert.match(hostNotes(`xdp:lo@netns=${ns.name}`).join('\n'), /^lo is this machine's loopback: [^\n]+$/);
    });
    it('an address', () => {
      ns.ip('addr', 'add', '10.9.8.7/24', 'dev', 'eth1');
      assert.match(
        hostNotes(eth1()).join('\n'),
        /^eth1 has the host's address 10\.9\.8\.7: [^\n]+ stops while [^\n]+$/,
      );
    });
    for (const kind of ['bridge', 'bond', 'vrf', 'team'])
      it(`a member of a ${kind}`, (test) => {
        const more = kind === 'vrf' ? ['table', '10'] : [];
        try {
          ns.ip('link', 'add', 'over', 'type', kind, ...more);
        } catch (error) {
          test.skip(`no ${kind} here: ${(error as Error).message.trim()}`);
          return;
        }
        try {
          ns.ip('link', 'set', 'eth1', 'down'); // a bond takes nothing that is up
          ns.ip('link', 'set', 'eth1', 'master', 'over');
          ns.ip('link', 'set', 'eth1', 'up');
          assert.match(
            hostNotes(eth1(',mode=generic')).join('\n'),
            new RegExp(`^eth1 is a member of the ${kind} over, `),
          );
        } finally {
          ns.ip('link', 'del', 'over');
        }
      });
  });

  describe('what carries no Ethernet is refused by name', () => {
    /** What a process inside the namespace says when it opens the port. */
    const saidInside = (name: string): string => {
      const program = `import { openPort } from ${JSON.stringify(library)};
        try { openPort(${JSON.stringify(name)}).close(); console.log('opened'); } catch (error) { console.log(error.message); }`;
      const words = ['netns', 'exec', ns.name, process.execPath, '--input-type=module', '-e', program];
      return spawnSync('ip', words, { encoding: 'utf8' }).stdout;
    };
    const tunnels: [string, number, string[]][] = [
      ['tun', 65534, ['tuntap', 'add', 'dev', 'other', 'mode', 'tun']],
      ['wireguard', 65534, ['link', 'add', 'other', 'type', 'wireguard']],
      ['ipip', 768, ['link', 'add', 'other', 'type', 'ipip', 'local', '10.0.0.1', 'remote', '10.0.0.2']],
      ['sit', 776, ['link', 'add', 'other', 'type', 'sit', 'local', '10.0.0.1', 'remote', '10.0.0.2']],
      ['gre', 778, ['link', 'add', 'other', 'type', 'gre', 'local', '10.0.0.1', 'remote', '10.0.0.2']],
    ];
    for (const [kind, type, command] of tunnels)
      it(kind, (test) => {
        try {
          ns.ip(...command);
        } catch (error) {
          test.skip(`no ${kind} here: ${(error as Error).message.trim()}`);
          return;
        }
        try {
          ns.ip('link', 'set', 'other', 'up');
          const refusal = new RegExp(`other is no Ethernet interface \\(${kind}\\).*link-layer type ${type}\\b`);
          assert.throws(
            () => openPort(`xdp:other@netns=${ns.name}`),
            (error) => {
              assert.ok(error instanceof PortError);
              assert.match(error.message, refusal);
              return true;
            },
          );
          if (kind === 'tun')
            for (const name of ['other', 'netmap:other', 'xdp:other']) assert.match(saidInside(name), refusal);
        } finally {
          ns.ip('link', 'del', 'other');
        }
      });

    it('tap is Ethernet', () => {
      ns.ip('tuntap', 'add', 'dev', 'tap0', 'mode', 'tap');
      open(`xdp:tap0@netns=${ns.name}`).close();
      ns.ip('link', 'del', 'tap0');
    });
  });

  describe('names with two readings', () => {
    const at = (name: string) => `xdp:${name}@netns=${ns.name}`;
    const dashed = (name: string) => {
      lab.veth(ns, { name }, far, { name: 'far2' });
    };
    afterEach(() => {
      for (const name of ['Te1-0', 'eth1-0'])
        spawnSync('ip', ['-n', ns.name, 'link', 'del', name], { stdio: 'ignore' });
    });

    it('an interface called Te1-0 is opened by that name', () => {
      dashed('Te1-0');
      assert.match(open(at('Te1-0')).notes.join('\n'), /^Te1-0 \(veth\)/);
      assert.equal(ns.xdpPrograms('Te1-0').length, 1);
    });

    it('eth1-0 goes before queue 0 of eth1, and that is said; @queue=0 means the queue', () => {
      dashed('eth1-0');
      assert.match(open(at('eth1-0')).notes.join('\n'), /eth1-0 is an interface; queue 0 of eth1 is xdp:eth1@queue=0/);
      assert.deepEqual([ns.xdpPrograms('eth1-0').length, ns.xdpPrograms('eth1').length], [1, 0]);
      port!.close();
      const queue = open(eth1(',queue=0'));
      assert.deepEqual([queue.rx.length, ns.xdpPrograms('eth1').length], [1, 1]);
    });

    it('without such an interface it is the queue', () => {
      const queue = open(at('eth1-3'));
      assert.equal(queue.rx.length, 1);
      assert.match(queue.notes[0], /^eth1 .*queue 3/);
    });

    it('errors name both readings', () => {
      assert.throws(() => openPort(at('Te7-0')), /no interface Te7, and none named Te7-0/);
      assert.throws(() => openPort(at('eth1-9')), /cannot open queue 9: eth1 has 4.*no interface named eth1-9/);
    });
  });
});
