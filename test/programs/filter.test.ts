// The filter language: its verdicts are tcpdump's, frame by frame; what it cannot read it refuses with a caret.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { Frame } from '../../lib/programs/frame.js';
import { compileFilter, filter } from '../../lib/programs/filter/filter.js';
import { Counters, DROP, FORWARD, makeProgram } from '../../lib/programs/program.js';
import { UsageError } from '../../lib/text/errors.js';
import { skipWithout } from '../support/needs.js';
import { capturedFrames, ethernet, ipv4, madeFrames, udp, type Captured } from './frames.js';

const EXPRESSIONS = [
  '',
  'ip',
  'ip6',
  'arp',
  'rarp',
  'tcp',
  'udp',
  'sctp',
  'icmp',
  'icmp6',
  'igmp',
  'pim',
  'esp or ah',
  'not ip',
  'not (ip or ip6)',
  'ip and not tcp',
  'tcp or udp and port 53',
  'udp and port 53',
  'port 53',
  'not port 53',
  'src port 53',
  'dst port 53',
  'src and dst port 5353',
  'src or dst port 80',
  'tcp port 80',
  'tcp src port 80',
  'udp dst port 7001',
  'port 53 or 80',
  'port (53 or 80)',
  'tcp port 80 or 53 or udp',
  'portrange 7000-7009',
  'portrange 50-100',
  'udp src portrange 1000-2000',
  'sctp portrange 80-53',
  'host 10.0.0.1',
  'src host 10.0.0.1',
  'dst 10.0.0.2',
  'ip host 10.0.0.2',
  'ip src 192.168.1.7',
  'arp host 10.0.0.1',
  'rarp src host 10.0.0.1',
  'src and dst host 10.0.0.1',
  'host 10.0.0.1 and not 192.168.1.7',
  'host 131.114.9.236 or 10.0.0.2',
  'host fd00::1',
  'dst host fd00::2',
  'ip6 src fd00::1',
  'net 10.0.0.0/8',
  'net 10',
  'src net 192.168',
  'net 192.168.1',
  'net 131.114.0.0 mask 255.255.0.0',
  'dst net 224.0.0.0/4',
  'net 0.0.0.0/0',
  'net fd00::/8',
  'src net fd00::/127',
  'ether host 02:00:00:00:00:01',
  'ether src 02:00:00:00:00:01',
  'ether dst host 02:00:00:00:00:01',
  'ether proto 0x88a2',
  'ether proto \\ip',
  'ether proto 0x42',
  'ether proto 0xf0',
  'not ether proto 0x0806',
  'ip proto 17',
  'ip proto \\tcp',
  'ip6 proto 17',
  'ip6 proto 44',
  'proto 6',
  'proto \\udp',
  'broadcast',
  'ether broadcast',
  'multicast',
  'ether multicast and not broadcast',
  'ip multicast',
  'ip6 multicast',
  'less 60',
  'greater 1000',
  'len > 60 and len <= 100',
  'len == 42',
  'vlan',
  'vlan 5',
  'vlan 100 and vlan 5',
  'vlan and ip',
  'vlan and not ip',
  'not vlan and ip',
  'vlan or ip',
  'ip or vlan and udp port 53',
  'vlan 5 and host 10.0.0.1',
  'vlan and tcp[13] & 2 != 0',
  'vlan and vlan and ip6 and port 53',
  'vlan and ether[12:2] = 0x8100',
  'tcp[13] & 2 != 0',
  'not tcp[13] & 2 != 0',
  'tcp[tcpflags] & (tcp-syn|tcp-ack) == tcp-syn',
  'tcp[tcpflags] == 18',
  'udp[0:2] = 53',
  'udp[8] = 0 or udp[9] = 1',
  'icmp[icmptype] = icmp-echo',
  'icmp[icmptype] != icmp-echo and icmp[icmpcode] = 0',
  'icmp6[icmp6type] = icmp6-echo',
  'ip[0] & 0xf > 5',
  'ip[6:2] & 0x1fff != 0',
  'ip[2:2] - ((ip[0] & 0xf) << 2) > 20',
  'ip[16] >= 224',
  'ip6[6] = 17',
  'ip6[40:4] > 0x01000000',
  'arp[6:2] = 1',
  'ether[0] & 1 = 0 and ip[16] >= 224',
  'ether[ether[14] & 15] > 3',
  'ether[100] > 5',
  'not ether[100] > 5',
  'ip or ether[60] = 1',
  'ip[8] * 3 + 7 = 199',
  'ip[8] / 3 % 4 = 1',
  'ip[8] % 3 + 1 = 2',
  '1 + ip[8] ^ 3 & 1 = 68',
  'ip[8] * 3 ^ 4 * 2 < 700',
  '(ip[8] % 60) * 3 = 12',
  'len / ip[7] < 50',
  'ip[4:4] ^ 0xffff > 1 << 16',
  'len >> 5 = 2',
  '-1 > len',
  'tcp[tcp[12] >> 2] > 3',
  '(tcp[0:2] + 1) > 80',
  '1 = 1',
  'tcp && !port 80 || udp',
  'not not tcp',
];

