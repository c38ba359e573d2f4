// Ready programs by name: what the text says is what the program does, and mistakes are shown where they are.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { Frame } from '../../lib/programs/frame.js';
import { BACK, DROP, FORWARD, makeProgram } from '../../lib/programs/program.js';
import { readyProgram } from '../../lib/programs/ready.js';
import { UsageError } from '../../lib/text/errors.js';
import { arp, ethernet, ipv4, setup, udp } from './frames.js';

const DNS = ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53)));
const WHO_HAS = ethernet(0x0806, arp(1, '10.0.0.1', '10.0.0.2'));

/** Verdicts on the frames, and what became of the first. */
function run(text: string, ...frames: readonly number[][]): { verdicts: number[]; bytes: number[] } {
  const program = makeProgram(readyProgram(text), setup().setup);
  const memory = frames.map((bytes) => Uint8Array.from([...bytes, 0, 0, 0, 0]));
  const cursors = memory.map((bytes) => new Frame().moveTo(bytes, 0, bytes.length - 4, bytes.length - 4, 0, 4));
  return { verdicts: cursors.map((frame) => program.frame(frame)), bytes: [...cursors[0].view()] };
}

describe('a ready program', () => {
  it('is what its name says', () => {
    assert.deepEqual(run('filter:udp and port 53', DNS, WHO_HAS).verdicts, [FORWARD, DROP]);
    assert.deepEqual(run('sample:every=2', DNS, DNS, DNS).verdicts, [FORWARD, DROP, FORWARD]);
    assert.deepEqual(run('sample:share=0', DNS).verdicts, [DROP]);
    assert.deepEqual(run('limit:rate=1,burst=64', DNS, DNS).verdicts, [FORWARD, DROP]);
    assert.deepEqual(run('respond:ip=10.0.0.2,mac=02:00:00:00:00:09', WHO_HAS, DNS).verdicts, [BACK, FORWARD]);
    assert.deepEqual(run('flows', DNS).verdicts, [FORWARD]);
    assert.deepEqual(run('vlan:add=5', DNS).bytes.slice(12, 16), [0x81, 0, 0, 5]);
    assert.deepEqual(run('rewrite:dst=10.9.9.9,dport=5', DNS).bytes.slice(30, 38), [10, 9, 9, 9, 4, 29, 0, 5]);
  });

  const refusals: [string, string, string][] = [
    ['filtre:udp', "unknown program 'filtre'; did you mean 'filter'?", '  ^'],
    ['vlan', 'expected one of add=N, set=N or strip', '      ^'],
    ['vlan:add=5,strip', 'expected one of add=N, set=N or strip', '       ^'],
    ['vlan:add=4096', 'is out of range', '           ^'],
    ['rewrite:dst=example', "'example' is not an address; expected for example 10.0.0.1", '              ^'],
    ['limit:burst=64k', 'the rate is missing; expected for example rate=100M', '        ^'],
    ['respond:ip=fd00::1', 'is not an address', '             ^'],
  ];
  for (const [text, message, caret] of refusals) {
    it(`is refused where '${text}' is wrong`, () => {
      assert.throws(
        () => readyProgram(text),
        (error: unknown) => {
          assert.ok(error instanceof UsageError);
          assert.ok(error.message.startsWith('bad program: ') && error.message.includes(message), error.message);
          assert.equal(error.message.split('\n').at(-1), caret);
          return true;
        },
      );
    });
  }

  it('of any text is made, or refused with a UsageError', () => {
    const name = fc.constantFrom('filter', 'vlan', 'rewrite', 'limit', 'sample', 'flows', 'respond');
    const pair = fc.tuple(
      fc.constantFrom('add', 'strip', 'dst', 'rate', 'every', 'share', 'ip', 'mac', 'most'),
      fc.constantFrom('', '=', '=5', '=10.0.0.1', '=1%'),
    );
    const text = fc
      .tuple(name, fc.array(pair, { maxLength: 3 }))
      .map(([of, pairs]) => `${of}:${pairs.map((p) => p.join('')).join()}`);
    fc.assert(
      fc.property(fc.oneof(text, fc.string()), (given) => {
        try {
          run(given, DNS);
        } catch (error) {
          assert.ok(error instanceof UsageError, String(error));
        }
      }),
    );
  });
});
