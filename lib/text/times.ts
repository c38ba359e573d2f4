/** Times: what people write, and what they read. Parsers throw a {@link UsageError}. */
import { exactText, parseInteger, refuse, scaled, type Quantity } from './quantity.js';

const TIME: Quantity = {
  what: 'time',
  of: 'nanoseconds',
  units: new Map([
    ['ns', 0],
    ['us', 3],
    ['µs', 3],
    ['μs', 3],
    ['ms', 6],
    ['s', 9],
  ]),
  multiples: new Map([
    ['m', { times: 60, of: 's' }],
    ['min', { times: 60, of: 's' }],
    ['h', { times: 3600, of: 's' }],
  ]),
  remedy: 'write a number with ns, us, ms, s, m or h, for example 124us',
};
const SECONDS: Quantity = {
  ...TIME,
  units: new Map([['', 9], ...TIME.units]),
  remedy: 'write seconds, or a number with ns, us, ms, s, m or h, for example 10, 0.5, 500ms or 1m',
};
const MILLISECONDS: Quantity = {
  ...TIME,
  units: new Map([['', 6], ...TIME.units]),
  remedy: 'write milliseconds, or a number with ns, us, ms, s, m or h, for example 500 or 1s',
};

/** A time in a port's name: `80ns`, `124us`, `.5ms`, `1m`, `0`. Returns whole ns. A bare number other than 0 is refused. @throws UsageError */
export function parseTime(text: string): number {
  return text === '0' ? 0 : parseInteger(TIME, text, 0, Number.MAX_SAFE_INTEGER);
}

/** A time on a command line, 0 or more: `10`, `.5`, `500ms`, `1m`, `1h`; bare numbers are seconds. Returns seconds. @throws UsageError */
export function parseSeconds(text: string): number {
  return parseInteger(SECONDS, text, 0, Number.MAX_SAFE_INTEGER) / 1e9;
}

/** A time to run for or to repeat after: as {@link parseSeconds}, but above 0. Returns seconds. @throws UsageError */
export function parseDuration(text: string): number {
  const seconds = parseSeconds(text);
  return seconds > 0 ? seconds : refuse(SECONDS, text, 'is not above 0');
}

/** A time whose bare numbers are milliseconds, 0 or more: `1000`, `1s`. Returns seconds. @throws UsageError */
export function parseMilliseconds(text: string): number {
  return parseInteger(MILLISECONDS, text, 0, Number.MAX_SAFE_INTEGER) / 1e9;
}

/** The text that {@link parseTime} reads back exactly: 124000 is `124us`. */
export function timeText(ns: number): string {
  return ns === 0 ? '0' : exactText(TIME, ns);
}

/** A time in nanoseconds for people: `124 µs`, `1.5 ms`, four significant digits. */
export function formatTime(ns: number): string {
  return scaled(ns, [
    [1e9, 's'],
    [1e6, 'ms'],
    [1e3, 'µs'],
    [1, 'ns'],
  ]);
}
