/** The one shape of the subcommands that run trials: options, a bench, rows for each size, a table, and what it does not say. */
import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import {
  machineMetrics,
  noteOf,
  waitNote,
  type Bench,
  type BenchLoad,
  type BenchTrial,
} from '../../measure/trial/bench.js';
import { strictBench } from '../../measure/trial/strict.js';
import { Interrupted } from '../../measure/trial/trial.js';
import type { Setup } from '../../measure/trial/setup.js';
import { countText } from '../../text/format.js';
import { bitRateColumn, formatTime, frameRateColumn, type FrameSize, type RateColumn } from '../../text/units.js';
import { EXIT } from '../exit.js';
import type { Cell, Result, ResultKind } from '../../measure/results/result.js';
import { Emitter } from './emitter.js';
import { helped, type Command } from './measure-cli.js';
import { openBench, type BENCH_OPTIONS } from './open-bench.js';
import { readDestination } from './setup-options.js';

/** What came out of one cell. */
interface Row extends Pick<Result, 'metrics' | 'units' | 'histogram'> {
  /** Settings that it is told apart by, beside those of the bench. */
  cell?: Cell;
  /** The trial during which the machine's cores were watched. */
  trial?: BenchTrial | undefined;
  /** What goes into the result beside its figures. */
  notes?: readonly (string | undefined)[];
  /** Its row of the table, behind the frame size. */
  texts: string[];
  /** The row in short. */
  said: string;
}

/** How a table writes its rates. */
export interface Units {
  frames: RateColumn;
  /** Bits on the wire. */
  bits: RateColumn;
}

/** Units in which the rates of the frame size that has the least of them are still told apart. */
function unitsOf({ sizes, rate }: Setup, bench: Bench): Units {
  const most = Math.min(...sizes.map((size) => bench.maxLoad(size)));
  return { frames: frameRateColumn(most), bits: bitRateColumn(rate) };
}

/** Where a plan measures: a bench, at one frame size. */
export interface Place {
  setup: Setup;
  bench: Bench;
  units: Units;
  size: FrameSize;
  /** The size and its place among the others: "64 bytes (1 of 7)". */
  name: string;
  /** One trial. Asked to stop, it has counted until then. @throws Interrupted where it had not begun to count */
  run: (load: Omit<BenchLoad, 'size'>) => Promise<BenchTrial>;
  /** For searches: a wish to stop. */
  stop: AbortSignal;
  /** Trials that were run otherwise. */
  ran: (trials: readonly BenchTrial[]) => void;
  progress: (text: string) => void;
  /** A line about this size below the table. */
  remark: (text: string) => void;
  /** A message that comes at once. */
  tell: (text: string) => void;
}

/** What a command line asks for. */
interface Plan {
  /** Opens what is measured. Default: what the options of a bench describe. */
  open?: () => { setup: Setup; bench: Bench };
  /** What is done, for people. */
  about: (ways: string) => string;
  measure: (at: Place) => AsyncGenerator<Row, void, void>;
  /** What the figures of all sizes do not say by themselves, in paragraphs; below the remarks. */
  end: (trials: readonly BenchTrial[]) => string[];
  /** Whether a size could not be measured. */
  failed?: () => boolean;
}

interface Experiment<Name extends string> {
  kind: ResultKind;
  /** The help above and below the options. */
  help: readonly [above: string, below?: string];
  options: OptionTable<Name>;
  /** Headings of the table, behind that of the frame size, whose rates are in these units; they break at `\n`. */
  heads: (units: Units) => string[];
  /** @throws UsageError */
  plan: (line: CommandLine<Name>) => Plan;
}

type Needed = Exclude<keyof typeof BENCH_OPTIONS, 'tx' | 'rx'>;

/** One run of a subcommand on an open bench. */
class Run {
  readonly trials: BenchTrial[] = [];
  readonly remarks: string[] = [];
  /** Length of the trial that a wish to stop cut short, seconds. */
  #cut: number | undefined;

  constructor(
    readonly kind: ResultKind,
    readonly plan: Plan,
    readonly setup: Setup,
    readonly bench: Bench,
    readonly units: Units,
    readonly emitter: Emitter,
    readonly stop: AbortSignal,
  ) {}

