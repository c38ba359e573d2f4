import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { bisectSteps } from './bisect.js';
import {
  lossRatio,
  ndrPdrGoals,
  runSearch,
  searchSteps,
  steadyGoals,
  type SearchGoal,
  type SearchOptions,
  type TrialCounts,
  type TrialRequest,
} from '../../../lib/measure/search/search.js';
import { normalStream, randomStream } from '../../support/random.js';

type Device = (request: TrialRequest) => TrialCounts;

/** Forwards what it can, up to `capacity` frames/s, and drops the rest; `buffer` frames can wait for the end of a trial. */
function device(capacity: number, buffer = 0): Device {
  return ({ load, seconds }) => {
    const offered = Math.round(load * seconds);
    return { offered, lost: Math.max(0, offered - Math.floor(capacity * seconds) - buffer) };
  };
}

const MIN = 1000;
const MAX = 14_880_952;
const SECONDS = 30;
const options = (goals = ndrPdrGoals(SECONDS)): SearchOptions => ({ goals, minLoad: MIN, maxLoad: MAX });

/** 48 capacities over three decades, none on a boundary of either search. */
const capacities = Array.from({ length: 48 }, (_, i) => Math.round(14_700 * 10 ** ((3 * (i + 0.37)) / 48)));

function within(value: number | undefined, truth: number, share: number, what: string): void {
  assert.ok(value !== undefined, `${what}: no bound`);
  assert.ok(Math.abs(value - truth) <= truth * share, `${what}: ${value} is not within ${share * 100} % of ${truth}`);
}

async function bisectBoth(goals: readonly SearchGoal[], dut: Device): Promise<number> {
  let seconds = 0;
  for (const goal of goals) seconds += (await runSearch(bisectSteps(goal, MIN, MAX), dut)).trialSeconds;
  return seconds;
}