const folder = mkdtempSync(join(tmpdir(), 'nmb-filter-'));
after(() => {
  rmSync(folder, { recursive: true });
});

const words = (...values: number[]) => Buffer.from(Uint32Array.from(values).buffer);

/** A capture file in which frame k was captured at second k. */
function captureFile(name: string, frames: readonly Captured[]): string {
  const records = frames.flatMap(({ bytes, length }, k) => [words(k, 0, bytes.length, length), bytes]);
  const file = join(folder, name);
  writeFileSync(file, Buffer.concat([words(0xa1b2c3d4, 0x0004_0002, 0, 0, 262144, 1), ...records]));
  return file;
}

/** Numbers of the frames that tcpdump passes; undefined where it refuses the expression. */
function tcpdump(file: string, expression: string, ...options: string[]): number[] | undefined {
  const run = spawnSync('tcpdump', ['-r', file, '-w', '-', ...options, '--', expression], { maxBuffer: 1 << 28 });
  if (run.status !== 0) return undefined;
  const passed: number[] = [];
  for (let at = 24; at < run.stdout.length; at += 16 + run.stdout.readUInt32LE(at + 8)) {
    passed.push(run.stdout.readUInt32LE(at));
  }
  return passed;
}

const frame = new Frame();

function ours(frames: readonly Captured[], expression: string): number[] {
  const accepts = compileFilter(expression);
  return frames.flatMap(({ bytes, length }, k) => (accepts(frame.moveTo(bytes, 0, bytes.length, length)) ? [k] : []));
}

const captured = (bytes: readonly number[]) => ({ bytes: Uint8Array.from(bytes), length: bytes.length });
const made = [...madeFrames('whole'), ...madeFrames('cut')].map(captured);

describe('verdicts of the filter are those of tcpdump', { skip: skipWithout('tcpdump') }, () => {
  const frames = [...capturedFrames(), ...made];
  const file = captureFile('all.pcap', frames);
  const whole = [...capturedFrames(), ...madeFrames('whole').map(captured)];
  const wholeFile = captureFile('whole.pcap', whole);
  for (const expression of EXPRESSIONS) {
    it(expression === '' ? '(nothing)' : expression, () => {
      assert.deepEqual(ours(whole, expression), tcpdump(wholeFile, expression));
      // libpcap's optimizer reorders tests and drops loads, so for frames that end within their headers it is off.
      assert.deepEqual(ours(frames, expression), tcpdump(file, expression, '-O'));
    });
  }

  it('for any expression put together from these', () => {
    const few = frames.filter((_, k) => k % 7 === 0);
    const sample = captureFile('few.pcap', few);
    const leaf = fc.constantFrom(...EXPRESSIONS.filter((text) => text !== ''));
    const { tree } = fc.letrec<{ tree: string }>((tie) => ({
      tree: fc.oneof(
        { maxDepth: 4 },
        leaf,
        tie('tree').map((a) => `not (${a})`),
        fc.tuple(tie('tree'), fc.constantFrom('and', 'or'), tie('tree')).map(([a, op, b]) => `(${a}) ${op} (${b})`),
      ),
    }));
    fc.assert(
      fc.property(tree, (expression) => {
        const theirs = tcpdump(sample, expression, '-O');
        if (theirs !== undefined) assert.deepEqual(ours(few, expression), theirs, expression);
      }),
      { numRuns: 100 },
    );
  });
});

