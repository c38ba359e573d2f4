/** The readable way, for frames that are not plain: several slots, empty slots, or something wrong with them. */
import type { Ring } from '../rings/ring.js';
import { BAD_BUFFER, ZERO_SLOTS } from './counters.js';
import { HeadFrame } from './frame.js';
import { BURST_SPENT, EMPTY, TALLY_BYTES, TALLY_EXTRA_SLOTS, TALLY_FRAMES, WHY_STOPPED } from './lane-words.js';

/**
 * Takes the frame at the head of the rx ring, whatever it is: moves it, or drops it and counts why. Returns the slots
 * taken; 0: it stays, and WHY_STOPPED says why.
 *
 * @param left  slots of the burst that are left
 * @param first whether nothing was taken in this call: then a frame longer than the burst moves nevertheless
 */
export type OddFrames = (left: number, first: boolean) => number;

/**
 * @param needs slots of the tx ring that a frame needs
 * @param put   puts a frame that was judged into the tx ring from slot `t` on; false: a buffer there is none
 */
export function oddFrames(
  rx: Ring,
  tx: Ring,
  counters: Float64Array,
  words: Int32Array,
  needs: (frame: HeadFrame) => number,
  put: (frame: HeadFrame, rx: Ring, tx: Ring, t: number) => boolean,
): OddFrames {
  const frame = new HeadFrame();
  const stays = (why: number): 0 => {
    words[WHY_STOPPED] = why;
    return 0;
  };
  return (left, first) => {
    const slots = frame.read(rx);
    if (slots === 0) return stays(EMPTY);
    if (slots > left && !first) return stays(BURST_SPENT);
    const needed = needs(frame);
    frame.judge(needed, tx.numSlots - 1);
    if (frame.reason === 0 && needed > tx.space) return stays(needed);
    if (frame.reason === 0 && frame.carrying > 0 && !put(frame, rx, tx, tx.head)) frame.reason = BAD_BUFFER;
    counters[ZERO_SLOTS] += slots - frame.carrying;
    if (frame.reason !== 0) counters[frame.reason]++;
    else if (frame.carrying > 0) {
      tx.moveTo(tx.after(tx.head, needed));
      words[TALLY_FRAMES]++;
      words[TALLY_EXTRA_SLOTS] += needed - 1;
      words[TALLY_BYTES] += frame.bytes;
    }
    rx.advance(slots);
    words[WHY_STOPPED] = BURST_SPENT;
    return slots;
  };
}
