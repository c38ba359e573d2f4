// The port contract on two AF_XDP ports joined by a veth pair.
import { describe } from 'node:test';
import { PROMISES, portContract } from '../ports/port-contract.js';
import { openPorts } from '../../lib/ports/open.js';
import { Lab, skipWithoutLab } from './lab.js';

describe('xdp', { skip: skipWithoutLab() }, () => {
  for (const { title, options, mtu } of [
    { title: 'native', options: 'mode=native,slots=256', mtu: 1500 },
    { title: 'generic', options: 'mode=generic,slots=256', mtu: 1500 },
    { title: 'busy polling', options: 'busy-poll=64,slots=256', mtu: 1500 },
    { title: 'frames of several buffers', options: 'mode=native,slots=256', mtu: 9000 },
  ])
    portContract(`xdp, ${title}`, () => {
      const lab = new Lab();
      const ns = lab.namespace('m');
      lab.veth(ns, { name: 'one' }, ns, { name: 'two' }, { mtu });
      const [a, b] = openPorts(['one', 'two'].map((link) => `xdp:${link}@netns=${ns.name},${options}`));
      const done = () => {
        lab.close();
      };
      return { a, b, promises: PROMISES[mtu > 1500 ? 'xdp, frames of several buffers' : 'xdp'], done };
    });
});