  /** Measures until all sizes are done, or it is asked to stop. Returns how many sizes are done. */
  async measure(): Promise<number> {
    const { sizes } = this.setup;
    for (const [i, size] of sizes.entries()) {
      const at = this.#place(size, sizes.length === 1 ? '' : ` (${i + 1} of ${sizes.length})`);
      try {
        for await (const row of this.plan.measure(at)) this.#add(size, row);
      } catch (error) {
        if (!(error instanceof Interrupted)) throw error;
      }
      if (this.stop.aborted) return i;
    }
    return sizes.length;
  }

  #place(size: FrameSize, which: string): Place {
    const { setup, bench, units, emitter, stop } = this;
    return {
      setup,
      bench,
      units,
      size,
      stop,
      name: `${size} bytes${which}`,
      run: async (load) => {
        const trial = await bench.run({ size, signal: stop, ...load });
        if (stop.aborted) this.#cut = trial.seconds;
        this.trials.push(trial);
        return trial;
      },
      ran: (some) => this.trials.push(...some),
      progress: (text) => {
        emitter.progress(text);
      },
      remark: (text) => this.remarks.push(`${size} bytes${text}`),
      tell: (text) => {
        emitter.progress('');
        emitter.io.err(`${text}\n`);
      },
    };
  }

  #add(size: FrameSize, { cell, metrics, trial, notes = [], texts, said, ...more }: Row): void {
    const cores = trial?.cores;
    const cut = this.#interrupted();
    const waited = trial && waitNote(trial);
    for (const note of [cut, waited]) if (note !== undefined) this.remarks.push(`${size} bytes: ${note}.`);
    this.emitter.add(
      {
        kind: this.kind,
        cell: { ...this.bench.cell(size), ...cell },
        metrics: { ...metrics, ...(trial && machineMetrics(trial)) },
        ...more,
        ...noteOf(...notes, cut, waited),
        ...(cores && { cores }),
      },
      [String(size), ...texts],
      said,
    );
  }

  /** What is to be known of figures that were to be more. */
  #interrupted(): string | undefined {
    if (!this.stop.aborted) return undefined;
    return this.#cut === undefined ? 'interrupted' : `interrupted after ${formatTime(this.#cut * 1e9)}`;
  }
}

/**
 * The subcommand; it returns 1 when lost frames are in no counter, or a size could not be measured. Asked to stop, it
 * ends with what it has.
 */
export function experiment<Name extends string>(what: Experiment<Name | Needed>): Command {
  const [above, below] = what.help;
  const help = `${above}\n\n${optionsHelp(what.options)}\n${below === undefined ? '' : `\n${below}\n`}`;
  return async (args, io, stop = new AbortController().signal) => {
    const line = new CommandLine<Name | Needed>(what.options, args);
    if (helped(line, io, help)) return EXIT.ok;
    const plan = what.plan(line);
    const to = readDestination(line);
    const open = plan.open ?? (() => openBench(line as CommandLine<keyof typeof BENCH_OPTIONS>, stop));
    const opened = await orInterrupted(open);
    if (opened === undefined) {
      io.err('interrupted before anything was measured\n');
      return EXIT.ok;
    }
    const { setup } = opened;
    const bench = line.has('strict') ? strictBench(opened.bench) : opened.bench;
    try {
      const units = unitsOf(setup, bench);
      const emitter = new Emitter({ ...to, rate: setup.rate }, io, ['size\nbytes', ...what.heads(units)]);
      emitter.tellRepeats(what.kind);
      emitter.say(`${bench.title}\n${plan.about(bench.directions === 1 ? 'one way' : 'both ways')}\n\n`);
      const run = new Run(what.kind, plan, setup, bench, units, emitter, stop);
      const done = await run.measure();
      const { trials, remarks } = run;
      emitter.progress('');
      emitter.end([...(remarks.length === 0 ? [] : [remarks.join('\n')]), ...plan.end(trials)]);
      if (stop.aborted) io.err(`interrupted: ${done} of ${countText(setup.sizes.length, 'size')} done\n`);
      return plan.failed?.() === true || trials.some(({ unexplained }) => unexplained > 0) ? EXIT.failed : EXIT.ok;
    } finally {
      await bench.close();
    }
  };
}

/** What `open` gives; nothing where a wish to stop came first. */
async function orInterrupted<T>(open: () => T | Promise<T>): Promise<T | undefined> {
  try {
    return await open();
  } catch (error) {
    if (error instanceof Interrupted) return undefined;
    throw error;
  }
}
