// Programs that change frames: tshark finds their checksums right, and what they do not name stays as it was.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { CaptureWriter } from '../../lib/capture/writer.js';
import { writeFrame } from '../support/write-frame.js';
import { Frame } from '../../lib/programs/frame.js';
import { DROP, FORWARD, makeProgram, type ProgramFactory, type Verdict } from '../../lib/programs/program.js';
import { rewrite, type Rewrite } from '../../lib/programs/rewrite.js';
import { vlan } from '../../lib/programs/vlan.js';
import { skipWithout } from '../support/needs.js';
import { capturedFrames, ethernet, icmp, ip, ipv4, ipv6, mac, madeFrames, setup, udp } from './frames.js';

const folder = mkdtempSync(join(tmpdir(), 'nmb-changes-'));
after(() => {
  rmSync(folder, { recursive: true });
});

const ROOM = 8;

/** What the program makes of a frame, in memory with a little room behind it; around it nothing may change. */
function run(factory: ProgramFactory, bytes: Uint8Array | readonly number[]): { verdict: Verdict; bytes: Uint8Array } {
  const memory = new Uint8Array(bytes.length + ROOM + 32).fill(0xee);
  memory.set(bytes, 16);
  const frame = new Frame().moveTo(memory, 16, bytes.length, bytes.length, 0, ROOM);
  const verdict = makeProgram(factory, setup().setup).frame(frame);
  assert.ok(memory.subarray(0, 16).every((byte) => byte === 0xee));
  assert.ok(memory.subarray(16 + bytes.length + ROOM).every((byte) => byte === 0xee));
  return { verdict, bytes: frame.view().slice() };
}

const CHECKED = ['ip', 'tcp', 'udp', 'icmp', 'icmpv6'];
let files = 0;

/** tshark's judgement: how many checksums are good, bad, and absent, of each protocol, and the fields asked for. */
function judge(frames: readonly Uint8Array[]): { good: Record<string, number>; bad: Record<string, number> } {
  const file = join(folder, `${++files}.pcap`);
  const capture = new CaptureWriter(file);
  frames.forEach((bytes, k) => {
    writeFrame(capture, bytes, 0, bytes.length, k, 0);
  });
  capture.close();
  const checks = ['ip', 'tcp', 'udp'].flatMap((protocol) => ['-o', `${protocol}.check_checksum:TRUE`]);
  const fields = CHECKED.flatMap((protocol) => ['-e', `${protocol}.checksum.status`]);
  const { stdout, status } = spawnSync('tshark', ['-r', file, ...checks, '-T', 'fields', ...fields], {
    encoding: 'utf8',
  });
  assert.equal(status, 0);
  const lines = stdout.split('\n').slice(0, -1);
  assert.equal(lines.length, frames.length, 'tshark read every frame');
  const count = (state: string) =>
    Object.fromEntries(
      CHECKED.map((protocol, column) => [
        protocol,
        lines.filter((line) => line.split('\t')[column].split(',').includes(state)).length,
      ]),
    );
  return { good: count('1'), bad: count('0') };
}

const EVERYTHING: Rewrite = {
  sourceMac: mac('02:aa:aa:aa:aa:aa'),
  targetMac: mac('02:bb:bb:bb:bb:bb'),
  source: ip('172.16.254.1'),
  target: ip('198.51.100.7'),
  sourcePort: 65535,
  targetPort: 1,
};
const SIXTH: Rewrite = { ...EVERYTHING, source: ip('2001:db8::ffff:1'), target: ip('2001:db8:1:2:3:4:5:6') };