describe('multiple-loss-ratio search', () => {
  for (const capacity of capacities) {
    it(`finds NDR and PDR of a device that forwards ${capacity} frames/s, in fewer trial-seconds than bisection`, async () => {
      const dut = device(capacity);
      const result = await runSearch(searchSteps(options()), dut);
      assert.equal(result.complete, true);
      for (const { goal, lower, upper, conditionalThroughput } of result.goals) {
        const truth = capacity / (1 - goal.lossRatio);
        within(lower, truth, 0.01, `${goal.name} lower`);
        within(upper, truth, 0.01, `${goal.name} upper`);
        // Capacities are whole frames a trial: the bounds enclose the truth within one frame.
        assert.ok(lower! <= truth + 1 && upper! >= truth - 1, `${goal.name}: ${truth} outside ${lower} to ${upper}`);
        assert.ok(upper! - lower! <= upper! * goal.width, `${goal.name}: wider than asked`);
        within(conditionalThroughput, capacity, 0.01, `${goal.name} conditional throughput`);
      }
      const bisection = await bisectBoth(options().goals, dut);
      assert.ok(result.trialSeconds < bisection / 2, `${result.trialSeconds} s against ${bisection} s`);
      assert.equal(
        result.trialSeconds,
        result.trials.reduce((sum, trial) => sum + trial.seconds, 0),
      );
    });
  }

  it('spends its long trials last, and on bounds only', async () => {
    const { trials } = await runSearch(searchSteps(options()), device(7_197_000));
    const lengths = trials.map((trial) => trial.seconds);
    assert.deepEqual(
      lengths,
      lengths.toSorted((a, b) => a - b),
    );
    assert.ok(lengths.filter((seconds) => seconds === SECONDS).length <= 4);
  });

  it('tells NDR from PDR when a device loses a little long before it loses a lot', async () => {
    // Loses 0.1 % from 2 Mpps, and everything above 9 Mpps.
    const dut: Device = ({ load, seconds }) => {
      const offered = Math.round(load * seconds);
      const forwarded = load <= 2e6 ? offered : Math.min(Math.floor(offered * 0.999), Math.floor(9e6 * seconds));
      return { offered, lost: offered - forwarded };
    };
    const [ndr, pdr] = (await runSearch(searchSteps(options()), dut)).goals;
    within(ndr.lower, 2e6, 0.01, 'NDR');
    within(pdr.lower, 9e6 / 0.995, 0.01, 'PDR');
  });

  it('finds the capacity of a device that forwards less when overloaded', async () => {
    const dut: Device = ({ load, seconds }) => {
      const offered = Math.round(load * seconds);
      const rate = load <= 5e6 ? load : Math.max(2e5, 5e6 - 3 * (load - 5e6));
      return { offered, lost: offered - Math.min(offered, Math.round(rate * seconds)) };
    };
    for (const { lower, goal } of (await runSearch(searchSteps(options()), dut)).goals) {
      within(lower, 5e6, 0.01, goal.name);
    }
  });

  it('is not fooled by buffers that hide the loss of short trials', async () => {
    const capacity = 3_000_000;
    const { goals } = await runSearch(searchSteps(options()), device(capacity, 200_000));
    // Over 30 s the buffer is worth 0.22 %.
    for (const { goal, lower } of goals)
      within(lower, (capacity + 200_000 / 30) / (1 - goal.lossRatio), 0.01, goal.name);
  });

  it('stays within 1 % on devices whose capacity wavers from trial to trial', async () => {
    const normal = normalStream(7);
    for (const capacity of capacities) {
      const dut: Device = (request) => device(capacity * (1 - 0.001 * Math.abs(normal())))(request);
      const { goals } = await runSearch(searchSteps(options()), dut);
      for (const { goal, lower, upper } of goals) {
        within(lower, capacity / (1 - goal.lossRatio), 0.01, `${goal.name} lower`);
        within(upper, capacity / (1 - goal.lossRatio), 0.01, `${goal.name} upper`);
      }
    }
  });

  it('sees past a rare disturbance when the majority of trials decides', async () => {
    const random = randomStream(11);
    let [plain, steady, spoiled] = [0, 0, 0];
    for (const capacity of capacities) {
      // One trial in ten loses 1 % to something else on the machine.
      const dut: Device = (request) => {
        const counts = device(capacity)(request);
        if (random() < 0.1) {
          counts.lost = Math.max(counts.lost, Math.round(counts.offered * 0.01));
          spoiled++;
        }
        return counts;
      };
      const near = (lower: number | undefined): boolean =>
        lower !== undefined && Math.abs(lower / capacity - 1) <= 0.01;
      if (near((await runSearch(searchSteps(options()), dut)).goals[0].lower)) plain++;
      if (near((await runSearch(searchSteps(options(steadyGoals(SECONDS, 5))), dut)).goals[0].lower)) steady++;
    }
    assert.ok(spoiled > 50);
    assert.ok(steady > plain, `${steady} of 48 with majority, ${plain} without`);
    assert.ok(steady >= 45, `${steady} of 48`);
  });

  it('reports a device that carries the highest load as having no upper bound, after few trials', async () => {
    const result = await runSearch(searchSteps(options()), device(MAX * 2));
    for (const goal of result.goals) {
      assert.equal(goal.lower, MAX);
      assert.equal(goal.upper, undefined);
      assert.equal(goal.conditionalThroughput, MAX);
    }
    assert.equal(result.trials.length, 3);
  });

  it('reports a device that forwards nothing as having no lower bound', async () => {
    const { goals } = await runSearch(searchSteps(options()), device(0));
    for (const goal of goals) {
      assert.equal(goal.lower, undefined);
      assert.equal(goal.upper, MIN);
      assert.equal(goal.conditionalThroughput, 0);
    }
  });

  it('ends with what it has, and says so, when it is given no more trials', async () => {
    const dut = device(5e6);
    let spent = 0;
    const limited = (request: TrialRequest): TrialCounts | undefined => {
      if (spent + request.seconds > 40) return undefined;
      spent += request.seconds;
      return dut(request);
    };
    const result = await runSearch(searchSteps(options()), limited);
    assert.equal(result.complete, false);
    assert.equal(result.trialSeconds, spent);
    assert.ok(spent > 0 && spent <= 40);
  });

  it('says when the generator, not the device, was the limit', async () => {
    const dut: Device = ({ load, seconds }) => ({ offered: Math.round(Math.min(load, 6e6) * seconds), lost: 0 });
    const result = await runSearch(searchSteps(options()), dut);
    assert.equal(result.generatorLimited, true);
    within(result.goals[0].lower, 6e6, 0.01, 'NDR');
    assert.equal((await runSearch(searchSteps(options()), device(6e6))).generatorLimited, false);
  });

  it('finds no load carried where the generator sends nothing, however low the load', async () => {
    const silent: Device = () => ({ offered: 0, lost: 0 });
    const result = await runSearch(searchSteps({ ...options(ndrPdrGoals(1)), minLoad: 0.1 }), silent);
    assert.equal(result.generatorLimited, true);
    for (const { lower, conditionalThroughput } of result.goals)
      assert.deepEqual([lower, conditionalThroughput], [undefined, 0]);
  });

  it('terminates, with ordered bounds, whatever the device answers', () => {
    fc.assert(
      fc.property(fc.nat(), fc.integer({ min: 1, max: 4 }), (seed, repeats) => {
        const random = randomStream(seed);
        const steps = searchSteps(options(steadyGoals(2, repeats)));
        let step = steps.next();
        for (let i = 0; !step.done; i++) {
          assert.ok(i < 2000, 'more than 2000 trials');
          assert.ok(step.value.load >= MIN && step.value.load <= MAX && step.value.seconds > 0);
          const offered = Math.round(step.value.load * step.value.seconds);
          step = steps.next({ offered, lost: random() < 0.5 ? 0 : Math.floor(random() * offered) });
        }
        for (const { lower = MIN, upper = MAX } of step.value.goals) assert.ok(lower <= upper);
      }),
      { numRuns: 300 },
    );
  });

  it('refuses options that make no sense', () => {
    assert.throws(() => searchSteps({ ...options(), minLoad: 0 }).next(), /above 0 and below the highest/);
    assert.throws(() => searchSteps({ ...options(), goals: [] }).next(), /no goal given/);
    const [ndr] = ndrPdrGoals(SECONDS);
    assert.throws(() => searchSteps(options([{ ...ndr, exceedRatio: 1 }])).next(), /goal NDR/);
  });
});

