/** What a command of a matrix measured, read from what it printed. */
import { UsageError } from '../../text/errors.js';
import { readIperf3 } from './iperf3.js';
import { ReadingError, type Measured } from './measured.js';
import { parseResult } from '../results/results.js';

/** How one number is found in a command's output. */
export type Source = { how: 'number' } | { how: 'json'; path: string } | { how: 'match'; pattern: RegExp };

/** How a command's output is read. */
export type Reading = 'iperf3' | 'results' | ReadonlyMap<string, Source>;

/**
 * Reads a source as a matrix file gives it: `number`, `json:PATH` or `match:REGEXP`.
 * @throws UsageError
 */
export function parseSource(text: string): Source {
  if (text === 'number') return { how: 'number' };
  const [, how, rest] = /^(json|match):(.+)$/s.exec(text) ?? [];
  if (how === 'json') return { how, path: rest };
  if (how === 'match') {
    try {
      return { how, pattern: new RegExp(rest, 'm') };
    } catch (error) {
      throw new UsageError((error as Error).message);
    }
  }
  throw new UsageError(
    `expected "number", "json:" and a path such as json:end.sum.bits_per_second, or "match:" and a regular expression`,
  );
}

const shorten = (text: string): string => {
  const one = text.trim().replace(/\s+/g, ' ');
  return one === '' ? 'nothing' : one.length > 80 ? `'${one.slice(0, 80)}…'` : `'${one}'`;
};

function asNumber(text: string): number | undefined {
  const value = text.trim() === '' ? NaN : Number(text);
  return Number.isFinite(value) ? value : undefined;
}

function jsonAt(stdout: string, path: string): unknown {
  let value: unknown;
  try {
    value = JSON.parse(stdout);
  } catch {
    throw new ReadingError(`printed ${shorten(stdout)}, which is not JSON`);
  }
  let at = '';
  for (const key of path.split('.')) {
    at += at === '' ? key : `.${key}`;
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key))
      throw new ReadingError(`there is no ${at} in the JSON that was printed`);
    value = (value as Record<string, unknown>)[key];
  }
  return value;
}

function readSource(source: Source, stdout: string): number {
  if (source.how === 'json') {
    const value = jsonAt(stdout, source.path);
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    throw new ReadingError(`${source.path} in the JSON that was printed is not a number`);
  }
  if (source.how === 'match') {
    const match = source.pattern.exec(stdout);
    const value = match === null ? undefined : asNumber(match.at(1) ?? match[0]);
    if (value !== undefined) return value;
    throw new ReadingError(`${String(source.pattern)} finds no number in ${shorten(stdout)}`);
  }
  const text = /[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?/.exec(stdout)?.[0];
  const value = text === undefined ? undefined : asNumber(text);
  if (value !== undefined) return value;
  throw new ReadingError(`there is no number in what was printed: ${shorten(stdout)}`);
}

/** One result line as measure prints with --json. */
function readOwn(stdout: string): Measured {
  const lines = stdout.split('\n').filter((line) => line.trim() !== '');
  if (lines.length !== 1)
    throw new ReadingError(`printed ${lines.length} lines where one result was expected: measure one size a cell`);
  const { metrics, units, samples, sample_s, histogram, link_gbps, note, cores } = parseResult(
    lines[0],
    'what was printed',
  );
  return {
    metrics,
    ...(units && { units }),
    ...(samples && { samples }),
    ...(sample_s !== undefined && { sample_s }),
    ...(histogram && { histogram }),
    ...(link_gbps !== undefined && { link_gbps }),
    ...(note !== undefined && { note }),
    ...(cores && { cores }),
  };
}

/**
 * Reads what a command printed.
 * @throws ReadingError when it is not what `reading` expects
 */
export function readOutput(reading: Reading, stdout: string): Measured {
  if (reading === 'iperf3') return readIperf3(stdout);
  if (reading === 'results') return readOwn(stdout);
  return { metrics: Object.fromEntries([...reading].map(([metric, source]) => [metric, readSource(source, stdout)])) };
}
