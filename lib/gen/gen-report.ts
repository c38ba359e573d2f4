import type { HistogramJson } from '../stats/histogram.js';
import type { Span } from './span.js';

/** What was sent. Bytes are without FCS. */
export interface Sent {
  /** Frames that left. */
  readonly frames: number;
  readonly bytes: number;
  /** Frames put into the tx rings that had not left when the run ended. */
  readonly unsent: number;
  /** Frames the port took and will never send. */
  readonly refused: number;
  /** Times a frame was due and the tx rings were full. */
  readonly txFull: number;
  /** When they were put into the tx rings; undefined: none were. */
  readonly span: Span | undefined;
  /** Frames a second that were asked for; absent: as fast as possible, or a capture's own timing. */
  readonly targetPps?: number;
  /** Time from one frame of a thread to the next as asked for, ns; paced runs only. */
  readonly gapNs?: number;
  /** Frames of the schedule that were given up because the sender was held up. */
  readonly givenUp: number;
  /** Time from one frame to the next as sent, and the mean of its difference from the nominal one, ns; paced runs only. */
  readonly gaps?: HistogramJson;
  readonly meanDeviationNs?: number;
  /** How late frames of a replayed capture left, ns; at the capture's own timing only. */
  readonly lateness?: HistogramJson;
  /** Frames of a capture that were left out: it holds only their beginning, they have no bytes, or they fit no ring. */
  readonly skipped?: { readonly short: number; readonly empty: number; readonly long: number };
}

/** What was received. Bytes are without FCS. */
export interface Received {
  readonly frames: number;
  readonly bytes: number;
  /** Frames that carry a tag; the counts that follow are about these. */
  readonly tagged: number;
  readonly streams: number;
  readonly lost: number;
  readonly duplicates: number;
  readonly reordered: number;
  /** Frames numbered before the first that was seen: sent before this end listened, or lost. */
  readonly before: number;
  /** Frames that were sent in the future by this machine's clock, or that come from a file: they say nothing of latency. */
  readonly otherClock: number;
  /** Frames more than 10 s old: they lay somewhere, or another clock wrote their time. */
  readonly old: number;
  /** One way, or there and back for ping. */
  readonly latency: HistogramJson;
  /** The streams one by one: threads that have seen parts of one are put together by it. */
  readonly seen: readonly StreamState[];
  /** When they came; undefined: none did. */
  readonly span: Span | undefined;
}

/** How far a stream has come: sequence numbers, which wrap with 32 bits. */
export interface StreamState {
  /** As it lies in memory. */
  readonly stream: number;
  /** The lowest number seen, and the one that follows the highest. */
  readonly first: number;
  readonly next: number;
  /** Numbers between them that were not seen. */
  readonly lost: number;
}

/** What `pong` did. */
export interface Reflected {
  /** Frames sent back, and what of them did not leave: as of those sent. */
  readonly frames: number;
  readonly bytes: number;
  readonly unsent: number;
  readonly refused: number;
  /** Frames that are no UDP datagrams, or had been sent back before. */
  readonly ignored: number;
  /** When they were sent back; undefined: none were. */
  readonly span: Span | undefined;
}

/** The state of a run. */
export interface GenReport {
  /** Since the first turn. */
  readonly ns: number;
  readonly sent?: Sent;
  readonly received?: Received;
  readonly reflected?: Reflected;
  /** The port's own statistics. */
  readonly stats: Record<string, number>;
  /** CPU time of the thread, ns. */
  readonly userNs: number;
  readonly systemNs: number;
  /** What went wrong with a capture, though the run went on. */
  readonly problem?: string;
}
