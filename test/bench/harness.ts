import { appendFileSync } from 'node:fs';
import { native } from '../../lib/shim/native.js';
import { table } from '../../lib/text/table.js';

const usage = new Float64Array(4);

/** CPU time of this thread, ns: what other programs on the machine take does not count. */
export function cpuNs(): number {
  native.threadUsage(usage);
  return usage[0] + usage[1];
}

/** Someone who does a piece of work; `run` returns the cost or rate of one round in the benchmark's unit. */
export interface Contender {
  name: string;
  run: () => number;
}

export interface Spread {
  median: number;
  min: number;
  max: number;
}

export function spread(values: readonly number[]): Spread {
  const sorted = [...values].sort((x, y) => x - y);
  const middle = sorted.length >> 1;
  const median = sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, min: sorted[0], max: sorted[sorted.length - 1] };
}

/**
 * Lets the contenders take turns, so that a machine that changes its speed changes it for all of them.
 * Returns each one's figures, round by round. The first round warms up and does not count.
 */
export function alternate(contenders: readonly Contender[], rounds: number): Map<string, number[]> {
  const figures = new Map<string, number[]>(contenders.map(({ name }) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    for (const { name, run } of contenders) {
      const figure = run();
      if (round > 0) figures.get(name)!.push(figure);
    }
  }
  return figures;
}

/** Where benchmarks report: a table for people, JSON lines for programs (`--json FILE`). */
export class Report {
  readonly #rows: string[][] = [];

  constructor(
    readonly title: string,
    readonly unit: string,
    readonly jsonFile: string | undefined,
  ) {}

  add(name: string, values: readonly number[], note = ''): void {
    const figures = spread(values);
    const text = (value: number): string => value.toPrecision(4);
    this.#rows.push([name, text(figures.median), `${text(figures.min)} – ${text(figures.max)}`, note]);
    if (this.jsonFile !== undefined) {
      const line = { benchmark: this.title, name, unit: this.unit, ...figures, values, note };
      appendFileSync(this.jsonFile, `${JSON.stringify(line)}\n`);
    }
  }

  print(): void {
    console.log(`\n${this.title}\n${table(['', this.unit, 'min – max', ''], this.#rows, (column) => column === 1)}`);
  }
}
