// host A —veth— bridge —veth— host B, nothing else connecting them: what people do with a bridge works.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { InProcessBridge } from './bridge.js';
import { Lab, run, skipWithoutLab, type Namespace } from './lab.js';
import { Capture, iperf3, ping, tcpreplay } from './traffic.js';

const A = '10.9.0.1';
const B = '10.9.0.2';

interface Hosts {
  lab: Lab;
  a: Namespace;
  b: Namespace;
  middle: Namespace;
}

function hosts(options: { mtu?: number; queues?: number; ipv6?: boolean; silent?: boolean } = {}): Hosts {
  const lab = new Lab();
  const ipv6 = options.ipv6 ?? false;
  const [a, b, middle] = [lab.namespace('a', { ipv6 }), lab.namespace('b', { ipv6 }), lab.namespace('m')];
  // The bridge's note says so: a veth peer that leaves checksums and tags to the other end leaves them to nobody.
  const sending = { tx: false, txvlan: false };
  const addresses = (v4: string, v6: string) => (options.silent ? [] : [`${v4}/24`, ...(ipv6 ? [`${v6}/64`] : [])]);
  lab.veth(a, { name: 'a0', addresses: addresses(A, 'fd09::1') }, middle, { name: 'eth1' }, options);
  lab.veth(b, { name: 'b0', addresses: addresses(B, 'fd09::2') }, middle, { name: 'eth2' }, options);
  a.offloads('a0', sending);
  b.offloads('b0', sending);
  return { lab, a, b, middle };
}

const portNames = ({ middle }: Hosts, options = '') =>
  ['eth1', 'eth2'].map((name) => `xdp:${name}@netns=${middle.name}${options}`) as [string, string];

/** A capture file of these frames: pcap, microseconds, Ethernet. */
function pcap(frames: readonly Buffer[]): Buffer {
  const words = (...values: number[]) => Buffer.from(Uint32Array.from(values).buffer);
  const header = words(0xa1b2c3d4, 0x0004_0002, 0, 0, 262144, 1);
  return Buffer.concat([header, ...frames.flatMap((frame) => [words(0, 0, frame.length, frame.length), frame])]);
}

const skip = skipWithoutLab('ethtool', 'ping', 'iperf3', 'tcpdump', 'tcpreplay');

