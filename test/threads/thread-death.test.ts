// A thread that dies in the midst of its work: whoever waits is told, and its ports are free for the next one.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';
import { PipeFiles } from '../../lib/ports/pipe/pipe-files.js';
import { Lab, skipWithoutLab } from '../lab/lab.js';
import { collect } from '../lab/traffic.js';

const file = (name: string): string => fileURLToPath(new URL(name, import.meta.url));
const linux = process.platform !== 'linux' && 'descriptors are looked up in /proc';

const DEATHS = {
  exit: /ended with code 7/,
  throw: /struck by lightning/,
  memory: /memory limit/,
};

async function die(how: string, script: string, args: string[]) {
  const preload = new URL('../support/thread-crash.js', import.meta.url).href;
  const child = spawn(process.execPath, ['--import', preload, file(script), ...args], {
    env: { ...process.env, CRASH: how },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  return collect(child).ended;
}

let tests = 0;
const pipe = (): string => `death-${process.pid}-${++tests}`;
const shared = (): string[] => readdirSync('/dev/shm').filter((name) => name.includes(`death-${process.pid}-`));

describe('a thread that dies', { skip: linux }, () => {
  for (const [how, reason] of Object.entries(DEATHS)) {
    async function told(names: string[]): Promise<void> {
      const { stdout, stderr, status } = await die(how, '../support/crash-child.js', names);
      assert.equal(status, 0, stderr);
      const { errors, left, again } = JSON.parse(stdout) as { errors: string[]; left: string[]; again: string };
      assert.match(errors[2], reason);
      assert.deepEqual(errors.slice(0, 2), ['', '']);
      assert.deepEqual(left, []);
      assert.equal(again, '');
    }

    it(`a bridge’s by ${how}`, () => told(['sim:a', 'sim:b']));
    it(`a bridge’s with pipes by ${how}: its successor goes on, and removes their memory in the end`, async () => {
      const name = pipe();
      await told([`pipe:${name}{1`, `pipe:${name}{2`]);
      assert.deepEqual(shared(), []);
    });
    it(`a generator’s by ${how}`, () => told(['sim:a']));
    it(`a bridge’s with interfaces by ${how}`, { skip: skipWithoutLab() }, async () => {
      const lab = new Lab();
      try {
        const [near, far] = [lab.namespace('n'), lab.namespace('f')];
        for (const k of [1, 2]) lab.veth(near, { name: `eth${k}` }, far, { name: `far${k}` });
        await told([1, 2].map((k) => `xdp:eth${k}@netns=${near.name}`));
        for (const link of ['eth1', 'eth2'])
          assert.deepEqual([near.xdpPrograms(link), near.promiscuity(link)], [[], 0]);
      } finally {
        lab.close();
      }
    });
    it(`the tools say so: by ${how}`, async () => {
      const name = pipe();
      for (const [tool, ...args] of [
        ['bridge', '-i', 'sim:a', '-i', 'sim:b'],
        ['pkt-gen', '-i', 'sim:a', '-f', 'tx'],
        ['measure', 'throughput', '--size', '64', '--tx', `pipe:${name}{0`, '--rx', `pipe:${name}}0`],
      ]) {
        const { stderr, status } = await die(how, `../../tools/${tool}.js`, args);
        assert.match(stderr, reason, tool);
        assert.equal(status, 1, tool);
      }
      new PipeFiles(name).remove(); // frames may wait there
    });
  }

  it('one of several that cannot be started: the others end, and the cause is told', async () => {
    const args = ['-i', 'sim:a@rings=3', '-f', 'rx', '-c', '3'];
    const { stderr, status } = await die('start', '../../tools/pkt-gen.js', args);
    assert.match(stderr, /the thread pkt-gen could not be started: EAGAIN; .*ulimit -u/);
    assert.equal(status, 1);
  });
});
