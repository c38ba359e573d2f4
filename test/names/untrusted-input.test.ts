// Arithmetic on what others wrote: frames off a wire, and the report of an outside command. Nothing throws, all adds up.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { UNLIMITED } from '../../lib/gen/quota.js';
import { parseEndpoint, parseMacRange } from '../../lib/gen/range.js';
import { Receiver } from '../../lib/gen/receiver.js';
import { Reflector } from '../../lib/gen/reflector.js';
import { Sender } from '../../lib/gen/sender.js';
import { REQUEST } from '../../lib/gen/tag.js';
import { makeTemplates } from '../../lib/gen/templates.js';
import { readIperf3 } from '../../lib/measure/matrix/iperf3.js';
import { ReadingError } from '../../lib/measure/matrix/measured.js';
import { now } from '../../lib/shim/native.js';
import { openPort } from '../../lib/ports/open.js';

/** How a frame of the generator's own is spoiled: bytes put in its place from `at` on, and its length. */
const damage = fc.record({
  at: fc.integer({ min: 0, max: 80 }),
  bytes: fc.uint8Array({ maxLength: 30 }),
  length: fc.integer({ min: 1, max: 2048 }),
  whole: fc.boolean(),
});

const flow = (version: 4 | 6) => ({
  sourceMac: parseMacRange('02:00:00:00:00:01'),
  destinationMac: parseMacRange('02:00:00:00:00:02'),
  vlans: [],
  source: parseEndpoint(version === 4 ? '10.0.0.1' : 'fd00::1', 9),
  destination: parseEndpoint(version === 4 ? '10.0.0.2' : 'fd00::2', 9),
});

describe('frames that anybody may have sent', () => {
  for (const version of [4, 6] as const)
    it(`are counted, followed and answered, whatever is in them (IPv${version})`, () => {
      const name = `pipe:untrusted-${process.pid}-${version}`;
      const [a, b] = ['{', '}'].map((end) => openPort(`${name}${end}0@slots=64`));
      try {
        const templates = makeTemplates(flow(version), { sizes: [128], randomPayload: false, plain: false });
        fc.assert(
          fc.property(fc.array(damage, { minLength: 1, maxLength: 50 }), fc.boolean(), (damages, reflect) => {
            const options = { flow: flow(version), templates, burst: 64, rate: Infinity, stream: 7 };
            const sender = new Sender(a, a.tx, options);
            assert.equal(sender.send(now(), damages.length), damages.length);
            b.rxsync();
            const [rx] = b.rx;
            for (const [k, { at, bytes, length, whole }] of damages.entries()) {
              const i = rx.after(rx.head, k);
              rx.u8.set(bytes, rx.dataStart(i) + at);
              if (!whole) rx.setLenFlags(i, length);
            }
            const receiver = new Receiver(b, REQUEST);
            const reflector = new Reflector(b);
            if (reflect) {
              while (reflector.turn(UNLIMITED) > 0);
              const { frames, ignored } = reflector.report();
              assert.ok(frames >= 0 && frames + ignored <= damages.length);
            } else while (receiver.receive() > 0);
            const { frames, bytes, tagged, lost, duplicates, reordered, before, otherClock, old } = receiver.report();
            assert.equal(frames, reflect ? 0 : damages.length);
            assert.ok(tagged <= frames && otherClock + old <= tagged && duplicates + reordered <= tagged);
            assert.equal(receiver.latency.count + otherClock + old, tagged);
            for (const count of [bytes, lost, before]) assert.ok(Number.isSafeInteger(count) && count >= 0);
            b.rxsync();
            assert.equal(b.rx[0].space, 0);
            a.rxsync();
            a.rx[0].advance(a.rx[0].space);
            a.rxsync();
            b.txsync();
            a.txsync();
          }),
          { numRuns: 300 },
        );
      } finally {
        a.close();
        b.close();
      }
    });
});

describe('what an outside command printed', () => {
  const number = fc.oneof(fc.double(), fc.integer(), fc.constantFrom('5', null, true, {}, []));
  const sum = fc.oneof(
    fc.record(
      {
        seconds: number,
        bits_per_second: number,
        retransmits: number,
        jitter_ms: number,
        lost_packets: number,
        packets: number,
        omitted: fc.boolean(),
      },
      { requiredKeys: [] },
    ),
    fc.constantFrom(null, 7, 'x'),
  );
  const report = fc.record(
    {
      error: fc.constantFrom('busy', 7, null),
      intervals: fc.oneof(
        fc.array(fc.oneof(fc.record({ sum, sum_bidir_reverse: sum }, { requiredKeys: [] }), fc.constantFrom(null, 3))),
        fc.constantFrom(null, {}, 'x'),
      ),
      end: fc.oneof(
        fc.record(
          {
            sum,
            sum_sent: sum,
            sum_received: sum,
            sum_bidir_reverse: sum,
            cpu_utilization_percent: fc.constantFrom(null, 3, { host_total: 5 }, { host_total: 'x' }),
          },
          { requiredKeys: [] },
        ),
        fc.constantFrom(null, 3),
      ),
    },
    { requiredKeys: [] },
  );
  it('as a report of iperf3 gives finite numbers, or says why not', () => {
    fc.assert(
      fc.property(fc.oneof({ weight: 4, arbitrary: report }, fc.jsonValue()), (value) => {
        try {
          const { metrics, samples, sample_s: seconds } = readIperf3(JSON.stringify(value));
          const numbers = [...Object.values(metrics), ...Object.values(samples ?? {}).flat(), seconds ?? 0];
          for (const found of numbers) assert.ok(typeof found === 'number' && Number.isFinite(found), String(found));
        } catch (error) {
          assert.ok(error instanceof ReadingError, String(error));
        }
      }),
      { numRuns: 3000 },
    );
  });
});
