// Ports of the kernel's netmap: what a name asks for, which rings are seen, what errors say. The kernel is a stand-in
// (netmap-kernel/kernel.c); the real one is tested with NETMAP_PORTS.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { after, describe, it } from 'node:test';
import { PortError } from '../../../lib/text/errors.js';
import { openPort } from '../../../lib/ports/open.js';
import { netmapRequest } from '../../../lib/ports/netmap/netmap-request.js';
import { parsePortSpec } from '../../../lib/names/portspec.js';
import { Lab, skipWithoutLab } from '../../lab/lab.js';
import { NetmapKernel, skipWithoutKernel } from '../../netmap-kernel/kernel.js';

/** The members of a request that are not 0. */
function asked(name: string): Record<string, unknown> {
  const spec = parsePortSpec(name);
  assert.equal(spec.kind, 'netmap');
  return Object.fromEntries(
    Object.entries(netmapRequest(spec)).filter(([, value]) => value !== 0 && value !== undefined),
  );
}

describe('what a netmap name asks of the kernel', () => {
  // nr_mode and nr_flags as net/netmap.h numbers them.
  const table: [string, Record<string, unknown>][] = [
    ['netmap:ix0', { name: 'ix0', mode: 1 }],
    ['netmap:ix0^', { name: 'ix0', mode: 2 }],
    ['netmap:ix0*', { name: 'ix0', mode: 3 }],
    ['netmap:ix0-3', { name: 'ix0', mode: 4, ringId: 3 }],
    ['netmap:ix0^2', { name: 'ix0', mode: 8, ringId: 2 }],
    ['netmap:ix0{1', { name: 'ix0{1', mode: 1 }],
    ['netmap:ix0}1', { name: 'ix0}1', mode: 1 }],
    ['netmap:ix0{1-2', { name: 'ix0{1', mode: 4, ringId: 2 }],
    ['vale0:a', { name: 'vale0:a', mode: 1 }],
    ['netmap:ix0@7', { name: 'ix0', mode: 1, memId: 7 }],
    ['netmap:ix0/x', { name: 'ix0', mode: 1, flags: 0x800 }],
    ['netmap:ix0/R', { name: 'ix0', mode: 1, flags: 0x2000 }],
    ['netmap:ix0/T', { name: 'ix0', mode: 1, flags: 0x4000 }],
    ['netmap:ix0/zrt', { name: 'ix0', mode: 1, flags: 0x700 }],
    [
      'vale0:a@conf:rings=2,slots=512',
      { name: 'vale0:a', mode: 1, txRings: 2, rxRings: 2, txSlots: 512, rxSlots: 512 },
    ],
    [
      'vale0:a@conf:rings=2,tx-rings=3,host-rings=4',
      { name: 'vale0:a', mode: 1, txRings: 3, rxRings: 2, hostTxRings: 4, hostRxRings: 4 },
    ],
    ['netmap:ix0@offset:64,bits=16', { name: 'ix0', mode: 1, offsets: { max: 64, initial: 64, bits: 16 } }],
    [
      'netmap:ix0@extmem:/dev/hugepages/n,buf-num=99',
      { name: 'ix0', mode: 1, extmem: { file: '/dev/hugepages/n', bufNum: 99 } },
    ],
  ];
  for (const [name, expected] of table)
    it(name, () => {
      assert.deepEqual(asked(name), expected);
    });
});

describe('a machine without netmap', { skip: existsSync('/dev/netmap') && 'this one has it' }, () => {
  it('is told so, with what to do on FreeBSD and on Linux', () => {
    assert.throws(
      () => openPort('netmap:ix0'),
      (error) => {
        assert.ok(error instanceof PortError);
        assert.equal(error.port, 'netmap:ix0');
        assert.equal(error.code, 'ENOENT');
        assert.match(error.message, /no netmap.*FreeBSD: kldload netmap.*Linux: build the module/);
        return true;
      },
    );
  });
});

