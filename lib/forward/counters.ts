/**
 * Counters of one direction, in shared memory: the forwarding thread adds once a batch, the main thread reads.
 * Doubles hold whole numbers up to 2^53: at 29.76 Mpps that is nine and a half years.
 */

/**
 * Positions in a direction's counters. Every frame received is counted once: as forwarded (FRAMES) or under one of the
 * reasons in NOT_FORWARDED. A frame put into a tx ring counts as forwarded until the port turns out to have refused it,
 * or at the end not to have sent it: then it moves from FRAMES to REFUSED or UNSENT, and its bytes from BYTES.
 */
export const FRAMES = 0;
/** Bytes of frame data without FCS. */
export const BYTES = 1;
/** Slots put into the tx rings, of whatever became of their frames. */
export const SLOTS = 2;
/** Moves that forwarded something; frames / batches is the average batch. */
export const BATCHES = 3;
/** Moves that left frames waiting because the tx ring was full: back-pressure, nothing lost. */
export const TX_FULL = 4;
/** Slots of length zero that were passed over. They carry no frame, so no frame is lost with them. */
export const ZERO_SLOTS = 5;
/** Frames that were not forwarded, by reason; NOT_FORWARDED says each in words. */
export const BAD_BUFFER = 6;
export const BAD_LENGTH = 7;
export const TOO_MANY_SLOTS = 8;
export const NO_TX_ROOM = 9;
export const UNSENT = 10;
export const REFUSED = 11;
/** Moves that found a head or tail outside its ring and touched nothing; no frame is counted with them. */
export const BAD_RING = 12;
/** Frames that a program dropped, sent back by the port at which they arrived, or sent to the third port. */
export const DROPPED = 13;
export const SENT_BACK = 14;
export const DIVERTED = 15;

/** Why frames were received and not forwarded: position → a name for programs and words for people. */
export const NOT_FORWARDED: ReadonlyMap<number, { name: string; words: string }> = new Map([
  [BAD_BUFFER, { name: 'badBuffer', words: 'buffer index outside the region' }],
  [BAD_LENGTH, { name: 'badLength', words: 'length beyond the buffer' }],
  [TOO_MANY_SLOTS, { name: 'tooManySlots', words: 'more than 64 slots' }],
  [NO_TX_ROOM, { name: 'noTxRoom', words: 'longer than the whole tx ring' }],
  [UNSENT, { name: 'unsent', words: 'still in the tx ring when the port closed' }],
  [REFUSED, { name: 'refused', words: 'refused by the port' }],
  [DROPPED, { name: 'dropped', words: 'dropped by the program' }],
  [SENT_BACK, { name: 'sentBack', words: 'sent back by the program' }],
  [DIVERTED, { name: 'diverted', words: 'sent to the third port by the program' }],
]);

/** Doubles one direction takes; 16 keep two directions on different cache lines. */
export const COUNTERS = 16;

/** Sum of the frames not forwarded, for whatever reason. */
export function notForwarded(counters: Float64Array): number {
  let sum = 0;
  for (const position of NOT_FORWARDED.keys()) sum += counters[position];
  return sum;
}
