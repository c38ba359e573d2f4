// Many ports at once, and ports opened and closed time and again: nothing is left of them.
import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Lab, skipWithoutLab } from '../lab/lab.js';

interface State {
  descriptors: number;
  addressMiB: number;
  pinned: number;
}

/** In a process of its own: what other tests left to the garbage collector must not count. */
function cycle(rounds: number, groups: string[][]): { attached: number; before: State; after: State } {
  const script = fileURLToPath(new URL('../support/many-ports.js', import.meta.url));
  const args = ['--expose-gc', script, String(rounds), JSON.stringify(groups)];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8', maxBuffer: 1 << 20 })) as ReturnType<
    typeof cycle
  >;
}

describe('many ports', { skip: process.platform !== 'linux' && 'what a process holds is read from /proc' }, () => {
  it('a thousand at once, then none: views read as empty, descriptors, addresses and files are given back', () => {
    const tag = `many-${process.pid}`;
    const sims = Array.from({ length: 500 }, (_, k) => [`sim:s${k}@slots=64`]);
    const pipes = Array.from({ length: 250 }, (_, k) => ['{', '}'].map((end) => `pipe:${tag}-${k}${end}0@slots=8`));
    const { attached, before, after } = cycle(2, [...sims, ...pipes]);
    assert.equal(attached, 0);
    assert.equal(after.descriptors, before.descriptors);
    // Each simulated port maps two huge pages: the second round would leave 1,000 MiB or more.
    assert.ok(after.addressMiB - before.addressMiB < 500, JSON.stringify({ before, after }));
    assert.deepEqual(
      readdirSync('/dev/shm').filter((name) => name.includes(tag)),
      [],
    );
  });

  it('interfaces, opened and closed fifty times', { skip: skipWithoutLab() }, () => {
    const lab = new Lab();
    try {
      const [near, far] = [lab.namespace('n'), lab.namespace('f')];
      for (const k of [1, 2]) lab.veth(near, { name: `eth${k}` }, far, { name: `far${k}` });
      const ports = [1, 2].map((k) => `xdp:eth${k}@netns=${near.name},slots=64`);
      const { attached, before, after } = cycle(50, [ports]);
      assert.equal(attached, 0);
      assert.equal(after.descriptors, before.descriptors);
      assert.deepEqual([before.pinned, after.pinned], [0, 0]);
      assert.ok(after.addressMiB - before.addressMiB < 50, JSON.stringify({ before, after }));
      for (const link of ['eth1', 'eth2']) assert.deepEqual([near.xdpPrograms(link), near.promiscuity(link)], [[], 0]);
    } finally {
      lab.close();
    }
  });
});