describe('a device that loses frames by chance', () => {
  /** Each frame is lost with the probability `p`; beyond `capacity` frames/s all that is too much. */
  function chance(p: number, capacity: number, seed: number): Device {
    const normal = normalStream(seed);
    const uniform = randomStream(seed ^ 0x5bd1e995);
    return ({ load, seconds }) => {
      const offered = Math.round(load * seconds);
      const carried = Math.min(offered, Math.floor(capacity * seconds));
      let lost = 0;
      // Few frames are drawn one by one; of many, the number lost is normal.
      if (carried < 20_000) for (let i = 0; i < carried; i++) lost += uniform() < p ? 1 : 0;
      else lost = Math.max(0, Math.round(carried * p + Math.sqrt(carried * p * (1 - p)) * normal()));
      return { offered, lost: offered - carried + lost };
    };
  }

  it('has the PDR that its ratio allows: no handful of frames is a bound', async () => {
    for (let seed = 1; seed <= 200; seed++) {
      for (const [seconds, repeats] of [
        [2, 1],
        [0.5, 3],
      ] as const) {
        const goals = repeats === 1 ? ndrPdrGoals(seconds) : steadyGoals(seconds, repeats);
        const limits = { goals, minLoad: MAX * 1e-4, maxLoad: MAX };
        const [ndr, pdr] = (await runSearch(searchSteps(limits), chance(0.003, 2.34e6, seed))).goals;
        // At a load of C / (1 - x) the share x is lost beside 0.3 %: 0.5 % in all where x is 0.2 %.
        within(pdr.lower, 2.34e6 * 1.002, 0.01, `seed ${seed}: PDR`);
        assert.ok((ndr.lower ?? 0) <= pdr.lower!, `seed ${seed}: NDR ${ndr.lower} above PDR ${pdr.lower}`);
        assert.ok(pdr.upper === undefined || pdr.lower! < pdr.upper, `seed ${seed}: ${pdr.lower} to ${pdr.upper}`);
      }
    }
  });

  it('has an NDR that is no higher than its PDR, and each figure lies in its bracket, whatever is lost', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.integer(),
        fc.double({ min: 0, max: 0.02, noNaN: true }),
        fc.double({ min: 1e3, max: 2 * MAX, noNaN: true }),
        fc.double({ min: 0.05, max: 5, noNaN: true }),
        async (seed, p, capacity, seconds) => {
          const limits = { goals: ndrPdrGoals(seconds), minLoad: MAX * 1e-4, maxLoad: MAX };
          const { goals } = await runSearch(searchSteps(limits), chance(p, capacity, seed));
          const [ndr, pdr] = goals;
          assert.ok((ndr.lower ?? 0) <= (pdr.lower ?? 0), `NDR ${ndr.lower}, PDR ${pdr.lower}`);
          for (const { lower, upper } of goals) assert.ok((lower ?? 0) <= (upper ?? Infinity), `${lower} to ${upper}`);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe('loss ratio of a trial', () => {
  it('is lost over offered, unless the generator fell more than 0.1 % short of the load', () => {
    const request = { load: 1000, seconds: 10 };
    assert.equal(lossRatio(request, { offered: 10_000, lost: 50 }), 0.005);
    assert.equal(lossRatio(request, { offered: 9_990, lost: 0 }), 0);
    assert.equal(lossRatio(request, { offered: 9_000, lost: 500 }), 1 - 0.85);
    // What was never offered was never carried.
    assert.equal(lossRatio({ load: 0.01, seconds: 1 }, { offered: 0, lost: 0 }), 1);
  });
});

describe('RFC 2544 bisection', () => {
  it('halves from the highest load until the interval is narrow enough', async () => {
    const [ndr] = ndrPdrGoals(60, 0.1);
    const result = await runSearch(bisectSteps(ndr, 100, 900), device(420));
    // By hand: 900 no, 500 no, 300 yes, 400 yes, 450 no, 425 no; 425 - 400 is 5.9 % of 425.
    assert.deepEqual(
      result.trials.map((trial) => trial.load),
      [900, 500, 300, 400, 450, 425],
    );
    assert.deepEqual([result.lower, result.upper, result.trialSeconds], [400, 425, 360]);
  });

  it('ends at once when the highest load is carried', async () => {
    const [ndr] = ndrPdrGoals(60);
    const result = await runSearch(bisectSteps(ndr, 100, 900), device(900));
    assert.deepEqual([result.lower, result.upper, result.trials.length], [900, undefined, 1]);
  });
});