describe('xdp: two hosts across the bridge', { skip }, () => {
  for (const { title, options } of [
    { title: 'native', options: ',mode=native' },
    { title: 'generic', options: ',mode=generic' },
    { title: 'native, busy polling', options: ',mode=native,busy-poll=64' },
    { title: 'native, 4096-byte frames, small rings', options: ',mode=native,frame=4096,slots=64' },
  ])
    describe(title, () => {
      let net: Hosts;
      let bridge: InProcessBridge;
      before(() => {
        net = hosts({ ipv6: true });
        bridge = new InProcessBridge(...portNames(net, options));
      });
      after(async () => {
        await bridge.close();
        net.lab.close();
      });

      it('answers one lone ping, and ARP before it', async () => {
        assert.equal((await ping(net.a, B)).received, 1);
      });

      for (const bytes of [56, 1472])
        it(`loses none of 10,000 echoes of ${bytes} bytes`, async () => {
          const all = { sent: 10_000, received: 10_000, duplicates: 0 };
          assert.deepEqual(await ping(net.a, B, { count: 10_000, bytes, flood: true, dontFragment: true }), all);
        });

      it('carries IPv6, which needs multicast to find its neighbour', async () => {
        assert.equal((await ping(net.b, 'fd09::1', { count: 5, flood: true })).received, 5);
      });

      it('carries broadcast and multicast', async () => {
        net.b.sysctl('net.ipv4.icmp_echo_ignore_broadcasts', 0);
        net.b.run('ip', 'addr', 'add', '224.9.9.9/32', 'dev', 'b0', 'autojoin');
        assert.equal((await ping(net.a, '10.9.0.255', { more: ['-b'], deadline: 5 })).received, 1);
        assert.equal((await ping(net.a, '224.9.9.9', { more: ['-I', 'a0'], deadline: 5 })).received, 1);
      });

      it('carries TCP both ways and UDP', async () => {
        for (const reverse of [false, true]) {
          const tcp = await iperf3(net.a, net.b, B, { seconds: 2, reverse });
          assert.ok(
            tcp.seconds.every((bits) => bits > 0),
            `a second without a byte: ${tcp.seconds.join(' ')}`,
          );
        }
        const udp = await iperf3(net.a, net.b, B, { seconds: 1, udp: true, rate: '20M' });
        // A receiver that is not scheduled in time loses datagrams of its own; that all would be lost is another matter.
        assert.ok(udp.sent > 0 && udp.lost < udp.sent / 2, `${udp.lost} of ${udp.sent} datagrams lost`);
      });

      it('delivers TCP segments whose checksums are right', async () => {
        const file = join(tmpdir(), `nmb-xdp-${process.pid}.pcap`);
        const capture = await Capture.start(net.b, 'b0', file, { filter: 'tcp', direction: 'in' });
        await iperf3(net.a, net.b, B, { seconds: 1, rate: '20M' });
        const captured = await capture.stop();
        assert.ok(captured > 100);
        const shown = run('tcpdump', '-nn', '-v', '-r', file);
        rmSync(file);
        assert.equal(/incorrect/.test(shown), false);
        assert.ok((shown.match(/\(correct\)/g) ?? []).length >= captured);
      });
    });

  for (const { title, options } of [
    { title: 'native', options: ',mode=native' },
    { title: 'generic', options: ',mode=generic' },
    { title: 'native, 4096-byte frames', options: ',mode=native,frame=4096' },
  ])
    it(`MTU 9000, ${title}: 10,000 echoes of 8972 bytes and TCP`, async () => {
      const net = hosts({ mtu: 9000 });
      try {
        const bridge = new InProcessBridge(...portNames(net, options));
        const all = { sent: 10_000, received: 10_000, duplicates: 0 };
        assert.deepEqual(await ping(net.a, B, { count: 10_000, bytes: 8972, flood: true, dontFragment: true }), all);
        const tcp = await iperf3(net.a, net.b, B, { seconds: 2 });
        assert.ok(tcp.seconds.every((bits) => bits > 0));
        await bridge.close();
      } finally {
        net.lab.close();
      }
    });

  describe('captures', () => {
    let net: Hosts;
    let bridge: InProcessBridge;
    const folder = mkdtempSync(join(tmpdir(), 'nmb-xdp-'));
    before(() => {
      net = hosts({ silent: true });
      bridge = new InProcessBridge(...portNames(net));
    });
    after(async () => {
      await bridge.close();
      net.lab.close();
      rmSync(folder, { recursive: true });
    });

    /** Replays a capture on A's side; what arrives on B's must be the same frames with the same bytes in that order. */
    async function passes(source: string, frames?: number): Promise<void> {
      const file = join(folder, 'received.pcap');
      const before = bridge.forwarded[0];
      const capture = await Capture.start(net.b, 'b0', file);
      const sent = await tcpreplay(net.a, 'a0', source, 5000);
      if (frames !== undefined) assert.equal(sent, frames);
      while (bridge.forwarded[0] < before + sent) await new Promise((resolve) => setImmediate(resolve));
      await new Promise((resolve) => setTimeout(resolve, 100)); // for tcpdump to read its buffer
      assert.equal(await capture.stop(), sent);
      // The bytes of each frame, from offset 0 on; what tcpdump makes of them is another matter.
      const bytes = (path: string) =>
        run('tcpdump', '-nn', '-t', '-xx', '-r', path)
          .split('\n')
          .filter((line) => line.startsWith('\t0x'))
          .join('\n');
      assert.equal(bytes(file), bytes(source));
    }

    for (const name of [
      'afs.pcap',
      'AoE_Linux.pcap',
      'pptp.pcap',
      'tcp-handshake-nano.pcap',
      '802.1ad_QinQ.pcap',
      'OSPFv2_Capture_FINAL.pcapng',
    ])
      it(`${name} arrives: same frames, same bytes, same order`, () => passes(join('test', 'captures', name)));

    it('passes VLAN-tagged and QinQ frames of every size up to the MTU unchanged', async () => {
      const source = join(folder, 'tagged.pcap');
      const frames: Buffer[] = [];
      for (const tags of [[0x8100], [0x88a8, 0x8100], [0x8100, 0x8100]])
        for (const payload of [46, 47, 100, 512, 1000, 1491, 1492, 1496, 1500]) {
          // A raw socket lets one 802.1Q tag stand beside the MTU; all others count as payload.
          if (payload + 4 * tags.length > 1500 + (tags[0] === 0x8100 ? 4 : 0)) continue;
          const header = Buffer.from('020000000002020000000001', 'hex');
          const tagged = tags.flatMap((tpid, i) => [tpid >> 8, tpid & 255, 0xa0 + i, 7 + i]);
          const data = Buffer.from(Array.from({ length: payload }, (_, i) => (i * 31 + payload) & 255));
          frames.push(Buffer.concat([header, Buffer.from([...tagged, 0x88, 0xb5]), data]));
        }
      writeFileSync(source, pcap(frames));
      assert.equal(Math.max(...frames.map((frame) => frame.length)), 14 + 4 + 1500);
      await passes(source, frames.length);
    });
  });
});
