// The simulated ports against a model of them, over all options; see sim-model.ts.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { openPorts } from '../../../lib/ports/open.js';
import { SimPort } from '../../../lib/ports/sim/sim-port.js';
import { LEN_MASK, MOREFRAG, SLOT_BUF_IDX, SLOT_LEN_FLAGS } from '../../../lib/rings/abi.js';
import type { Ring } from '../../../lib/rings/ring.js';
import { Model, type Settings } from './sim-model.js';

function nameOf(port: string, s: Settings, more: string): string {
  const { rate, load, sizes, flap, step, ...rest } = s;
  const list = Object.entries(rest).map(([key, value]) => `${key}=${value}`);
  if (flap !== undefined) list.push(`flap=${flap[0]}ns/${flap[1]}ns`);
  for (const key of ['itr', 'txtimer'] as const) list[list.indexOf(`${key}=${s[key]}`)] += 'ns';
  return `sim:${port}@clock=virtual,step=${step}ns,rate=${rate},load=${load},size=${sizes.join('+')},${list.join(',')}${more}`;
}

/** Moves every whole frame that fits, by exchanging buffers; slots without data stay behind. */
function move(rx: Ring, tx: Ring): void {
  const [from, to] = [rx.i32, tx.i32];
  for (let room = tx.space, left = rx.space; left > 0;) {
    const data: number[] = [];
    let taken = 0;
    for (let more = true; more && taken < left; taken++) {
      const slot = rx.after(rx.head, taken);
      const lenFlags = from[rx.slotWord(slot) + SLOT_LEN_FLAGS];
      if ((lenFlags & LEN_MASK) > 0) data.push(slot);
      more = (lenFlags & MOREFRAG) !== 0 || data.length === 0;
    }
    if (data.length > room) return;
    data.forEach((slot, k) => {
      const [source, target] = [rx.slotWord(slot), tx.slotWord(tx.after(tx.head, k))];
      [from[source + SLOT_BUF_IDX], to[target + SLOT_BUF_IDX]] = [
        to[target + SLOT_BUF_IDX],
        from[source + SLOT_BUF_IDX],
      ];
      to[target + SLOT_LEN_FLAGS] = from[source + SLOT_LEN_FLAGS];
    });
    tx.advance(data.length);
    rx.advance(taken);
    room -= data.length;
    left -= taken;
  }
}

/** Opens both ports, and closes them after `use`. */
function withPorts<T>(a: string, b: string, use: (a: SimPort, b: SimPort, turn: () => void) => T): T {
  const ports = openPorts([a, b]);
  try {
    const [from, to] = ports;
    assert.ok(from instanceof SimPort && to instanceof SimPort);
    return use(from, to, () => {
      from.rxsync();
      from.rx.forEach((ring, i) => {
        move(ring, to.tx[i]);
      });
      to.txsync();
    });
  } finally {
    for (const port of ports) port.close();
  }
}

const off = fc.constant(0);
const settings = (rings: number): fc.Arbitrary<Settings> =>
  fc
    .record({
      // No rate, load and step that anyone would write: no frame then ends with a step, where rounding decides.
      rate: fc.integer({ min: 100_000_003, max: 40_000_000_007 }),
      load: fc.oneof(fc.constant(1), fc.double({ min: 0.01, max: 1, noNaN: true })),
      sizes: fc.oneof(
        fc.constant([64]),
        fc.integer({ min: 64, max: 1518 }).map((size) => [size]),
        fc.array(fc.integer({ min: 64, max: 3000 }), { minLength: 2, maxLength: 5 }),
      ),
      slots: fc.integer({ min: 140, max: 600 }),
      rings: fc.constant(rings),
      itr: fc.oneof(off, fc.integer({ min: 1, max: 50_000 })),
      txtimer: fc.oneof(off, fc.integer({ min: 1, max: 50_000 })),
      frags: fc.oneof(off, fc.integer({ min: 1, max: 50 })),
      skip: fc.oneof(off, fc.integer({ min: 2, max: 40 })),
      budget: fc.oneof(off, fc.integer({ min: 1, max: 300 })),
      wedge: fc.oneof(off, off, fc.integer({ min: 1, max: 2000 })),
      flap: fc.option(fc.tuple(fc.integer({ min: 1, max: 40_000 }), fc.integer({ min: 1, max: 40_000 })), {
        nil: undefined,
      }),
      step: fc.integer({ min: 7, max: 20_000 }),
      count: fc.oneof(off, off, fc.integer({ min: 1, max: 5000 })),
      buf: fc.constantFrom(64, 256, 2048, 2112),
    })
    .map((s) => ({
      ...s,
      frags: s.frags === 0 ? 0 : Math.max(s.frags, Math.ceil((Math.max(...s.sizes) - 4) / s.buf)),
    }));

const pairs = fc.integer({ min: 1, max: 3 }).chain((rings) =>
  fc
    .tuple(settings(rings), settings(rings), fc.integer({ min: 1, max: 300 }), fc.boolean())
    // Both in one region: one size of buffers.
    .map(([a, b, turns, even]) => {
      const step = even ? a.step : b.step;
      return [a, { ...b, step, buf: a.buf, sizes: [64], frags: 0 }, turns] as const;
    }),
);

