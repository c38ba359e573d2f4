// Reports at intervals, however long those are.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { every } from '../../lib/cli/every.js';

describe('every', () => {
  it('an interval longer than any timer (24.8 days) is not over at once, and no warning is given', async () => {
    let [calls, warnings] = [0, 0];
    const count = (): void => {
      warnings++;
    };
    process.on('warning', count);
    const stop = every(30 * 86_400, () => {
      calls++;
      return Promise.resolve();
    });
    await sleep(50); // a timer that overflows is over after 1 ms
    stop();
    process.off('warning', count);
    assert.deepEqual([calls, warnings], [0, 0]);
  });

  it('is called at multiples of the interval, until it is told to stop', async () => {
    const start = performance.now();
    const moments: number[] = [];
    await new Promise<void>((resolve) => {
      const stop = every(0.02, () => {
        moments.push(performance.now() - start);
        if (moments.length === 3) {
          stop();
          resolve();
        }
        return Promise.resolve();
      });
    });
    await sleep(60);
    assert.equal(moments.length, 3);
    for (const [i, ms] of moments.entries()) assert.ok(ms >= 20 * (i + 1), String(moments));
  });
});
