/** Whether the machine was as busy on one side as on the other: what differs may be that, and not what was changed. */
import { smallestP, stratifiedTest, median, type Pair } from '../../stats/rank.js';
import type { Result, ResultLine } from '../results/result.js';

/** What a result tells of the machine while it was measured, and by how much it has to differ to be told. */
interface Sign {
  what: string;
  unit: string;
  of: (result: Result) => number | undefined;
  differs: (before: number, after: number) => boolean;
}

const CPU_SHARES = ['cpu_user_share', 'cpu_system_share', 'cpu_irq_share', 'cpu_softirq_share'];

const SIGNS: readonly Sign[] = [
  {
    what: 'cores busy, whoever used them',
    unit: '',
    of: ({ metrics }) =>
      CPU_SHARES.every((name) => name in metrics)
        ? CPU_SHARES.reduce((sum, name) => sum + metrics[name], 0)
        : undefined,
    differs: (before, after) => Math.abs(after - before) >= 0.25,
  },
  {
    what: 'time that the thread waited for a CPU',
    unit: '%',
    of: ({ metrics }) => ('cpu_wait_share' in metrics ? 100 * metrics.cpu_wait_share : undefined),
    differs: (before, after) => Math.abs(after - before) >= 1,
  },
  {
    what: 'longest gap',
    unit: 'µs',
    of: ({ metrics }) => ('longest_gap_us' in metrics ? metrics.longest_gap_us : undefined),
    differs: (before, after) => Math.max(before, after) >= 3 * Math.min(before, after) + 100,
  },
];

/** A sign that differs; medians of the cells' medians. */
export interface Uneven {
  what: string;
  unit: string;
  before: number;
  after: number;
}

/** What differs between the sides of all cells by more than chance, or, with too few runs to tell, by much. */
export function unevenness(cells: readonly (readonly [ResultLine[], ResultLine[]])[], alpha: number): Uneven[] {
  return SIGNS.flatMap(({ what, unit, of, differs }) => {
    const values = (lines: readonly ResultLine[]): number[] => lines.flatMap(({ result }) => of(result) ?? []);
    const pairs = cells
      .map(([before, after]): Pair => [values(before), values(after)])
      .filter(([before, after]) => before.length > 0 && after.length > 0);
    if (pairs.length === 0) return [];
    const [before, after] = [0, 1].map((side) => median(pairs.map((pair) => median(pair[side]))));
    const tellable = smallestP(...pairs.map(([was, is]) => [was.length, is.length] as const)) <= alpha;
    const chance = tellable && stratifiedTest(pairs).p > alpha;
    return !chance && differs(before, after) ? [{ what, unit, before, after }] : [];
  });
}
