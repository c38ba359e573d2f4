/**
 * What two threads say to each other: one that opens ports and makes one run after the other on them (serve.ts), and the
 * one that started it (thread.ts).
 */

/** Make this run, told of and stopped by a control block of its own; or close the ports and end. */
export type Order<Run> = { type: 'start'; run: Run; shared: SharedArrayBuffer } | { type: 'close' };

/**
 * What was opened; then for each run that frames flow, what a person should know, its state when it is asked, and its
 * last word. `fail` without a run is about opening or closing.
 */
export type Word<Opened, Report, Ended> =
  | { type: 'opened'; opened: Opened }
  | { type: 'running' }
  | { type: 'say'; sentence: string }
  | { type: 'report'; report: Report }
  | { type: 'end'; ended: Ended }
  | Failure<Ended>;

export interface Failure<Ended = never> {
  type: 'fail';
  usage: boolean;
  message: string;
  port: string;
  code?: string | undefined;
  /** What had been counted until then; absent where no frame had flowed. */
  ended?: Ended | undefined;
}