describe('sim: as its model', () => {
  for (const check of ['on', 'off'])
    it(`every frame in its turn, whatever the options, with check=${check}`, () => {
      fc.assert(
        fc.property(pairs, ([a, b, turns]) => {
          const model = new Model(a, b);
          withPorts(nameOf('a', a, `,check=${check}`), nameOf('b', b, `,check=${check}`), (from, to, turn) => {
            // Latency needs two clocks that agree.
            const watched = check === 'on' && a.step === b.step && a.flap === undefined && b.flap === undefined;
            const latency = watched ? to.watchLatency(from, 1) : undefined;
            const sum = (of: (ring: Model['rx'][number]) => number) => model.rx.reduce((n, ring) => n + of(ring), 0);
            for (let t = 1; t <= turns; t++) {
              turn();
              model.turn();
              const { offered, missed, zeroSlots } = from.stats();
              const { sent, sentBytes } = to.stats();
              assert.deepEqual(
                { offered, missed, zeroSlots, sent, sentBytes, pending: to.txPending() },
                {
                  offered: sum((ring) => ring.offered),
                  missed: sum((ring) => ring.missed),
                  zeroSlots: sum((ring) => ring.empties),
                  sent: model.sent,
                  sentBytes: model.sentBytes,
                  pending: model.pendingSlots,
                },
                `turn ${t}`,
              );
            }
            to.settle(from);
            const { lost, duplicates, reordered, corrupt, foreign, badSlots } = to.stats();
            const missing = check === 'on' ? from.stats().offered - model.sent : 0;
            assert.deepEqual([lost, duplicates, reordered, corrupt, foreign, badSlots], [missing, 0, 0, 0, 0, 0]);
            if (latency === undefined) return;
            assert.deepEqual([latency.histogram.count, latency.unmatched], [model.sent, 0]);
            const mean = model.latencies.reduce((total, ns) => total + ns, 0) / model.sent;
            if (model.sent > 0)
              assert.ok(Math.abs(latency.histogram.mean - mean) < 1, `${latency.histogram.mean}, ${mean}`);
          });
        }),
        { numRuns: 300 },
      );
    });

  it('checked and unchecked agree on what is lost on purpose too, and that is its share', () => {
    const share = fc.oneof(fc.constant(1), fc.double({ min: 0, max: 1, noNaN: true }));
    fc.assert(
      fc.property(pairs, share, fc.nat(0xffffffff), ([a, b, turns], drop, seed) => {
        const lossy = `,drop=${drop},seed=${seed}`;
        const run = (check: string) =>
          withPorts(nameOf('a', a, `${lossy},check=${check}`), nameOf('b', b, `,check=${check}`), (from, to, turn) => {
            for (let t = 0; t < turns; t++) turn();
            const [{ offered, missed, dropped, zeroSlots }, { sent, sentBytes }] = [from.stats(), to.stats()];
            return { offered, missed, dropped, zeroSlots, sent, sentBytes, pending: to.txPending() };
          });
        const checked = run('on');
        assert.deepEqual(checked, run('off'));
        const { offered, dropped } = checked;
        // Six standard deviations of a binomial distribution: one false alarm in 10⁹.
        const spread = 6 * Math.sqrt(offered * drop * (1 - drop)) + 1;
        assert.ok(Math.abs(dropped - offered * drop) <= spread, `${dropped} of ${offered} at ${drop}`);
      }),
      { numRuns: 200 },
    );
  });
});

describe('sim: a far side that is slower, with losses', () => {
  /** Frames sent a second of both virtual clocks, and what is wrong with them. */
  function rate(a: string, b: string, step: number, ms: number) {
    return withPorts(
      `sim:a@clock=virtual,slots=4096,${a}`,
      `sim:b@clock=virtual,slots=4096,${b}`,
      (_from, to, turn) => {
        for (let t = 0; t < (ms * 1e6) / step; t++) turn();
        const { corrupt, duplicates, reordered } = to.stats();
        assert.deepEqual([corrupt, duplicates, reordered], [0, 0, 0]);
        return (to.stats().sent / ms) * 1e3;
      },
    );
  }

  for (const step of [100, 500, 1000])
    for (const check of ['on', 'off'])
      it(`carries its 1.488 Mpps of 7.44 at 1 Gbit/s and a step of ${step} ns, with check=${check}`, () => {
        const pps = rate(`load=50%,step=${step}ns,check=${check}`, `rate=1G,step=${step}ns,check=${check}`, step, 5);
        // 10⁹ ÷ (8 × 84) a second, less one step before the first frame and one frame on the wire: 672 ns, of 5 ms.
        assert.ok(Math.abs(pps / (1e9 / 672) - 1) < (2 * step + 672) / 5e6, String(pps));
      });

  it('carries what drop=10% leaves of 14.88 Mpps, at a step of 20 ns', () => {
    const pps = rate('drop=10%,step=20ns', 'step=20ns', 20, 1);
    // 14,880 frames, 10 % lost: five standard deviations of 37 frames.
    assert.ok(Math.abs(pps / 1e3 - 14_880.95 * 0.9) < 190, String(pps));
  });
});
