import { FCS_BYTES, MIN_FRAME_SIZE, WIRE_OVERHEAD_BYTES } from '../../text/units.js';

/** Ethernet pads to this many bytes without FCS. */
export const LEAST_LEN = MIN_FRAME_SIZE - FCS_BYTES;
/** Bytes that a frame takes on the wire beside those that its slots hold. */
export const BESIDE_LEN = FCS_BYTES + WIRE_OVERHEAD_BYTES;

/** Positions in {@link SimWire.state}: link time at which the wire is free, and until which frames leave now, ns; bytes sent, without FCS. */
export const WIRE_FREE = 0;
export const UNTIL = 1;
export const SENT_BYTES = 2;

/**
 * The wire that all tx rings of a port share: one frame at a time, each for (max(len, LEAST_LEN) + BESIDE_LEN) ×
 * nsPerByte. That is charged here and in sim-rings.ts, where plain frames leave many at a time, and to a frame that
 * leaves: never to one that only might.
 */
export class SimWire {
  /** In an array because these change with every frame; see SimClock.at. */
  readonly state = new Float64Array(3);
  /** Frames that leave before the port completes no more (`wedge=`). */
  left: number;

  constructor(
    /** 0: no limit. */
    readonly nsPerByte: number,
    frames: number,
  ) {
    this.left = frames;
  }

  /** Lets a frame of `bytes` (without FCS) leave, if it has left by UNTIL. Returns whether it has. */
  carry(bytes: number): boolean {
    const { state, nsPerByte } = this;
    if (nsPerByte !== 0) {
      const left = state[WIRE_FREE] + ((bytes < LEAST_LEN ? LEAST_LEN : bytes) + BESIDE_LEN) * nsPerByte;
      if (left > state[UNTIL]) return false;
      state[WIRE_FREE] = left;
    }
    state[SENT_BYTES] += bytes;
    return true;
  }
}