describe('netmap ports', { skip: skipWithoutKernel() }, () => {
  const kernel = new NetmapKernel();
  after(() => {
    kernel.close();
  });

  /** Opens a port in the child and describes it; the message instead when that fails. */
  const describePort = (name: string, env: NodeJS.ProcessEnv = {}) =>
    kernel.run(
      async (_native, { nativeUrl }, input) => {
        const { openPort } = (await import(
          new URL('../ports/open.js', nativeUrl).href
        )) as typeof import('../../../lib/ports/open.js');
        try {
          const port = openPort(input, { promisc: false });
          const ids = (rings: typeof port.tx) => rings.map((ring) => `${ring.direction}${ring.id}/${ring.numSlots}`);
          const { tx, rx, hostTx, hostRx } = port;
          const shape = [tx, rx, hostTx, hostRx].map(ids).map(String);
          return [...shape, port.region.id, String(port.fds.length), String(port.hasLink)];
        } catch (error) {
          const { name, message } = error as Error;
          return [`${name}: ${message}`];
        }
      },
      name,
      env,
    );

  it('sees the rings that are bound, and no others', () => {
    const nic = ['netmap:1', '1', 'true'];
    const tx2 = 'tx0/256,tx1/256';
    const rx4 = 'rx0/256,rx1/256,rx2/256,rx3/256';
    assert.deepEqual(describePort('netmap:nm1'), [tx2, rx4, '', '', ...nic]);
    assert.deepEqual(describePort('netmap:nm1*'), [tx2, rx4, 'tx0/256', 'rx0/256', ...nic]);
    assert.deepEqual(describePort('netmap:nm1-1'), ['tx1/256', 'rx1/256', '', '', ...nic]);
    assert.deepEqual(describePort('netmap:nm1-3'), ['', 'rx3/256', '', '', ...nic], 'more rx rings than tx rings');
    assert.deepEqual(describePort('netmap:nm1/T'), [tx2, '', '', '', ...nic]);
    assert.deepEqual(describePort('netmap:nm0^'), ['tx0/256', 'rx0/256', '', '', 'netmap:1', '1', 'false']);
    assert.deepEqual(describePort('vale0:a@conf:rings=2,slots=64'), [
      ...['tx0/64,tx1/64', 'rx0/64,rx1/64', '', ''],
      ...['netmap:2', '1', 'false'],
    ]);
  });

  describe('shared out among threads', () => {
    /** Runs generators side by side in the child; what each sent and received, and what went wrong. */
    const generate = (...runs: string[][]) =>
      kernel.run(async (_native, { nativeUrl }, input) => {
        const { startGenerator } = (await import(
          new URL('../gen/gen-start.js', nativeUrl).href
        )) as typeof import('../../../lib/gen/gen-start.js');
        const { parsePktGen } = (await import(
          new URL('../cli/pkt-gen/pkt-gen-options.js', nativeUrl).href
        )) as typeof import('../../../lib/cli/pkt-gen/pkt-gen-options.js');
        const one = async (args: string[]) => {
          try {
            const run = startGenerator(parsePktGen(['--no-promisc', ...args]).settings);
            const { port } = await run.opened;
            const { report } = await run.ended;
            const { sent, received } = report;
            return { rings: [port.txRings, port.rxRings], sent: sent?.frames, received };
          } catch (error) {
            return { message: (error as Error).message, sent: undefined, received: undefined };
          }
        };
        return Promise.all(input.map(one));
      }, runs);

    it("a NIC's rings are bound one by one, each by a thread of its own", () => {
      generate(['-i', 'netmap:nm1', '-f', 'rx', '-c', '4', '-t', '0.1']);
      // nr_mode and nr_ringid of struct nmreq_register.
      const asked = kernel
        .requests()
        .filter(({ header }) => header.readUInt16LE(2) === 1)
        .map(({ body }) => [body.readUInt32LE(36), body.readUInt16LE(34)]);
      assert.deepEqual(
        asked.sort(),
        [0, 1, 2, 3].map((ring) => [4, ring]),
      );
    });
    it('a pipe of two rings: every frame arrives, in one stream a ring', () => {
      const [received, sent] = generate(
        ['-i', 'netmap:y}1@conf:rings=2', '-f', 'rx', '-c', '2', '-n', '4000'],
        ['-i', 'netmap:y{1@conf:rings=2', '-f', 'tx', '-c', '2', '-n', '4000', '-R', '10k'],
      );
      assert.equal(sent.sent, 4000, JSON.stringify([sent, received]));
      const { frames, tagged, streams, lost, duplicates } = received.received!;
      assert.deepEqual([frames, tagged, streams, lost, duplicates], [4000, 4000, 2, 0, 0]);
    });
    it('what cannot be shared out is refused', () => {
      const refusals = generate(
        ['-i', 'netmap:nm1', '-f', 'tx', '-c', '3'],
        ['-i', 'netmap:nm1', '-f', 'rx', '-c', '2'],
        ['-i', 'netmap:nm1^', '-f', 'rx', '-c', '2'],
        ['-i', 'vale0:a', '-f', 'tx', '-c', '2'],
        ['-i', 'netmap:y{1', '-f', 'tx', '-c', '2'],
      ).map(({ message }) => message);
      const expected = [
        /netmap:nm1 has 2 rings each way, and each of 3 threads needs one of its own; write -c 2, or set their number/,
        /netmap:nm1 receives on 4 rings, .*; write -c 4 or -c 1/,
        /netmap:nm1\^: only all rings of a NIC or a pipe/,
        /vale0:a: only all rings of a NIC or a pipe/,
        /has 1 ring each way, .* give the pipe more: @conf:rings=2/,
      ];
      for (const [k, pattern] of expected.entries()) assert.match(refusals[k] ?? '', pattern);
    });
  });

  it('two ports of one memory forward a frame without touching it; a reinit is counted; closing twice is harmless', () => {
    const result = kernel.run(async (_native, { nativeUrl }) => {
      const { openPorts } = (await import(
        new URL('../ports/open.js', nativeUrl).href
      )) as typeof import('../../../lib/ports/open.js');
      const [a, b] = openPorts(['netmap:x{1@conf:slots=64', 'netmap:x}1@conf:slots=64']);
      const [tx] = a.tx;
      const [rx] = b.rx;
      tx.setLenFlags(0, 60);
      const sent = tx.bufIdx(0);
      tx.advance(1);
      const queued = a.txPending();
      a.txsync();
      b.rxsync();
      const seen = { frames: rx.space, len: rx.len(0), same: rx.bufIdx(0) === sent, left: a.txPending() };
      rx.moveTo(40); // beyond what was given
      b.rxsync();
      const { reinits } = b.stats();
      const region = a.region.id === b.region.id;
      a.close();
      a.close();
      b.close();
      let late = '';
      try {
        b.rxsync();
      } catch (error) {
        late = (error as Error).message;
      }
      return { ...seen, queued, reinits, region, stale: rx.space, late };
    });
    const { late, ...rest } = result;
    assert.deepEqual(rest, { frames: 1, len: 60, same: true, left: 0, queued: 1, reinits: 1, region: true, stale: 0 });
    assert.match(late, /^netmap:x}1@conf:slots=64: NIOCRXSYNC: bad file descriptor \(EBADF\)/);
  });

  it('a bridge that polls needs no sync: poll() sends, receives, waits for room before frames, and gives taken slots back', () => {
    const result = kernel.run(async (_native, { nativeUrl }) => {
      const { openPorts } = (await import(
        new URL('../ports/open.js', nativeUrl).href
      )) as typeof import('../../../lib/ports/open.js');
      const { Bridge, nicSide } = (await import(
        new URL('../forward/bridge.js', nativeUrl).href
      )) as typeof import('../../../lib/forward/bridge.js');
      const { turning } = (await import(
        new URL('../forward/loop.js', nativeUrl).href
      )) as typeof import('../../../lib/forward/loop.js');
      const [gen, a, b, sink] = openPorts(['x{1', 'x}1', 'x{2', 'x}2'].map((end) => `netmap:${end}@conf:slots=8`));
      const work = turning(new Bridge(nicSide(a), nicSide(b)), 'poll');
      const send = (n: number) => {
        for (let k = 0, i = gen.tx[0].head; k < n; k++, i = gen.tx[0].after(i)) gen.tx[0].setLenFlags(i, 60);
        gen.tx[0].advance(n);
        gen.txsync();
      };
      const arrived = () => {
        sink.rxsync();
        return sink.rx[0].space;
      };
      const steps: number[] = [];
      send(5);
      work.rest(work.turn() > 0);
      steps.push(work.turn(), arrived()); // moved, not sent
      send(2);
      work.rest(true);
      steps.push(arrived(), work.turn()); // sent; more has come
      work.rest(true); // the tx ring is full: it waits for room in vain
      steps.push(arrived(), work.turn(), b.tx[0].space);
      gen.txsync();
      steps.push(gen.tx[0].space); // all that was taken is the sender's again
      send(3);
      work.rest(false);
      steps.push(work.turn()); // seen, but there is no room
      sink.rx[0].advance(7);
      sink.rxsync();
      work.rest(false);
      steps.push(work.turn());
      work.rest(true);
      steps.push(arrived());
      for (const port of [gen, a, b, sink]) port.close();
      return steps;
    });
    assert.deepEqual(result, [5, 0, 5, 2, 7, 0, 0, 7, 0, 3, 3]);
  });

  it('a VALE port gets what it asks for: its memory is made to measure', () => {
    const [tx] = describePort('vale0:big@conf:slots=4096');
    assert.equal(tx, 'tx0/4096');
  });

  it('frames are in a pipe once they were synced, and their slots come back late', () => {
    const result = kernel.run(async (_native, { nativeUrl }) => {
      const { openPorts } = (await import(
        new URL('../ports/open.js', nativeUrl).href
      )) as typeof import('../../../lib/ports/open.js');
      const [a, b] = openPorts(['netmap:x{1@conf:slots=8', 'netmap:x}1@conf:slots=8']);
      const [tx] = a.tx;
      const [rx] = b.rx;
      tx.advance(3);
      a.txsync();
      const after = () => {
        a.txsync();
        return [tx.space, a.txPending()];
      };
      const sent = after();
      b.rxsync();
      const mirrored = [0, 1, 2].every((k) => rx.bufIdx(k) === tx.bufIdx(k));
      rx.advance(3);
      const taken = after();
      b.rxsync();
      return { mirrored, sent, taken, released: after() };
    });
    assert.deepEqual(result, { mirrored: true, sent: [4, 0], taken: [4, 0], released: [7, 0] });
  });

  it('a head past tail and a cur that is no slot are put back before the kernel believes them', () => {
    const result = kernel.run(async (_native, { nativeUrl }) => {
      const { openPort } = (await import(
        new URL('../ports/open.js', nativeUrl).href
      )) as typeof import('../../../lib/ports/open.js');
      const port = openPort('netmap:x{1@conf:slots=8');
      const [tx] = port.tx;
      tx.advance(5);
      port.txsync(); // nobody gives slots back: the user holds 5 and 6
      const rounds = [];
      for (const [head, cur] of [
        [0, 0],
        [6, 5],
        [5, 99],
        [-1, 5],
      ]) {
        tx.i32[tx.base + 5] = head;
        tx.i32[tx.base + 6] = cur;
        port.txsync();
        rounds.push([tx.head, tx.cur, tx.tail, port.stats().reinits]);
      }
      return rounds;
    });
    assert.deepEqual(
      result,
      [1, 2, 3, 4].map((n) => [5, 5, 7, n]),
    );
  });

  it('@share takes the memory of another port', () => {
    const shared = kernel.run(async (_native, { nativeUrl }) => {
      const { openPorts } = (await import(
        new URL('../ports/open.js', nativeUrl).href
      )) as typeof import('../../../lib/ports/open.js');
      const ports = openPorts(['vale0:a', 'vale0:b', 'vale0:c@share=vale0:a'], { promisc: false });
      return ports.map((port) => port.region.id);
    });
    assert.deepEqual(shared, ['netmap:2', 'netmap:3', 'netmap:2']);
  });

  it('says what a failure means and what to do', () => {
    const says = (name: string, pattern: RegExp, env: NodeJS.ProcessEnv = {}) => {
      const [message] = describePort(name, env);
      assert.match(message, /^PortError: /);
      assert.match(message, pattern);
    };
    says('netmap:none0', /\(ENXIO\): there is no interface none0/);
    says('netmap:lo', /\(EINVAL\): .*loopback interface has no netmap mode/);
    says('netmap:nm0@99', /\(EINVAL\): no memory has the id 99/);
    says('netmap:nm0-7', /\(EINVAL\): nm0 has no ring 7/);
    says('netmap:nm0-0/t', /\(EINVAL\): nobody has nm0 open: a monitor sees/);
    says('vale0:a^', /\(EINVAL\): vale0:a has no host rings, as no VALE port has/);
    // A NIC's pipes take their rings from the memory of all NICs: 256 + 16 × 4096.
    says(
      'netmap:nm0{1@conf:slots=4096',
      /\(ENOMEM\): .*too few rings \(ring_num; a pipe takes four.*4096 slots need 65792.*sysctl dev\.netmap\.ring_num=.*parameters\/ring_num.*modprobe\.d/,
    );
    says('netmap:nm0', /\(EACCES\): opening \/dev\/netmap needs root/, { NETMAP_KERNEL_OPEN: '13' });
    says('netmap:nm0', /\(ENXIO\): the device is there but no driver behind it/, { NETMAP_KERNEL_OPEN: '6' });
    says('netmap:nm0@offset:64', /\(EOPNOTSUPP\): nm0 has no data offsets/, { NETMAP_KERNEL_PLAIN: '1' });
    says('netmap:nm0@extmem:/dev/null', /open extmem.*\(EINVAL\): \/dev\/null is empty/);
  });
});

