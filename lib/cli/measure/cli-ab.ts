import { fileURLToPath } from 'node:url';
import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { signalNumber } from '../signals.js';
import { UsageError } from '../../text/errors.js';
import { countText, formatNumber, formatShare } from '../../text/format.js';
import { parseCountWithin } from '../../text/units.js';
import { concludeComparison, JUDGE_OPTIONS, readJudge } from './cli-compare.js';
import { helped, parseNames, parsePart, type Command, type Output } from './measure-cli.js';
import { spanText } from './cli-matrix.js';
import {
  abDigest,
  abState,
  POWER,
  ROUND_RUNS,
  runsLeft,
  type AbNext,
  type AbOptions,
  type AbSide,
  type AbState,
} from '../../measure/compare/ab.js';
import { CommandError, runCommand, saidBy, splitWords, type Words } from '../../measure/matrix/matrix-command.js';
import { primaryMetric } from '../../measure/results/metrics.js';
import { cellKey, type Result, type ResultLine } from '../../measure/results/result.js';
import { appendResults, parseResult, readResults } from '../../measure/results/results.js';

const DEFAULTS = { find: 0.05, most: 40, timeout: 3600 };

const OPTIONS = {
  out: { value: 'FILE', help: 'Append each run to FILE (needed); the same command goes on where it ended.' },
  find: {
    value: 'PERCENT',
    help:
      `The smallest change to be found, ${formatNumber(POWER * 10)} times in 10; how many runs that takes is worked out from ` +
      `the noise. Default: ${formatShare(DEFAULTS.find)}.`,
  },
  most: { value: 'N', help: `Runs of each side at most. Default: ${DEFAULTS.most}.` },
  seed: { value: 'N', help: 'What the order is drawn from. Default: random; it is printed and kept in the results.' },
  ...JUDGE_OPTIONS,
} as const satisfies OptionTable;

const HELP = `Usage: measure ab [options] --out FILE 'BEFORE-COMMAND' 'AFTER-COMMAND'

Measures two set-ups in turn and says whether they differ. Runs come in rounds of ${ROUND_RUNS} of each in random order, so that
whatever else the machine does meets both alike, and are ranked within their round. How many runs a change of --find
takes is worked out without looking at which side a run is of; there are as many rounds, or one look where it is clear.

A command is a line of words, quotes as in a shell but none started: 'measure --size 64 -i sim:a -i sim:b', where measure is
this very program, or any other that prints result lines (docs/results.md), such as another build of it with --json.

${optionsHelp(OPTIONS)}

Exit code: 0 done, 1 a run failed or --fail-on found a cell, 2 wrong usage, 128 + signal when interrupted.
`;

/** One set-up: the words as given, which are kept, and those that are run. */
interface SetUp {
  words: Words;
  argv: Words;
}

const TOOL = fileURLToPath(new URL('../../../tools/measure.js', import.meta.url));

/** @throws UsageError */
function readSetUp(line: string): SetUp {
  const words = splitWords(line);
  if (words[0] !== 'measure') return { words, argv: words };
  if (['ab', 'matrix', 'compare', 'report'].includes(words[1] ?? ''))
    throw new UsageError(
      `'${line}': measure ${words[1]} is no single run; name one that measures, such as measure --size 64`,
    );
  const json = words.includes('--json') ? [] : ['--json'];
  return { words, argv: [process.execPath, TOOL, ...words.slice(1), ...json] };
}

/** One run's results, as the command printed them. @throws CommandError when it failed or printed none */
async function measured({ argv }: SetUp, signal: AbortSignal): Promise<Result[]> {
  const result = await runCommand(argv, DEFAULTS.timeout * 1000, signal);
  if (result.status !== 0) throw new CommandError(argv, saidBy(result));
  const lines = result.stdout.split('\n').filter((text) => text.trim() !== '');
  if (lines.length === 0) throw new CommandError(argv, 'printed no result; it must print result lines (--json)');
  try {
    const results = lines.map((text) => parseResult(text, 'what was printed'));
    const cells = new Set(results.map(({ kind, cell }) => `${kind} ${cellKey(cell)}`));
    if (cells.size < results.length) throw new UsageError('a cell was printed twice: one run has one value of each');
    return results;
  } catch (error) {
    throw new CommandError(argv, (error as Error).message);
  }
}

class Ab {
  readonly #lines: ResultLine[] = [];
  readonly #digest: string;
  readonly #seed: number;
  #tookMs = 0;
  #runs = 0;

