// Simulated ports on the machine's clock: whatever the options, a port that falls behind catches up, and trials end.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { runTrial } from '../../../lib/measure/trial/trial.js';

const OPTIONS = [
  ...['check=on', 'check=off', 'slots=64', 'rings=4', 'itr=124us', 'txtimer=90us', 'load=30%', 'buf=64,size=1518'],
  ...['frags=2', 'frags=7', 'skip=2', 'skip=10', 'frags=4,skip=3', 'size=9018', 'size=imix', 'size=imix,skip=10'],
  ...['drop=1%', 'drop=50%', 'drop=100%', 'drop=5%,frags=2', 'budget=8', 'flap=20ms/10ms', 'seed=7,drop=0.1%'],
];

describe('sim: on the real clock a trial ends in its time and knows where every frame is', () => {
  const seconds = 0.2;
  for (const rate of ['10G', '40G'])
    for (const options of OPTIONS)
      it(`${rate}, ${options}`, async () => {
        const names = [`sim:a@rate=${rate},${options}`, `sim:b@rate=${rate},${options}`] as const;
        const began = performance.now();
        const trial = await runTrial({ names, seconds, warmupSeconds: 0.05, oneWay: true });
        // The machine may have other work to do: seconds, where it took minutes.
        assert.ok(performance.now() - began < 10_000 && trial.seconds < 3, `${trial.seconds} s`);
        const [{ offered, forwarded, lost, unexplained, duplicates, reordered, corrupt }] = trial.directions;
        assert.equal(offered, forwarded + lost);
        assert.deepEqual([unexplained, duplicates, reordered, corrupt], [0, 0, 0, 0]);
        assert.ok(offered > 0 && (forwarded > 0 || options === 'drop=100%'));
      });
});
