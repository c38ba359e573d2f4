// The line of balance: what is known adds up, and what is not is said.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { balanceText, interfaceCounts } from '../../../lib/cli/bridge/balance.js';
import { traffic } from '../../../lib/cli/traffic.js';
import { COUNTERS, FRAMES, REFUSED } from '../../../lib/forward/counters.js';
import type { Outside } from '../../../lib/ports/port.js';

/** The balance of a direction in which so many frames were forwarded and refused. */
function balance(forwarded: number, refused: number, from: Partial<Outside>) {
  const counters = new Float64Array(COUNTERS);
  counters[FRAMES] = forwarded;
  counters[REFUSED] = refused;
  const flowed = traffic(new Float64Array(COUNTERS), counters, 1, true);
  const outside = { arrived: null, lostBefore: 0, waiting: 0, lostAfter: 0, ...from };
  return interfaceCounts(flowed, outside, null).balance!;
}

describe('the line of balance', () => {
  it('adds up', () => {
    const all = balance(1000, 20, { arrived: 1100, lostBefore: 30, waiting: 4 });
    assert.equal(all.elsewhere, 46);
    assert.equal(
      balanceText(all),
      '1,100 arrived = 1,000 forwarded + 20 not forwarded + 30 dropped before the rings + 4 in the rings at the end' +
        ' + 46 that went past the port, or came as it opened or closed',
    );
  });

  it('counters that were read while more came are no negative frames', () => {
    assert.equal(
      balanceText(balance(1000, 0, { arrived: 990 })),
      '990 arrived = 1,000 forwarded − 10 that the interface had not counted yet',
    );
  });

  it('an interface that counts next to nothing in netmap mode is said to, and what is known is told all the same', () => {
    for (const arrived of [null, 3]) {
      const unknown = balance(1000, 0, { arrived, lostBefore: 7 });
      assert.deepEqual([unknown.arrived, unknown.elsewhere], [null, null]);
      assert.equal(
        balanceText(unknown),
        'what arrived, the interface does not count: 1,000 forwarded + 7 dropped before the rings',
      );
    }
  });

  it('where nothing was received, nothing arrived but what was lost', () => {
    assert.equal(balanceText(balance(0, 0, {})), '0 arrived = 0 forwarded');
    assert.equal(balanceText(balance(0, 0, { lostBefore: 7 })), '7 arrived = 0 forwarded + 7 dropped before the rings');
  });
});
