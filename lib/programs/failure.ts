/** What becomes of a frame at which a program threw. */
import { PortError } from '../text/errors.js';
import type { Frame } from './frame.js';
import { DROP, FORWARD, type Counter, type Verdict } from './program.js';

/** `drop` and `forward` the frame and go on; `stop` ends the run, with the frame still in its ring. */
export const ON_ERROR = ['stop', 'drop', 'forward'] as const;
export type OnError = (typeof ON_ERROR)[number];

/** Bytes of the frame that are shown. */
const SHOWN_BYTES = 128;
/** ns between two errors that are told; all are counted. */
const TOLD_NS = 1e9;

/**
 * The verdict on frames at which `program` throws.
 * @param errors counts them
 * @returns a function that throws PortError with mode `stop`
 */
export function verdictOnError(
  program: string,
  mode: OnError,
  errors: Counter,
  say: (sentence: string) => void,
): (error: unknown, frame: Frame) => Verdict {
  let told = -Infinity;
  return (error, frame) => {
    errors.add();
    const what = (): string => `program ${program}: ${wordsOf(error)}\n  ${frameText(frame)}`;
    if (mode === 'stop') throw new PortError(what(), frame.port, { cause: error });
    if (frame.time - told >= TOLD_NS) {
      told = frame.time;
      say(`${what()}\n  the frame is ${mode === 'drop' ? 'dropped' : 'forwarded'}; ${errors.value} so far`);
    }
    return mode === 'drop' ? DROP : FORWARD;
  };
}

/** The error, and the line of the program at which it was thrown. */
function wordsOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const line = error.stack?.split('\n').find((text) => /^\s+at .*:\d+:\d+\)?$/.test(text));
  return `${error.name}: ${error.message}${line === undefined ? '' : ` ${line.trim()}`}`;
}

function frameText({ bytes, start, size, length, port, ring }: Frame): string {
  const shown = Buffer.from(bytes.buffer, bytes.byteOffset + start, Math.min(size, SHOWN_BYTES)).toString('hex');
  return `frame of ${length} bytes from ${port}, ring ${ring}: ${shown}${size > SHOWN_BYTES ? '…' : ''}`;
}