  constructor(
    readonly setUps: Readonly<Record<AbSide, SetUp>>,
    readonly out: string,
    seed: number | undefined,
    readonly options: AbOptions,
    readonly io: Output,
  ) {
    this.#digest = abDigest(setUps.before.words, setUps.after.words);
    const notice = appendResults(out, []);
    if (notice !== undefined) io.err(`${notice}\n`);
    const earlier = readResults(out).lines.filter(({ result }) => result.ab !== undefined);
    if (earlier.some(({ result }) => result.ab!.digest !== this.#digest))
      throw new UsageError(`--out ${out}: has runs of other commands; name another file`);
    this.#lines.push(...earlier);
    const drawn = earlier.at(0)?.result.ab?.seed;
    if (drawn !== undefined && seed !== undefined && drawn !== seed)
      throw new UsageError(
        `--seed ${seed}: the runs in ${out} are of seed ${drawn}; leave it out, or name another file`,
      );
    this.#seed = drawn ?? seed ?? Math.floor(Math.random() * 2 ** 32);
  }

  /** Measures until there is a judgement. */
  async run(signal: AbortSignal): Promise<AbState> {
    const earlier = new Set(this.#lines.map(({ result: { ab } }) => `${ab!.round} ${ab!.place}`)).size;
    const done = earlier === 0 ? '' : `, ${countText(earlier, 'run')} done earlier`;
    this.io.err(
      `rounds of ${ROUND_RUNS} runs of each side in random order, seed ${this.#seed}${done}; results in ${this.out}\n`,
    );
    for (;;) {
      const state = abState(this.#lines, this.options);
      this.#tell(state);
      if (state.result !== undefined) return state;
      const round = state.runs / ROUND_RUNS;
      for (const next of runsLeft(this.#lines, this.#seed, round)) await this.#one(next, signal);
    }
  }

  async #one({ side, round, place, repeat }: AbNext, signal: AbortSignal): Promise<void> {
    const began = performance.now();
    const { words } = this.setUps[side];
    const ab = { digest: this.#digest, seed: this.#seed, round, place, ran: [...words] };
    const results = (await measured(this.setUps[side], signal)).map((result): Result => {
      return { ...result, cell: { ...result.cell, side }, repeat, ab };
    });
    appendResults(this.out, results);
    this.#lines.push(...results.map((result) => ({ file: this.out, line: this.#lines.length + 1, result })));
    this.#tookMs += performance.now() - began;
    this.#runs++;
    const said = results.map((result) => {
      const metric = primaryMetric(result);
      return metric === undefined ? 'done' : `${metric} ${formatNumber(result.metrics[metric])}`;
    });
    this.io.err(`round ${round + 1}, run ${place + 1} of ${2 * ROUND_RUNS}, ${side}: ${said.join(', ')}\n`);
  }

  #tell({ runs, needed, result }: AbState): void {
    if (runs === 0) return;
    const { find, most } = this.options;
    const head = `${countText(runs, 'run')} of each`;
    if (result !== undefined && runs < Math.min(needed, most)) {
      this.io.err(`${head}: they show it clearly\n`);
      return;
    }
    const change = `a change of ${formatShare(find)}`;
    const takes = Number.isFinite(needed)
      ? `to find ${change}, ${needed} of each are needed`
      : `where some are 0, it is not known how many find ${change}`;
    const left = Math.min(needed, most) - runs;
    const seconds = (2 * left * this.#tookMs) / Math.max(1, this.#runs) / 1000;
    const more = result === undefined ? `; ${left} more, about ${spanText(seconds)}` : '';
    const short = needed > most ? `; with --most ${most} one may be missed` : '';
    this.io.err(`${head}: ${takes}${short}${more}\n`);
  }
}

/** `measure ab`. Returns the exit code. @throws UsageError */
export const runAb: Command = async (args, io, stop = new AbortController().signal) => {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, HELP)) return 0;
  const { positionals } = line;
  if (positionals.length !== 2)
    throw new UsageError(
      `${countText(positionals.length, 'command')} given; name two, each in quotes, such as 'measure --size 64 --burst 64'`,
    );
  const judge = readJudge(line);
  const out = line.read('out', String);
  if (out === undefined)
    throw new UsageError('--out FILE is needed: runs are kept there, and the same command goes on');
  const find = line.read('find', parsePart) ?? DEFAULTS.find;
  const most = line.read('most', (text) => parseCountWithin(text, ROUND_RUNS, 1000)) ?? DEFAULTS.most;
  const seed = line.read('seed', (text) => parseCountWithin(text, 0, 0xffffffff));
  const metrics = line.read('metric', parseNames);
  const [before, after] = positionals.map(readSetUp);
  const ab = new Ab({ before, after }, out, seed, { find, most, ...(metrics && { metrics }) }, io);
  try {
    const { result } = await ab.run(stop);
    return concludeComparison(result!, judge, io);
  } catch (error) {
    if (!(error instanceof CommandError)) throw error;
    if (stop.aborted) {
      io.err(`interrupted; the runs so far are in ${out}: the same command goes on\n`);
      return 128 + signalNumber(stop.reason as NodeJS.Signals);
    }
    io.err(`measure ab: ${error.message}; the runs so far are in ${out}: the same command goes on\n`);
    return 1;
  }
};
