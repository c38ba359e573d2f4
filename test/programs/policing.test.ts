// Programs that count, thin out, answer or delay: held against arithmetic of the tests' own.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { FlowTable, flows } from '../../lib/programs/flows.js';
import { Frame } from '../../lib/programs/frame.js';
import { limit } from '../../lib/programs/limit.js';
import { Link, type LinkSpec } from '../../lib/programs/link.js';
import { BACK, DROP, FORWARD, makeProgram, type ProgramFactory } from '../../lib/programs/program.js';
import { respond } from '../../lib/programs/respond.js';
import { sample } from '../../lib/programs/sample.js';
import { arp, ethernet, icmp, ip, ipv4, ipv6, mac, madeFrames, setup, SOURCE_MAC, udp } from './frames.js';

function make(factory: ProgramFactory) {
  const { setup: given, counters } = setup();
  return { program: makeProgram(factory, given), counters };
}

const at = (bytes: readonly number[], frame = new Frame()) => frame.moveTo(Uint8Array.from(bytes), 0, bytes.length);

describe('the rate limit', () => {
  it('lets the burst through at once, then the rate, and counts what it drops', () => {
    // 1,000-byte frames with FCS; 8 Mbit/s is one of them each ms; 3,000 bytes at once.
    const { program, counters } = make(limit({ rate: 8e6, burst: 3000 }));
    const frame = new Frame().moveTo(new Uint8Array(996), 0, 996);
    const passed: number[] = [];
    for (let us = 0; us <= 10_000; us += 100) {
      frame.time = 5e9 + us * 1000;
      if (program.frame(frame) === FORWARD) passed.push(us);
    }
    assert.deepEqual(passed, [0, 100, 200, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000]);
    assert.equal(counters.cells[0], 101 - passed.length);
  });

  it('saves no more than a burst in a pause', () => {
    const { program } = make(limit({ rate: 8e6, burst: 2000 }));
    const frame = new Frame().moveTo(new Uint8Array(996), 0, 996);
    const pass = (seconds: number) => {
      frame.time = seconds * 1e9;
      return program.frame(frame);
    };
    assert.deepEqual([pass(1), pass(1), pass(1)], [FORWARD, FORWARD, DROP]);
    assert.deepEqual([pass(60), pass(60), pass(60)], [FORWARD, FORWARD, DROP]);
  });
});

describe('the sampler', () => {
  it('takes the first of every N', () => {
    const { program, counters } = make(sample({ every: 4 }));
    const verdicts = Array.from({ length: 9 }, () => program.frame(new Frame()));
    assert.deepEqual(verdicts, [0, 1, 1, 1, 0, 1, 1, 1, 0]);
    assert.equal(counters.cells[0], 6);
  });

  it('takes a share, the same frames for the same seed', () => {
    const take = (seed: number) => {
      const { program } = make(sample({ share: 0.1, seed }));
      return Array.from({ length: 10_000 }, () => program.frame(new Frame()));
    };
    assert.deepEqual(take(3), take(3));
    assert.notDeepEqual(take(3), take(4));
    const taken = take(3).filter((verdict) => verdict === FORWARD).length;
    assert.ok(Math.abs(taken - 1000) < 150, `${taken} of 10,000`); // five standard deviations
  });
});

describe('flow counters', () => {
  it('count frames and bytes of each flow, one way', () => {
    const { setup: given, counters } = setup();
    const program = flows(10)(given);
    const there = ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53, [1])));
    const back = ethernet(0x0800, ipv4({ protocol: 17, from: '10.0.0.2', to: '10.0.0.1' }, udp(53, 1053)));
    const ping = ethernet(0x86dd, ipv6({ protocol: 58 }, [128, 0, 0, 0]));
    for (const bytes of [there, back, there, ping]) assert.equal(program.frame(at(bytes)), FORWARD);
    program.frame(at(ethernet(0x0806, arp(1, '10.0.0.1', '10.0.0.2'))));
    const found = [...program.table.flows()].map((flow) => ({
      ...flow,
      source: [...flow.source],
      target: [...flow.target],
    }));
    const expected = [
      {
        source: ip('10.0.0.1'),
        target: ip('10.0.0.2'),
        protocol: 17,
        sourcePort: 1053,
        targetPort: 53,
        frames: 2,
        bytes: 2 * there.length,
      },
      {
        source: ip('10.0.0.2'),
        target: ip('10.0.0.1'),
        protocol: 17,
        sourcePort: 53,
        targetPort: 1053,
        frames: 1,
        bytes: back.length,
      },
      {
        source: ip('fd00::1'),
        target: ip('fd00::2'),
        protocol: 58,
        sourcePort: 0,
        targetPort: 0,
        frames: 1,
        bytes: ping.length,
      },
    ];
    const key = (flow: (typeof found)[number]) => flow.source.join();
    assert.deepEqual(
      found.sort((a, b) => (key(a) < key(b) ? -1 : 1)),
      expected.sort((a, b) => (key(a) < key(b) ? -1 : 1)),
    );
    program.tick!(0);
    assert.deepEqual([...counters.cells.subarray(0, 2)], [3, 0]);
  });

  it('agree with a Map, up to the flows that the table holds', () => {
    fc.assert(
      fc.property(fc.array(fc.nat(40), { maxLength: 300 }), fc.integer({ min: 1, max: 30 }), (ports, most) => {
        const table = new FlowTable(most);
        const expected = new Map<number, number>();
        let beyond = 0;
        for (const port of ports) {
          table.count(at(ethernet(0x0800, ipv4({ protocol: 17 }, udp(port, 53)))));
          if (expected.has(port) || expected.size < most) expected.set(port, (expected.get(port) ?? 0) + 1);
          else beyond++;
        }
        assert.deepEqual(new Map([...table.flows()].map((flow) => [flow.sourcePort, flow.frames])), expected);
        assert.deepEqual([table.size, table.untracked], [expected.size, beyond]);
      }),
      { numRuns: 50 },
    );
  });
});

