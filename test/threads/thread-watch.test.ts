// A thread that a call into the kernel does not come back to is told of, and that it goes on.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { NetmapKernel, skipWithoutKernel } from '../netmap-kernel/kernel.js';

describe('a bridge whose sync does not return', { skip: skipWithoutKernel() }, () => {
  const folder = mkdtempSync(join(tmpdir(), 'thread-watch-'));
  const kernel = new NetmapKernel();
  after(() => {
    kernel.close();
    rmSync(folder, { recursive: true });
  });

  it('is told within some seconds, and so is that it turns again', { timeout: 60_000 }, () => {
    const down = join(folder, 'down');
    const [stuck, again] = kernel.run(
      async (_native, { nativeUrl }, file) => {
        const { writeFileSync, rmSync } = await import('node:fs');
        const { startBridge } = (await import(
          new URL('../forward/start.js', nativeUrl).href
        )) as typeof import('../../lib/forward/start.js');
        let hear: (sentence: string) => void = () => undefined;
        /** The next sentence about the thread. */
        const heard = (): Promise<string> => new Promise((resolve) => (hear = resolve));
        const bridge = startBridge(['netmap:nm0', 'netmap:nm1'], {
          promisc: false,
          linkWait: 0,
          onSay: (sentence) => {
            if (sentence.includes('the thread')) hear(sentence);
          },
        });
        await bridge.running;
        const first = heard();
        writeFileSync(file, '');
        const stuck = await first;
        const second = heard();
        rmSync(file);
        const again = await second;
        bridge.stop();
        await bridge.ended;
        return [stuck, again];
      },
      down,
      { NETMAP_KERNEL_DOWN: down },
    );
    assert.match(stuck, /^netmap:nm0 and netmap:nm1: the thread that runs this has not turned for [1-9]\d*\.\d s: /);
    assert.match(again, /^netmap:nm0 and netmap:nm1: the thread turns again after [1-9]\d*\.\d s$/);
  });
});