describe('rewriting', () => {
  const frames = [
    ...capturedFrames()
      .filter(({ bytes, length }) => bytes.length === length)
      .map(({ bytes }) => bytes),
    ...madeFrames('right').map((bytes) => Uint8Array.from(bytes)),
  ].filter((bytes) => bytes.length < 4000);

  for (const [name, change] of Object.entries({ IPv4: EVERYTHING, IPv6: SIXTH })) {
    it(
      `to ${name} addresses and ports leaves every checksum as right or wrong as it was`,
      { skip: skipWithout('tshark') },
      () => {
        const before = judge(frames);
        assert.ok(
          Object.values(before.good).every((count) => count > 3),
          `each protocol is there: ${JSON.stringify(before)}`,
        );
        const changed = frames.map((bytes) => run(rewrite(change), bytes).bytes);
        assert.ok(
          changed.filter((bytes, i) => !Buffer.from(bytes.subarray(12)).equals(frames[i].subarray(12))).length > 20,
        );
        assert.deepEqual(judge(changed), before);
      },
    );
  }

  it('writes what it was told to, and nothing else', () => {
    const data = [1, 2, 3];
    const to = { from: '172.16.254.1', to: '198.51.100.7' };
    const before = ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53, data)));
    const expected = ethernet(0x0800, ipv4({ ...to, protocol: 17 }, udp(65535, 1, data, to)));
    expected.splice(0, 12, ...mac('02:bb:bb:bb:bb:bb'), ...mac('02:aa:aa:aa:aa:aa'));
    assert.deepEqual([...run(rewrite(EVERYTHING), before).bytes], expected);
    assert.deepEqual(
      [...run(rewrite({ targetPort: 5 }), before).bytes],
      ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 5, data))),
    );
    const ping = ethernet(0x0800, ipv4({ protocol: 1 }, icmp(8, 0, data)));
    const pinged = ethernet(0x0800, ipv4({ protocol: 1, to: '10.9.9.9' }, icmp(8, 0, data)));
    assert.deepEqual([...run(rewrite({ target: ip('10.9.9.9'), targetPort: 5 }), ping).bytes], pinged);
  });

  it('leaves a UDP checksum of 0, which says that there is none, and never makes one', () => {
    const none = ethernet(0x0800, ipv4({ protocol: 17 }, [0, 1, 0, 2, 0, 8, 0, 0]));
    assert.deepEqual([...run(rewrite({ targetPort: 9 }), none).bytes.slice(-2)], [0, 0]);
    // Ports that make the sum of all other words 0xffff: the checksum would come out as 0.
    for (let port = 0; port < 65536; port++) {
      const frame = ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53)));
      const { bytes } = run(rewrite({ targetPort: port }), frame);
      assert.ok(bytes[40] !== 0 || bytes[41] !== 0, `port ${port}`);
    }
  });

  it('changes addresses in all fragments, ports in the first', () => {
    const first = ethernet(0x0800, ipv4({ protocol: 17, fragment: 0x2000 }, udp(1053, 53)));
    const later = ethernet(0x0800, ipv4({ protocol: 17, fragment: 0x0003 }, [9, 9, 9, 9, 9, 9, 9, 9]));
    const change = { target: ip('10.9.9.9'), targetPort: 7 };
    assert.deepEqual([...run(rewrite(change), first).bytes.slice(36, 38)], [0, 7]);
    const expected = ethernet(
      0x0800,
      ipv4({ protocol: 17, fragment: 0x0003, to: '10.9.9.9' }, [9, 9, 9, 9, 9, 9, 9, 9]),
    );
    assert.deepEqual([...run(rewrite(change), later).bytes], expected);
  });

  it('leaves IP alone in a frame that ends before its checksum', () => {
    const whole = ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53)));
    for (let size = 14; size < 42; size++) {
      const cut = whole.slice(0, size);
      assert.deepEqual([...run(rewrite({ target: ip('10.9.9.9'), targetPort: 7 }), cut).bytes], cut, `${size} bytes`);
    }
  });

  it('touches nothing outside the frame, whatever its bytes', () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.uint8Array({ maxLength: 90 }),
          fc.constantFrom(...madeFrames('cut')).map(Uint8Array.from.bind(Uint8Array)),
        ),
        (bytes) => {
          for (const change of [EVERYTHING, SIXTH])
            assert.equal(run(rewrite(change), bytes).bytes.length, bytes.length);
        },
      ),
      { numRuns: 2000 },
    );
  });
});

describe('VLAN tags', () => {
  const packet = ipv6({ protocol: 59 }, [1, 2, 3]);
  const plain = ethernet(0x86dd, packet);
  const tagged = ethernet(0x86dd, packet, [[0x8100, 0x6005]]);

  it('are added outside', () => {
    assert.deepEqual([...run(vlan({ add: 5 }), plain).bytes], ethernet(0x86dd, packet, [[0x8100, 5]]));
    const twice = ethernet(0x86dd, packet, [
      [0x88a8, 7],
      [0x8100, 0x6005],
    ]);
    assert.deepEqual([...run(vlan({ add: 7, type: 0x88a8 }), tagged).bytes], twice);
  });

  it('are stripped outside, and only there', () => {
    assert.deepEqual([...run(vlan({ strip: true }), tagged).bytes], plain);
    assert.deepEqual([...run(vlan({ strip: true }), plain).bytes], plain);
    const twice = ethernet(0x86dd, packet, [
      [0x88a8, 7],
      [0x8100, 0x6005],
    ]);
    assert.deepEqual([...run(vlan({ strip: true }), twice).bytes], tagged);
  });

  it('get another VLAN and keep their priority', () => {
    assert.deepEqual([...run(vlan({ set: 4095 }), tagged).bytes], ethernet(0x86dd, packet, [[0x8100, 0x6fff]]));
    assert.deepEqual([...run(vlan({ set: 4095 }), plain).bytes], plain);
  });

  it('that find no room drop the frame, which is counted', () => {
    const { setup: given, counters } = setup();
    const frame = new Frame().moveTo(Uint8Array.from(plain), 0, plain.length, plain.length, 0, 3);
    assert.equal(makeProgram(vlan({ add: 5 }), given).frame(frame), DROP);
    assert.deepEqual([counters.names, counters.cells[0]], [['no room for a tag'], 1]);
    assert.equal(run(vlan({ add: 5 }), plain).verdict, FORWARD);
  });

  it('of any bytes change nothing outside', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 40 }), (bytes) => {
        for (const change of [{ add: 1 }, { strip: true }, { set: 1 }] as const) run(vlan(change), bytes);
      }),
    );
  });
});
