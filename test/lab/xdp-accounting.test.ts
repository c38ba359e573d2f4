// Every frame is accounted for: sent = received + counted drops, in order, with every byte; and so is every buffer.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Bridge, nicSide } from '../../lib/forward/bridge.js';
import { FRAMES, notForwarded } from '../../lib/forward/counters.js';
import { now } from '../../lib/shim/native.js';
import { openPort, openPorts } from '../../lib/ports/open.js';
import type { Port } from '../../lib/ports/port.js';
import { auditBuffers } from '../support/xdp-audit.js';
import { Lab, skipWithoutLab, type Namespace } from './lab.js';
import { Sink, Source } from './numbered.js';

/** ns without a frame after which nothing more comes. */
const QUIET_NS = 100e6;

/** Frames that the interface could not hand to its peer, its stack or its socket, by the kernel's own count. */
function drops(ns: Namespace, link: string): number {
  const [{ stats64 }] = JSON.parse(ns.ip('-j', '-s', 'link', 'show', link)) as [
    { stats64: { rx: { dropped: number }; tx: { dropped: number } } },
  ];
  return stats64.rx.dropped + stats64.tx.dropped;
}

/** source —veth— bridge —veth— sink, turn by turn in one thread; `frames` for each queue. */
async function run(options: { queues: number; slots: number; mode: string; frames: number }) {
  const lab = new Lab();
  const ports: Port[] = [];
  try {
    const [a, b, middle] = [lab.namespace('a'), lab.namespace('b'), lab.namespace('m')];
    const { queues } = options;
    lab.veth(a, { name: 'a0' }, middle, { name: 'eth1' }, { queues });
    lab.veth(b, { name: 'b0' }, middle, { name: 'eth2' }, { queues });
    const name = (ns: Namespace, link: string, more: string) => `xdp:${link}@netns=${ns.name},${more}`;
    const own = `slots=${options.slots},mode=${options.mode}`;
    const bridged = openPorts([name(middle, 'eth1', own), name(middle, 'eth2', own)]);
    ports.push(...bridged);
    const far = 'slots=1024';
    ports.push(openPort(name(a, 'a0', far)), openPort(name(b, 'b0', far)));
    const length = (number: number) => 60 + (number % 1400);
    const bridge = new Bridge(nicSide(bridged[0]), nicSide(bridged[1]));
    const source = new Source(ports[2], options.frames, length);
    const sink = new Sink(ports[3], length);
    let seen = -1;
    for (let quiet = now(); !source.done || now() - quiet < QUIET_NS;) {
      source.turn();
      bridge.turn();
      sink.turn();
      if (sink.total !== seen) quiet = now();
      seen = sink.total;
      await new Promise((resolve) => setImmediate(resolve));
    }
    const audits = [auditBuffers(bridged), auditBuffers([ports[2]]), auditBuffers([ports[3]])];
    for (const { twice, lost } of audits) assert.deepEqual({ twice, lost }, { twice: [], lost: 0 });
    assert.equal(notForwarded(bridge.counters[0]), 0);
    return {
      sent: source.sent.reduce((sum, n) => sum + n, 0),
      received: sink.total,
      byRing: sink.byRing,
      forwarded: bridge.counters[0][FRAMES],
      disordered: sink.disordered,
      corrupt: sink.corrupt,
      dropped: drops(a, 'a0') + drops(middle, 'eth1') + drops(middle, 'eth2') + drops(b, 'b0'),
      /** Frames for which the bridge's own socket had no buffer. */
      missed: bridged[0].stats().rx_dropped,
    };
  } finally {
    for (const port of ports) port.close();
    lab.close();
  }
}

describe('xdp: every frame and buffer is accounted for', { skip: skipWithoutLab() }, () => {
  for (const mode of ['native', 'generic'])
    describe(mode, () => {
      it('what fits the rings arrives, all of it, in order, byte for byte', async () => {
        const result = await run({ queues: 1, slots: 2048, mode, frames: 100_000 });
        assert.deepEqual(result, {
          sent: 100_000,
          forwarded: 100_000,
          received: 100_000,
          byRing: [100_000],
          disordered: 0,
          corrupt: 0,
          dropped: 0,
          missed: 0,
        });
      });

      it('two queues: both flows arrive complete and each in order', async () => {
        const { byRing, ...result } = await run({ queues: 2, slots: 2048, mode, frames: 30_000 });
        // Without XDP of its own on the bridge's end, veth does not tell which queue a frame came from.
        assert.deepEqual(byRing, mode === 'native' ? [30_000, 30_000] : [60_000, 0]);
        assert.deepEqual(result, {
          sent: 60_000,
          forwarded: 60_000,
          received: 60_000,
          disordered: 0,
          corrupt: 0,
          dropped: 0,
          missed: 0,
        });
      });

      it('overload: what does not fit is counted, to the frame; what arrives is in order and whole', async () => {
        const result = await run({ queues: 1, slots: 64, mode, frames: 100_000 });
        // The source sends 1,023 frames a turn; the bridge has 128 buffers to take them.
        assert.ok(result.missed > 50_000, JSON.stringify(result));
        assert.deepEqual(result, {
          sent: 100_000,
          forwarded: result.received,
          received: 100_000 - result.missed,
          byRing: [result.received],
          disordered: 0,
          corrupt: 0,
          // Native XDP counts them on the interface, too.
          dropped: mode === 'native' ? result.missed : 0,
          missed: result.missed,
        });
      });
    });
});
