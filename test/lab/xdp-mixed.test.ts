// An xdp port and a pipe: two regions, so bytes are copied, from where the data starts in one to where it does in the other.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { Bridge, nicSide } from '../../lib/forward/bridge.js';
import { openPort, openPorts } from '../../lib/ports/open.js';
import type { Port } from '../../lib/ports/port.js';
import { auditBuffers } from '../support/xdp-audit.js';
import { Lab, skipWithoutLab } from './lab.js';
import { Sink, Source } from './numbered.js';

const FRAMES = 20_000;

describe('xdp and pipe', { skip: skipWithoutLab() }, () => {
  for (const direction of ['xdp to pipe', 'pipe to xdp'])
    it(`${direction}: frames are copied whole, in order, none lost`, { timeout: 60_000 }, async () => {
      const lab = new Lab();
      const ports: Port[] = [];
      try {
        const [far, middle] = [lab.namespace('f'), lab.namespace('m')];
        lab.veth(far, { name: 'a0' }, middle, { name: 'eth1' });
        const pipe = `pipe:mixed-${process.pid}`;
        const [eth1, near] = openPorts([`xdp:eth1@netns=${middle.name}`, `${pipe}{1@slots=2048`]);
        ports.push(eth1, near);
        // As a source it must not overrun eth1 in a turn, nor be overrun as a sink: 2,048 slots and as many in its fill ring.
        const a0 = openPort(`xdp:a0@netns=${far.name},slots=${direction === 'xdp to pipe' ? 512 : 4096}`);
        ports.push(a0);
        const end = openPort(`${pipe}}1@slots=2048`);
        ports.push(end);
        const bridge = new Bridge(nicSide(eth1), nicSide(near));
        assert.notEqual(bridge.whyCopy, undefined);
        const length = (number: number) => 60 + (number % 1400);
        const [from, to] = direction === 'xdp to pipe' ? [a0, end] : [end, a0];
        const source = new Source(from, FRAMES, length);
        const sink = new Sink(to, length);
        while (sink.total < FRAMES) {
          source.turn();
          bridge.turn();
          sink.turn();
          await new Promise((resolve) => setImmediate(resolve));
        }
        assert.deepEqual([sink.total, sink.disordered, sink.corrupt], [FRAMES, 0, 0]);
        for (const port of [eth1, a0]) {
          const { twice, lost } = auditBuffers([port]);
          assert.deepEqual({ twice, lost }, { twice: [], lost: 0 });
        }
      } finally {
        for (const port of ports) port.close();
        lab.close();
      }
    });
});
