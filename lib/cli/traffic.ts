/** What flowed in one direction over a time, from two readings of its counters. */
import {
  BATCHES,
  BYTES,
  FRAMES,
  NOT_FORWARDED,
  SLOTS,
  TX_FULL,
  ZERO_SLOTS,
  notForwarded,
} from '../forward/counters.js';
import { FCS_BYTES, formatFrameRate, formatRate, WIRE_OVERHEAD_BYTES } from '../text/units.js';

/** What each frame takes on the wire beside the bytes of its slots: FCS, preamble, gap. */
const WIRE_EXTRA_BYTES = FCS_BYTES + WIRE_OVERHEAD_BYTES;

export interface Traffic {
  /** Frames taken from the rx rings: forwarded + not forwarded. */
  received: number;
  /** Frames put into the tx rings and not refused there; at the end only those that left. */
  forwarded: number;
  /** Bytes of the forwarded frames, without FCS. */
  bytes: number;
  /** Slots put into the tx rings, also of frames that were not sent from there. */
  slots: number;
  /** null: no time had been read. Absent on the virtual clock, of which the machine's says nothing. */
  mpps?: number | null;
  /** On the wire: 24 bytes a frame (FCS 4, preamble 8, gap 12) on top of `bytes`. As `mpps`. */
  gbitPerSecond?: number | null;
  /** Frames forwarded together, on average. */
  averageBatch: number;
  /** Times frames waited because the tx ring was full. */
  txFull: number;
  /** Slots of length zero that were passed over. */
  zeroSlots: number;
  /** Frames not forwarded, by reason; only reasons that occurred (names as in counters.NOT_FORWARDED). */
  notForwarded: Record<string, number>;
}

/**
 * @param seconds the time between the two readings; null: unknown
 * @param timed   whether frames flow by the machine's clock
 */
export function traffic(before: Float64Array, after: Float64Array, seconds: number | null, timed: boolean): Traffic {
  const delta = after.map((value, i) => value - before[i]);
  const perSecond = (amount: number, unit: number): number | null => {
    if (seconds === null) return null;
    return seconds > 0 ? amount / seconds / unit : 0;
  };
  const forwarded = delta[FRAMES];
  return {
    received: forwarded + notForwarded(delta),
    forwarded,
    bytes: delta[BYTES],
    slots: delta[SLOTS],
    ...(timed && {
      mpps: perSecond(forwarded, 1e6),
      gbitPerSecond: perSecond(8 * (delta[BYTES] + WIRE_EXTRA_BYTES * forwarded), 1e9),
    }),
    averageBatch: delta[BATCHES] > 0 ? forwarded / delta[BATCHES] : 0,
    txFull: delta[TX_FULL],
    zeroSlots: delta[ZERO_SLOTS],
    notForwarded: Object.fromEntries(
      [...NOT_FORWARDED]
        .map(([position, { name }]) => [name, delta[position]] as const)
        .filter(([, frames]) => frames > 0),
    ),
  };
}

/** The rates in words, `after` behind them; empty where they are not known. */
export const rates = ({ mpps, gbitPerSecond }: Traffic, after: string): string =>
  typeof mpps === 'number' && typeof gbitPerSecond === 'number'
    ? `${formatFrameRate(mpps * 1e6)}, ${formatRate(gbitPerSecond * 1e9)} on the wire${after}`
    : '';
export const frames = (n: number): string => `${n.toLocaleString('en-US')} ${n === 1 ? 'frame' : 'frames'}`;
