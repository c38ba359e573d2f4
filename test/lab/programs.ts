// XDP programs for the far ends of a lab.
import { instruction } from '../../lib/ports/xdp/xdp-program.js';

const XDP_DROP = 1;
const XDP_PASS = 2;
const XDP_TX = 3;

const LOAD_WORD = 0x61;
const LOAD_HALF = 0x69;
const STORE_WORD = 0x63;
const STORE_HALF = 0x6b;
const MOVE = 0xb7;
const MOVE_REGISTER = 0xbf;
const ADD = 0x07;
const JUMP_ABOVE = 0x2d;
const EXIT = 0x95;

const answer = (action: number) => [...instruction(MOVE, 0, 0, 0, action), ...instruction(EXIT, 0, 0, 0, 0)];

/** Every frame to the stack. */
export function passProgram(): Int32Array {
  return Int32Array.from(answer(XDP_PASS));
}

/** Every frame back where it came from, with its MAC addresses swapped: a far end that costs next to nothing. */
export function reflectProgram(): Int32Array {
  const [context, data, end, header] = [1, 2, 3, 4];
  const swap = [
    ...instruction(LOAD_WORD, 5, data, 0, 0),
    ...instruction(LOAD_HALF, 6, data, 4, 0),
    ...instruction(LOAD_WORD, 7, data, 6, 0),
    ...instruction(LOAD_HALF, 8, data, 10, 0),
    ...instruction(STORE_WORD, data, 7, 0, 0),
    ...instruction(STORE_HALF, data, 8, 4, 0),
    ...instruction(STORE_WORD, data, 5, 6, 0),
    ...instruction(STORE_HALF, data, 6, 10, 0),
    ...answer(XDP_TX),
  ];
  return Int32Array.from([
    ...instruction(LOAD_WORD, data, context, 0, 0),
    ...instruction(LOAD_WORD, end, context, 4, 0),
    ...instruction(MOVE_REGISTER, header, data, 0, 0),
    ...instruction(ADD, header, 0, 0, 14),
    ...instruction(JUMP_ABOVE, header, end, swap.length / 2, 0),
    ...swap,
    ...answer(XDP_DROP),
  ]);
}