describe('netmap on an interface', { skip: skipWithoutKernel() || skipWithoutLab('ethtool') }, () => {
  const lab = new Lab();
  const kernel = new NetmapKernel();
  after(() => {
    lab.close();
    kernel.close();
  });
  const ns = lab.namespace('nic');
  lab.veth(ns, { name: 'nm0' }, ns, { name: 'nm1' }, { offloads: { tx: false } });

  it('is promiscuous while open unless told otherwise, knows its link, and notes emulation and offloads', () => {
    const open = (promisc: boolean) =>
      kernel.run(
        async (_native, { nativeUrl }, input) => {
          const { spawnSync } = await import('node:child_process');
          const { openPort } = (await import(
            new URL('../ports/open.js', nativeUrl).href
          )) as typeof import('../../../lib/ports/open.js');
          const ip = (...args: string[]) => spawnSync('ip', args, { encoding: 'utf8' }).stdout;
          const count = () =>
            (JSON.parse(ip('-j', '-d', 'link', 'show', 'nm0')) as [{ promiscuity: number }])[0].promiscuity;
          const port = openPort('netmap:nm0', { promisc: input });
          const during = count();
          const up = port.linkUp();
          ip('link', 'set', 'nm1', 'down');
          const down = port.linkUp();
          ip('link', 'set', 'nm1', 'up');
          const { notes } = port;
          port.close();
          return { during, up, down, after: count(), notes };
        },
        promisc,
        {},
        ['ip', 'netns', 'exec', ns.name],
      );
    const { notes, ...rest } = open(true);
    assert.deepEqual(rest, { during: 1, up: true, down: false, after: 0 });
    assert.equal(open(false).during, 0);
    assert.match(notes[0], /nm0: its driver veth is not known to support netmap, so the kernel emulates it/);
    assert.match(notes[1], /offloads.*on are: rxChecksum, gso, .*ethtool -K nm0/);
  });

  it('tells what the interface counts itself since it was opened, and what arrived there', () => {
    const seen = kernel.run(
      async (_native, { nativeUrl }) => {
        const { readFileSync } = await import('node:fs');
        const { openPort } = (await import(
          new URL('../ports/open.js', nativeUrl).href
        )) as typeof import('../../../lib/ports/open.js');
        const sys = (counter: string) => Number(readFileSync(`/sys/class/net/nm0/statistics/${counter}`, 'utf8'));
        const peer = openPort('xdp:nm1');
        const send = (n: number) => {
          const [ring] = peer.tx;
          for (let i = 0; i < n; i++) {
            ring.setLenFlags(ring.after(ring.head, i), 60, 0);
            ring.data(ring.after(ring.head, i)).fill(0xff); // a protocol that the host drops
          }
          ring.advance(n);
          do peer.txsync();
          while (peer.txPending() > 0);
        };
        send(3);
        const before = { packets: sys('rx_packets'), dropped: sys('rx_dropped') };
        const port = openPort('netmap:nm0', { promisc: false });
        const nothing = port.outside!();
        send(5);
        const { netdev, stats, outside } = { netdev: port.netdev, stats: port.stats(), outside: port.outside!() };
        const kernels = { packets: sys('rx_packets') - before.packets, dropped: sys('rx_dropped') - before.dropped };
        port.close();
        peer.close();
        return { netdev, nothing, stats, outside, kernels };
      },
      undefined,
      {},
      ['ip', 'netns', 'exec', ns.name],
    );
    const none = { interface_rx_missed: 0, interface_rx_errors: 0, interface_tx_dropped: 0, interface_tx_errors: 0 };
    assert.deepEqual(seen, {
      netdev: { ifname: 'nm0', netns: '' },
      nothing: { arrived: null, lostBefore: 0, waiting: 0, lostAfter: 0 },
      stats: { reinits: 0, interface_rx_dropped: 5, ...none },
      outside: { arrived: 5, lostBefore: 0, waiting: 0, lostAfter: 0 },
      kernels: { packets: 5, dropped: 5 },
    });
  });

  it('cannot be promiscuous when it is gone: the port is closed again and says so', () => {
    const message = kernel.run(async (native, { attempt, nativeUrl }) => {
      const { openPort } = (await import(
        new URL('../ports/open.js', nativeUrl).href
      )) as typeof import('../../../lib/ports/open.js');
      const thrown = attempt(() => openPort('netmap:nm2/x'));
      native.netmapOpen({ name: 'nm2', mode: 1, flags: 0x800 }); // not EBUSY: nothing is left open
      return thrown.message;
    });
    assert.match(message, /nm2: SIOCGIFINDEX: No such device \(ENODEV\): .*--no-promisc/);
    assert.equal(spawnSync('ip', ['link', 'show', 'nm2']).status, 1);
  });
});
