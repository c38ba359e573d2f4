import { statSync } from 'node:fs';
import { table } from '../../text/table.js';
import type { Output } from './measure-cli.js';
import { repeatsText } from '../../measure/compare/compare-text.js';
import { appendResults, readResults } from '../../measure/results/results.js';
import { cellKey, RESULT_VERSION, type Cell, type Result, type ResultKind } from '../../measure/results/result.js';
import type { Destination } from './setup-options.js';
import { describeSurroundings, type Surroundings } from '../../measure/results/surroundings.js';

/** Where results go: to the terminal as table, JSON lines or CSV, and to a result file as each one comes. */
export class Emitter {
  readonly results: Result[] = [];
  readonly #rows: string[][] = [];
  /** Times that cells were measured, by kind and cell: in the file, and by this run. */
  readonly #repeats = new Map<ResultKind, Map<string, number>>();
  #heading: string[] = [];
  readonly #surroundings: Surroundings = describeSurroundings();

  constructor(
    readonly to: Destination & { rate: number },
    readonly io: Output,
    /** Headings of the table; they break at `\n`. */
    readonly heads: readonly string[],
  ) {
    // A file that cannot be written is told before anything is measured, not after.
    if (to.out === undefined) return;
    this.#tell(appendResults(to.out, []));
    for (const { kind, cell } of earlierIn(to.out)) this.#count(kind, cell);
  }

  /** How often the cell was measured before; it now is once more. */
  #count(kind: ResultKind, cell: Cell): number {
    const counts = this.#repeats.get(kind) ?? new Map<string, number>();
    const key = cellKey(cell);
    const repeat = counts.get(key) ?? 0;
    this.#repeats.set(kind, counts.set(key, repeat + 1));
    return repeat;
  }

  /** Says how many repeats a comparison needs where the file has some, and with this run still too few. */
  tellRepeats(kind: ResultKind): void {
    const counts = [...(this.#repeats.get(kind)?.values() ?? [])];
    const few = counts.length === 0 ? '' : repeatsText(counts.length, Math.min(...counts) + 1);
    if (few !== '') this.io.err(`${this.to.out}: ${few} with this run\n`);
  }

  #tell(notice: string | undefined): void {
    if (notice !== undefined) this.io.err(`${notice}\n`);
  }

  /** Text for people; nothing where the output is for programs. */
  say(text: string): void {
    if (this.to.format === 'table') this.io.out(text);
  }

  /** One line on a terminal that the next one replaces; nothing where stderr is not a terminal. */
  progress(text: string): void {
    if (process.stderr.isTTY) process.stderr.write(`\r\x1b[K${text}`);
  }

  /**
   * @param cells the row of the table
   * @param said the row in short: told at once where no line on a terminal has shown the progress
   */
  add(result: Pick<Result, 'kind' | 'cell' | 'metrics'> & Partial<Result>, cells: string[], said: string): void {
    this.progress('');
    if (!process.stderr.isTTY) this.io.err(`${said}\n`);
    const { format, out, rate } = this.to;
    const whole: Result = {
      v: RESULT_VERSION,
      repeat: this.#count(result.kind, result.cell),
      ...result,
      ...(Number.isFinite(rate) ? { link_gbps: rate / 1e9 } : {}),
      surroundings: this.#surroundings,
      time: new Date().toISOString(),
    };
    if (out !== undefined) this.#tell(appendResults(out, [whole]));
    if (format === 'json') this.io.out(`${JSON.stringify(whole)}\n`);
    if (format === 'csv') {
      const { cell, metrics } = whole;
      const shown = Object.fromEntries(Object.entries(cell).filter(([axis]) => axis === 'size' || axis === 'load'));
      this.#csv({ ...shown, ...metrics });
    }
    this.results.push(whole);
    this.#rows.push(cells);
  }

  /** A row under its heading: what it lacks is left empty, and one that has more than the heading gets another. */
  #csv(line: Readonly<Record<string, string | number | boolean>>): void {
    if (Object.keys(line).some((key) => !this.#heading.includes(key))) {
      this.#heading = Object.keys(line);
      this.io.out(`${this.#heading.join(',')}\n`);
    }
    const values = new Map(Object.entries(line));
    this.io.out(`${this.#heading.map((key) => String(values.get(key) ?? '')).join(',')}\n`);
  }

  /** Prints the table, and below it what the figures do not say by themselves. */
  end(remarks: readonly string[] = []): void {
    if (this.to.format !== 'table') return;
    const { result = this.io.out } = this.io;
    const rows = this.#rows.length === 0 ? [] : [table(this.heads, this.#rows, () => true)];
    result([...rows, ...remarks.map((remark) => `\n${remark}`), ''].join('\n'));
  }
}

/** Results that a file has already; a device has none, and may have no end. */
function earlierIn(file: string): Result[] {
  return statSync(file).isFile() ? readResults(file).lines.map(({ result }) => result) : [];
}
