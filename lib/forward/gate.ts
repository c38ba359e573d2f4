/** The hot loop of a lane with a program before it: each frame is judged once, whenever there is room for it. */
import * as abi from '../rings/abi.js';
import type { Ring } from '../rings/ring.js';
import { specialize } from '../rings/specialize.js';
import { clock, native } from '../shim/native.js';
import type { Frame } from '../programs/frame.js';
import * as verdicts from '../programs/program.js';
import type { OnFrame, Verdict } from '../programs/program.js';
import * as laneWords from './lane-words.js';
import type { Move } from './lane-words.js';

/** Slots from the rx ring's head on whose frames were judged, go on, and have not gone yet. */
const JUDGED = 0;
/** What becomes of the frame behind them, where it does not go on; FORWARD: it is not judged yet. */
const VERDICT = 1;
/** Slots of that frame. */
const SLOTS = 2;
/** Why the last call took no more; as a lane's WHY_STOPPED. */
export const GATE_STOPPED = 3;
const gateWords = { JUDGED, VERDICT, SLOTS, GATE_STOPPED };
export const GATE_WORDS = 4;

/** What the gate of an rx ring is made from. */
export interface GateParts {
  readonly rx: Ring;
  readonly onFrame: OnFrame;
  readonly frame: Frame;
  /** {@link GATE_WORDS} of its own. */
  readonly own: Int32Array;
  /** The lane it stands before. */
  readonly lane: { readonly move: Move; readonly stopped: number };
  /** @throws where no frame can go where `verdict` says */
  readonly check: (verdict: unknown) => void;
  /** The verdict on a frame at which onFrame or check threw. What it throws itself ends the run. */
  readonly failed: (error: unknown, frame: Frame) => Verdict;
  /** Takes the frame at the head, of `slots`, to where `verdict` sends it. Returns whether there was room. */
  readonly leave: (verdict: Verdict, slots: number) => boolean;
  /** Slots it waits for where leave() found no room. */
  readonly awaited: () => number;
}

/** The move() of a lane with a program before it. */
export function gateMove({ rx, onFrame, frame, own, lane, check, failed, leave, awaited }: GateParts): Move {
  const { move } = lane;
  const stopped = (): number => lane.stopped;
  const readTime = (): void => {
    native.readClock();
    frame.time = clock[0];
  };
  const make = specialize(makeGate, 'gate');
  return make(
    abi,
    verdicts,
    laneWords,
    gateWords,
    rx,
    onFrame,
    frame,
    own,
    move,
    stopped,
    check,
    failed,
    leave,
    awaited,
    readTime,
    (slot, ready) => oddSlots(rx, frame, slot, ready),
  );
}

/**
 * Moves the cursor to a frame that is not plain. Returns its slots; 0: its end is not there yet; less: so many slots
 * carry nothing that could be judged, which is the lane's to count.
 */
function oddSlots(rx: Ring, frame: Frame, slot: number, ready: number): number {
  let slots = 1;
  for (let i = slot; (rx.slotFlags(i) & abi.MOREFRAG) !== 0; i = rx.after(i), slots++)
    if (slots === ready) return ready === rx.numSlots - 1 ? -ready : 0;
  return rx.len(slot) > 0 && frame.load(rx, slot) ? slots : -slots;
}

function makeGate(
  { FIRST_BUFFER, LEN_MASK, MOREFRAG, RING_HEAD, RING_TAIL }: typeof abi,
  { FORWARD }: typeof verdicts,
  { BURST_SPENT, EMPTY }: typeof laneWords,
  { JUDGED, VERDICT, SLOTS, GATE_STOPPED }: typeof gateWords,
  rx: Ring,
  onFrame: OnFrame,
  frame: Frame,
  own: Int32Array,
  laneMove: Move,
  laneStopped: () => number,
  check: (verdict: unknown) => void,
  failed: (error: unknown, frame: Frame) => Verdict,
  leave: (verdict: Verdict, slots: number) => boolean,
  awaited: () => number,
  readTime: () => void,
  odd: (slot: number, ready: number) => number,
): Move {
  const { i32, slot0, numSlots, bufBase, bufSize, offsetMask } = rx;
  const head = rx.base + RING_HEAD;
  const tail = rx.base + RING_TAIL;
  const buffers = rx.bufLimit - FIRST_BUFFER;
  const lenAndMore = LEN_MASK | MOREFRAG;

  /** Judges up to `most` slots from the head on, until a frame does not go on. Returns whether it judged any. */
  function judge(most: number): boolean {
    const m = i32;
    const r = m[head] | 0;
    const end = m[tail] | 0;
    let ready = (end - r) | 0;
    if (ready < 0) ready = (ready + numSlots) | 0;
    if (ready === 0) return false;
    readTime();
    const n = most < ready ? most : ready;
    let verdict = FORWARD as number;
    let slots = 0;
    let i = r;
    let k = 0;
    while (k < n) {
      const at = (slot0 + (i << 2)) | 0;
      const idx = m[at] | 0;
      const len = m[(at + 1) | 0] & lenAndMore;
      const offset = offsetMask === 0 ? 0 : m[(at + 2) | 0] & offsetMask;
      const most = offset < 0 || offset > bufSize ? 0 : (bufSize - offset) | 0;
      slots = 1;
      if (((idx - FIRST_BUFFER) | 0) >>> 0 < buffers && ((len - 1) | 0) >>> 0 < most)
        frame.place((bufBase + Math.imul(idx, bufSize) + offset) >>> 0, len, offset);
      else slots = odd(i, (ready - k) | 0) | 0;
      if (slots === 0) break;
      if (slots > 0) {
        const { size, start } = frame;
        try {
          verdict = onFrame(frame);
          if (verdict !== FORWARD) check(verdict);
        } catch (error) {
          verdict = failed(error, frame);
        }
        if (frame.size !== size || frame.start !== start) frame.store(rx, i);
        if (verdict !== FORWARD) break;
      } else slots = -slots | 0;
      k = (k + slots) | 0;
      i = (i + slots) | 0;
      if (i >= numSlots) i = (i - numSlots) | 0;
    }
    own[JUDGED] = k;
    own[VERDICT] = verdict;
    own[SLOTS] = slots;
    return k > 0 || verdict !== FORWARD;
  }

  return function move(burst: number): number {
    let taken = 0;
    let why: number;
    for (;;) {
      const r = i32[head] | 0;
      const end = i32[tail] | 0;
      if ((r | end | (numSlots - 1 - r) | (numSlots - 1 - end)) < 0) {
        laneMove(1); // which counts it
        why = EMPTY;
        break;
      }
      if (own[JUDGED] > 0) {
        const left = (burst - taken) | 0;
        const judged = own[JUDGED] | 0;
        const moved = laneMove(judged < left ? judged : left) | 0;
        taken = (taken + moved) | 0;
        own[JUDGED] = judged - moved;
        if (moved < judged) {
          why = taken >= burst ? BURST_SPENT : laneStopped();
          if (why === EMPTY) own[JUDGED] = own[VERDICT] = 0; // the ring was reset: what was judged is not there any more
          break;
        }
      }
      if (own[VERDICT] !== FORWARD) {
        if (!leave(own[VERDICT] as Verdict, own[SLOTS])) {
          why = awaited();
          break;
        }
        taken = (taken + own[SLOTS]) | 0;
        own[VERDICT] = FORWARD;
      }
      why = BURST_SPENT;
      if (taken >= burst) break;
      why = EMPTY;
      if (!judge((burst - taken) | 0)) break;
    }
    own[GATE_STOPPED] = why;
    return taken;
  };
}
