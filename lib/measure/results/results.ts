/** Result files: read with every field checked, and added to so that no crash leaves a line in the middle damaged. */
import { closeSync, constants, fdatasyncSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs';
import { UsageError } from '../../text/errors.js';
import { readText, unwritable } from './files.js';
import { Histogram, type HistogramJson } from '../../stats/histogram.js';
import { KINDS, RESULT_VERSION, type Metric, type Result, type ResultKind, type ResultLine } from './result.js';

interface ResultFile {
  lines: ResultLine[];
  /** What was skipped and why, ready to print. */
  notices: string[];
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

const isScalar = (value: unknown): boolean => ['string', 'number', 'boolean'].includes(typeof value);
const isNumber = (value: unknown): boolean => Number.isFinite(value);
const isNumbers = (value: unknown): boolean => Array.isArray(value) && value.every(isNumber);
const optional =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    value === undefined || check(value);
const recordOf =
  (check: (value: unknown) => boolean) =>
  (value: unknown): boolean =>
    isRecord(value) && Object.values(value).every(check);

/** Whether `value` is what the field `units` holds for one metric. */
export function isMetric(value: unknown): value is Metric {
  return (
    isRecord(value) &&
    typeof value.unit === 'string' &&
    optional((label) => typeof label === 'string')(value.label) &&
    [undefined, 'higher', 'lower'].includes(value.better as undefined) &&
    [undefined, 'ratio', 'difference'].includes(value.scale as undefined) &&
    optional(isNumber)(value.matters)
  );
}

function isHistogram(value: unknown): boolean {
  if (
    !isRecord(value) ||
    value.unit !== 'ns' ||
    !['count', 'min', 'max', 'sum', 'negative'].every((key) => isNumber(value[key]))
  ) {
    return false;
  }
  if (
    !Array.isArray(value.buckets) ||
    !value.buckets.every((pair) => isNumbers(pair) && (pair as number[]).length === 2)
  )
    return false;
  try {
    Histogram.fromJSON(value as unknown as HistogramJson);
    return true;
  } catch (error) {
    if (error instanceof RangeError) return false;
    throw error;
  }
}

function isMatrixRun(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value.name === 'string' &&
    typeof value.digest === 'string' &&
    isNumber(value.seed) &&
    Array.isArray(value.ran) &&
    value.ran.every((word) => typeof word === 'string')
  );
}

const isPlace = (value: unknown): boolean => Number.isSafeInteger(value) && (value as number) >= 0;

function isAbRun(value: unknown): boolean {
  return (
    isRecord(value) &&
    typeof value.digest === 'string' &&
    isPlace(value.seed) &&
    isPlace(value.round) &&
    isPlace(value.place) &&
    Array.isArray(value.ran) &&
    value.ran.every((word) => typeof word === 'string')
  );
}

const FIELDS: [name: keyof Result, check: (value: unknown) => boolean, wanted: string][] = [
  ['kind', (value) => KINDS.includes(value as ResultKind), `one of ${KINDS.join(', ')}`],
  ['cell', recordOf(isScalar), 'an object of strings, numbers and booleans'],
  ['repeat', isPlace, 'a whole number from 0'],
  ['metrics', recordOf(isNumber), 'an object of finite numbers'],
  ['units', optional(recordOf(isMetric)), 'an object of {unit, label?, better?, scale?, matters?}'],
  ['samples', optional(recordOf(isNumbers)), 'an object of arrays of finite numbers'],
  ['sample_s', optional((value) => isNumber(value) && (value as number) > 0), 'a number above 0'],
  ['histogram', optional(isHistogram), 'a histogram whose parts fit together'],
  ['link_gbps', optional((value) => isNumber(value) && (value as number) > 0), 'a number above 0'],
  ['note', optional((value) => typeof value === 'string'), 'a string'],
  ['matrix', optional(isMatrixRun), '{name, digest, seed, ran}'],
  ['ab', optional(isAbRun), '{digest, seed, round, place, ran}'],
  ['surroundings', optional(isRecord), 'an object'],
  ['time', (value) => typeof value === 'string' && !Number.isNaN(Date.parse(value)), 'an ISO 8601 time'],
];

/** Checks a parsed line. Throws UsageError that begins with `where`. */
function checkResult(value: unknown, where: string): Result {
  if (!isRecord(value)) throw new UsageError(`${where}: not a result: each line must hold a JSON object`);
  const { v } = value;
  if (typeof v === 'number' && v > RESULT_VERSION) {
    const advice = `this version reads up to ${RESULT_VERSION}: read it with the newer version that wrote it`;
    throw new UsageError(`${where}: written in version ${v} of the result format; ${advice}`);
  }
  if (v !== RESULT_VERSION) throw new UsageError(`${where}: not a result: no "v": ${RESULT_VERSION} in it`);
  for (const [name, check, wanted] of FIELDS) {
    if (!check(value[name])) throw new UsageError(`${where}: "${name}" must be ${wanted}`);
  }
  return withoutUnmeasured(value as unknown as Result);
}

/** Earlier versions wrote 0 where the thread slept between turns and its time was not known: no frame costs nothing. */
const NEVER_ZERO = ['frame_ns', 'frame_cycles', 'busy_share'];

function withoutUnmeasured(result: Result): Result {
  const metrics = Object.entries(result.metrics).filter(([name, value]) => value !== 0 || !NEVER_ZERO.includes(name));
  return { ...result, metrics: Object.fromEntries(metrics) };
}

/** What Python and others write where a number is none; JSON has no such word. */
const NO_NUMBER = /[[,:]\s*(NaN|-?Infinity)\s*[,\]}]/;