describe('the responder', () => {
  const ours = mac('02:00:00:00:00:99');
  const responder = respond({ ip: ip('10.0.0.2'), mac: ours });

  it('answers who has its address', () => {
    const frame = at(ethernet(0x0806, arp(1, '10.0.0.1', '10.0.0.2')));
    assert.equal(make(responder).program.frame(frame), BACK);
    const asker = mac(SOURCE_MAC);
    const reply = [0, 1, 8, 0, 6, 4, 0, 2, ...ours, ...ip('10.0.0.2'), ...asker, ...ip('10.0.0.1')];
    assert.deepEqual([...frame.view()], [...asker, ...ours, 8, 6, ...reply]);
  });

  it('answers pings to it with right checksums', () => {
    const data = [1, 2, 3, 4, 5];
    const frame = at(ethernet(0x0800, ipv4({ protocol: 1 }, icmp(8, 0, data))));
    const { program, counters } = make(responder);
    assert.equal(program.frame(frame), BACK);
    const reply = ethernet(0x0800, ipv4({ protocol: 1, from: '10.0.0.2', to: '10.0.0.1' }, icmp(0, 0, data)));
    assert.deepEqual([...frame.view()], [...mac(SOURCE_MAC), ...ours, ...reply.slice(12)]);
    assert.deepEqual([counters.names[1], counters.cells[1]], ['pings answered', 1]);
  });

  it('forwards everything else untouched', () => {
    const others = [
      ...madeFrames('cut').map((frame) => frame.map((byte, i) => (i >= 30 && byte === 2 ? 3 : byte))),
      ethernet(0x0806, arp(2, '10.0.0.1', '10.0.0.2')),
      ethernet(0x0800, ipv4({ protocol: 1 }, icmp(0, 0))),
      ethernet(0x0800, ipv4({ protocol: 1, fragment: 0x2000 }, icmp(8, 0))),
      ethernet(0x0800, ipv4({ protocol: 1, to: '10.0.0.3' }, icmp(8, 0))),
    ];
    for (const bytes of others) {
      const frame = at(bytes);
      assert.equal(make(responder).program.frame(frame), FORWARD);
      assert.deepEqual([...frame.view()], bytes);
    }
  });
});

describe('an emulated link', () => {
  /** Arrivals of frames of 1,000 bytes with FCS that come every `gap` ns; -1: lost. */
  const send = (spec: LinkSpec, frames: number, gap: number): { link: Link; due: number[] } => {
    const link = new Link(spec);
    const due = Array.from({ length: frames }, (_, i) => {
      link.decide(i * gap, 996);
      return link.copies === 0 ? -1 : link.due;
    });
    return { link, due };
  };

  it('delays every frame by as much', () => {
    assert.deepEqual(send({ delay: 5e6 }, 4, 1000).due, [5e6, 5e6 + 1000, 5e6 + 2000, 5e6 + 3000]);
  });

  it('sends at its rate, one frame behind the other, and loses what its queue cannot hold', () => {
    // 1,000 bytes at 1 Gbit/s are 8 µs; four frames fit the queue.
    const { link, due } = send({ rate: 1e9, delay: 1e6, queue: 4000 }, 10, 0);
    assert.deepEqual(due.slice(0, 4), [1_008_000, 1_016_000, 1_024_000, 1_032_000]);
    assert.deepEqual([due.slice(4), link.overflowed], [[-1, -1, -1, -1, -1, -1], 6]);
    assert.deepEqual(send({ rate: 1e9 }, 3, 100_000).due, [8000, 108_000, 208_000]);
  });

  it('varies the delay within the jitter, and keeps the order', () => {
    const { due } = send({ delay: 1e6, jitter: 2e5 }, 10_000, 1e6);
    const delays = due.map((time, i) => time - i * 1e6);
    assert.ok(delays.every((delay) => delay >= 8e5 && delay <= 1.2e6));
    const mean = delays.reduce((sum, delay) => sum + delay) / delays.length;
    assert.ok(Math.abs(mean - 1e6) < 6000, `${mean}`); // the deviation of the mean is 1,155 ns
    const close = send({ delay: 1e6, jitter: 2e5 }, 1000, 1000).due;
    assert.deepEqual(
      close,
      close.toSorted((a, b) => a - b),
    );
  });

  it('loses the same frames for the same seed, whatever else is set and whenever they come', () => {
    const lost = (spec: LinkSpec, gap: number) =>
      send({ loss: 0.1, seed: 7, ...spec }, 10_000, gap).due.map((due) => due < 0);
    const pattern = lost({}, 1000);
    assert.deepEqual(lost({ delay: 1e6, jitter: 1e5, duplicate: 0.5, reorder: 0.3, rate: 1e9 }, 123), pattern);
    assert.notDeepEqual(lost({ seed: 8 }, 1000), pattern);
    const count = pattern.filter(Boolean).length;
    assert.ok(Math.abs(count - 1000) < 150, `${count} of 10,000`); // five standard deviations
  });

  it('doubles and overtakes with the share that was asked for', () => {
    const { link, due } = send({ delay: 1e6, duplicate: 0.2, reorder: 0.1 }, 10_000, 1000);
    assert.ok(Math.abs(link.duplicated - 2000) < 200, `${link.duplicated}`);
    assert.ok(Math.abs(link.reordered - 1000) < 150, `${link.reordered}`);
    assert.equal(due.filter((time, i) => time === i * 1000).length, link.reordered);
  });
});