describe('the filter', () => {
  it('as a program forwards what passes, drops the rest, and counts it', () => {
    const counters = new Counters();
    const program = makeProgram(filter('udp port 53'), { thread: 0, counter: (name) => counters.counter(name) });
    const dns = Uint8Array.from(ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53))));
    const other = Uint8Array.from(ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 54))));
    assert.equal(program.frame(frame.moveTo(dns, 0, dns.length)), FORWARD);
    assert.equal(program.frame(frame.moveTo(other, 0, other.length)), DROP);
    assert.deepEqual(counters.names, ['dropped']);
    assert.equal(counters.cells[0], 1);
  });

  it('reads nothing outside the frame, whatever its bytes', () => {
    const accepts = EXPRESSIONS.map(compileFilter);
    const bytes = fc.oneof(
      fc.uint8Array({ maxLength: 80 }),
      fc.constantFrom(...made).map(({ bytes }) => bytes),
    );
    fc.assert(
      fc.property(bytes, fc.uint8Array({ minLength: 64, maxLength: 64 }), (data, around) => {
        const memory = Uint8Array.from([...around, ...data, ...around]);
        for (const accept of accepts) {
          const alone = accept(frame.moveTo(data, 0, data.length));
          assert.equal(accept(frame.moveTo(memory, around.length, data.length)), alone);
        }
      }),
      { numRuns: 200 },
    );
  });

  it('of any text compiles, or is refused with a UsageError', () => {
    const word = fc.constantFrom(
      ...new Set(EXPRESSIONS.flatMap((text) => text.match(/[A-Za-z0-9.:\\-]+|[^\sA-Za-z0-9]/g) ?? [])),
      '10.0.0.0/33',
      '99999999999',
      '\u{1f600}',
      '\0',
    );
    const text = fc.oneof(
      fc.string({ unit: 'binary' }),
      fc.array(word, { maxLength: 12 }).map((list) => list.join(' ')),
    );
    fc.assert(
      fc.property(text, (expression) => {
        try {
          compileFilter(expression)(frame.moveTo(made[0].bytes, 0, made[0].length));
        } catch (error) {
          assert.ok(error instanceof UsageError, String(error));
          assert.match(error.message, /^bad filter: .*\n {2}.*\n *\^$/s);
        }
      }),
      { numRuns: 5000 },
    );
  });

  it('takes long expressions, and refuses endless ones', () => {
    const long = (n: number, join: string) => Array.from({ length: n }, (_, i) => `host 10.0.0.${i % 256}`).join(join);
    for (const join of [' or ', ' and ', ' and not ']) compileFilter(long(1000, join));
    compileFilter(
      Array.from({ length: 1000 }, (_, i) => `port ${i}`).reduce((a, b, i) => `${a} ${i % 2 ? 'or' : 'and'} ${b}`),
    );
    for (const text of [long(1001, ' or '), '('.repeat(60000), 'not '.repeat(10000), `len ${'/ len '.repeat(2000)}= 1`])
      assert.throws(() => compileFilter(text), UsageError);
  });

  const refusals: [string, string, string][] = [
    ['udp and prt 53', 'unknown word', '          ^'],
    ['udp port 70000', 'a port cannot be 70000; expected a number from 0 to 65535', '           ^'],
    ['udp port http', "'http' is not a port; expected a number from 0 to 65535", '           ^'],
    ['host example', "'example' is not an address; expected for example 10.0.0.1", '       ^'],
    ['net 10.0.0.1/8', "'10.0.0.1' has bits beyond its mask", '      ^'],
    ['icmp port 5', "'icmp' has no ports; expected tcp, udp, sctp or no protocol", '  ^'],
    ['tcp[13:3] = 1', "'3' cannot stand here; expected 1, 2 or 4 bytes", '         ^'],
    ['tcp[13', "the expression ends here; expected ']'", '        ^'],
    ['tcp[13] & 2', 'the expression ends here; expected a comparison: = == != < <= > >=', '             ^'],
    ['udp or', 'a primitive is missing', '        ^'],
    ['(udp', "the expression ends here; expected ')'", '      ^'],
    ['udp)', "')' cannot stand here; expected and, or, or the end", '     ^'],
    ['len / 0 = 1', 'division by zero', '      ^'],
    ['vlan 4096', 'a VLAN cannot be 4096; expected a number from 0 to 4095', '       ^'],
    ['ip host fd00::1', "'ip' has no IPv6 addresses; expected ip6 or no protocol", '          ^'],
    ['host 02:00:00:00:00:01', "is a MAC address; expected 'ether' before host", '       ^'],
    ['udp § 5', "'§' has no meaning here", '      ^'],
  ];
  for (const [text, message, caret] of refusals) {
    it(`refuses '${text}' and shows where`, () => {
      assert.throws(
        () => compileFilter(text),
        (error: unknown) => {
          assert.ok(error instanceof UsageError);
          assert.ok(error.message.startsWith('bad filter: ') && error.message.includes(message), error.message);
          assert.equal(error.message.split('\n').at(-1), caret);
          return true;
        },
      );
    });
  }
});