const STRINGS = /"(?:[^"\\]|\\.)*"/g;

/** Why a line that is no JSON is none, with the remedy; undefined where nothing more is known. */
function noNumber(text: string): string | undefined {
  const word = NO_NUMBER.exec(text.replace(STRINGS, '""'))?.[1];
  return word === undefined ? undefined : `${word} is no number in JSON: leave out a metric that could not be measured`;
}

function parseJson(text: string): { value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/** Reads one line of a result file. Throws UsageError that begins with `where`. */
export function parseResult(text: string, where: string): Result {
  const json = parseJson(text);
  if (!json) throw new UsageError(`${where}: ${noNumber(text) ?? 'damaged: not JSON'}`);
  return checkResult(json.value, where);
}

/**
 * Reads a result file. A last line that was cut off (the writer was killed) is skipped and told in `notices`.
 * Throws UsageError naming file and line for a damaged line elsewhere, a field that is not as docs/results.md says, or a newer version.
 */
export function readResults(file: string): ResultFile {
  const lines: ResultLine[] = [];
  const notices: string[] = [];
  const texts = readText(file, 'a result file written by measure').split('\n');
  const last = texts.findLastIndex((text) => text.trim() !== '');
  for (const [index, text] of texts.entries()) {
    if (text.trim() === '') continue;
    const where = `${file}:${index + 1}`;
    const json = parseJson(text);
    if (json) {
      lines.push({ file, line: index + 1, result: checkResult(json.value, where) });
    } else if (noNumber(text) !== undefined) {
      throw new UsageError(`${where}: ${noNumber(text)}`);
    } else if (index === last) {
      notices.push(`${where}: the last line is damaged (a writer that was killed leaves this) and was skipped`);
    } else {
      const cause =
        lines.length === 0 ? 'not JSON: this is no result file, or that line is damaged' : 'damaged: not JSON';
      throw new UsageError(
        `${where}: ${cause}; ${lines.length === 0 ? 'name another, or ' : ''}repair or delete the line`,
      );
    }
  }
  return { lines, notices };
}

const BEGINS = '{"v":';

/**
 * Whether a file is empty or begins with a result, whole or cut off: adding to any other would spoil it, and its last line
 * is not ours to remove.
 */
function isResultFile(fd: number, file: string): boolean {
  // Devices have no size, and some of them no end.
  if (fstatSync(fd).size === 0) return true;
  const chunk = Buffer.alloc(BEGINS.length);
  const begins = chunk.toString('latin1', 0, readSync(fd, chunk, 0, chunk.length, 0));
  if (BEGINS.startsWith(begins)) return true;
  // Another writer may have its fields in another order.
  const first = parseJson(readText(file, 'a result file').split('\n', 1)[0])?.value;
  return isRecord(first) && 'v' in first;
}

/** What follows the last newline. */
function unfinishedTail(fd: number): { start: number; text: string } {
  let start = fstatSync(fd).size;
  let text = Buffer.alloc(0);
  const chunk = Buffer.alloc(65536);
  while (start > 0) {
    const length = Math.min(chunk.length, start);
    readSync(fd, chunk, 0, length, start - length);
    const newline = chunk.subarray(0, length).lastIndexOf(10);
    text = Buffer.concat([chunk.subarray(newline + 1, length), text]);
    start -= length - (newline + 1);
    if (newline >= 0) break;
  }
  return { start, text: text.toString('utf8') };
}

/**
 * Adds results to a file, made if absent: whole lines in one O_APPEND write, then flushed to the disk. A line cut off by
 * an earlier crash is removed first, so that it does not end up in the middle; returns a message when that happened.
 * Without results only that is done, which shows whether the file can be written.
 * Throws UsageError when the file cannot be opened or holds something else, Error with `code` when the write falls short (disk full); the file is
 * then as before.
 */
export function appendResults(file: string, results: readonly Result[]): string | undefined {
  const fd = openForAppend(file);
  try {
    if (!isResultFile(fd, file))
      throw new UsageError(`${file}: not a result file; name a new file, or one that measure wrote`);
    const tail = unfinishedTail(fd);
    let notice: string | undefined;
    let text = results.map((result) => `${JSON.stringify(result)}\n`).join('');
    if (tail.text !== '' && parseJson(tail.text)) {
      if (text !== '') text = `\n${text}`;
    } else if (tail.text !== '') {
      ftruncateSync(fd, tail.start);
      notice = `${file}: removed a damaged last line of ${Buffer.byteLength(tail.text)} bytes, left by a writer that was killed`;
    }
    const bytes = Buffer.from(text);
    const written = writeSync(fd, bytes);
    if (written !== bytes.length) {
      ftruncateSync(fd, fstatSync(fd).size - written);
      throw Object.assign(new Error('cut short'), { code: 'ENOSPC' });
    }
    if (bytes.length > 0) fdatasyncSync(fd);
    return notice;
  } catch (error) {
    throw error instanceof UsageError ? error : unwritable(file, error);
  } finally {
    closeSync(fd);
  }
}

function openForAppend(file: string): number {
  try {
    return openSync(file, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o666);
  } catch (error) {
    throw unwritable(file, error);
  }
}
