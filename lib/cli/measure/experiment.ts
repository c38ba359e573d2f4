/** The one shape of the subcommands that run trials: options, a bench, rows for each size, a table, and what it does not say. */
import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { noteOf, type Bench, type BenchLoad, type BenchTrial } from '../../measure/trial/bench.js';
import { cpuMetrics } from '../../measure/trial/cpu.js';
import type { Setup } from '../../measure/trial/setup.js';
import type { Cell, Result, ResultKind } from '../../measure/results/result.js';
import { Emitter, numberColumns } from './emitter.js';
import { helped, type Command } from './measure-cli.js';
import { openBench, type BENCH_OPTIONS } from './open-bench.js';
import { readDestination } from './setup-options.js';

/** What came out of one cell. */
export interface Row extends Pick<Result, 'metrics' | 'units' | 'histogram'> {
  /** Settings that it is told apart by, beside those of the bench. */
  cell?: Cell;
  /** The trial during which the machine's cores were watched. */
  trial?: BenchTrial | undefined;
  /** What goes into the result beside its figures. */
  notes?: readonly (string | undefined)[];
  /** Its row of the table. */
  texts: string[];
  /** The row in short. */
  said: string;
}

/** Where a plan measures: a bench, at one frame size. */
export interface Place {
  setup: Setup;
  bench: Bench;
  size: number;
  /** The size and its place among the others: "64 bytes (1 of 7)". */
  name: string;
  run: (load: Omit<BenchLoad, 'size'>) => Promise<BenchTrial>;
  /** Trials that were run otherwise. */
  ran: (trials: readonly BenchTrial[]) => void;
  progress: (text: string) => void;
  /** A line about this size below the table. */
  remark: (text: string) => void;
  /** A message that comes at once. */
  tell: (text: string) => void;
}

/** What a command line asks for. */
export interface Plan {
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

export interface Experiment<Name extends string> {
  kind: ResultKind;
  /** The help above and below the options. */
  help: readonly [above: string, below?: string];
  options: OptionTable<Name>;
  heads: readonly string[];
  /** @throws UsageError */
  plan: (line: CommandLine<Name>) => Plan;
}

type Needed = Exclude<keyof typeof BENCH_OPTIONS, 'tx' | 'rx'>;

/** The subcommand; it returns 1 when lost frames are in no counter, or a size could not be measured. */
export function experiment<Name extends string>(what: Experiment<Name | Needed>): Command {
  const [above, below] = what.help;
  const help = `${above}\n\n${optionsHelp(what.options)}\n${below === undefined ? '' : `\n${below}\n`}`;
  return async (args, io) => {
    const line = new CommandLine<Name | Needed>(what.options, args);
    if (helped(line, io, help)) return 0;
    const plan = what.plan(line);
    const to = readDestination(line);
    const { setup, bench } = plan.open?.() ?? (await openBench(line as CommandLine<keyof typeof BENCH_OPTIONS>));
    const trials: BenchTrial[] = [];
    const remarks: string[] = [];
    try {
      const emitter = new Emitter({ ...to, rate: setup.rate }, io, numberColumns(...what.heads));
      emitter.tellRepeats(what.kind);
      emitter.say(`${bench.title}\n${plan.about(bench.directions === 1 ? 'one way' : 'both ways')}\n\n`);
      for (const [i, size] of setup.sizes.entries()) {
        const place = setup.sizes.length === 1 ? '' : ` (${i + 1} of ${setup.sizes.length})`;
        const at: Place = {
          setup,
          bench,
          size,
          name: `${size} bytes${place}`,
          async run(load) {
            const trial = await bench.run({ size, ...load });
            trials.push(trial);
            return trial;
          },
          ran: (some) => trials.push(...some),
          progress: (text) => {
            emitter.progress(text);
          },
          remark: (text) => remarks.push(`${size} bytes${text}`),
          tell(text) {
            emitter.progress('');
            io.err(`${text}\n`);
          },
        };
        for await (const { cell, metrics, trial, notes = [], texts, said, ...more } of plan.measure(at)) {
          const cores = trial?.cores;
          emitter.add(
            {
              kind: what.kind,
              cell: { ...bench.cell(size), ...cell },
              metrics: { ...metrics, ...cpuMetrics(cores ?? []) },
              ...more,
              ...noteOf(...notes),
              ...(cores && { cores }),
            },
            texts,
            said,
          );
        }
      }
      emitter.end([...(remarks.length === 0 ? [] : [remarks.join('\n')]), ...plan.end(trials)]);
    } finally {
      await bench.close();
    }
    return plan.failed?.() === true || trials.some(({ unexplained }) => unexplained > 0) ? 1 : 0;
  };
}
