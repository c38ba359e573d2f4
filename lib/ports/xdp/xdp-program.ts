/**
 * The XDP program, as the instructions a compiler would make of it: a few lines, so neither clang nor libbpf is
 * needed. Encoding: linux/bpf.h, struct bpf_insn; one instruction is two words, a 64-bit load takes two instructions.
 */

/** Of enum xdp_action in linux/bpf.h. */
const XDP_PASS = 2;

/** struct xdp_md: ctx->rx_queue_index lies at byte 16. */
const RX_QUEUE_INDEX = 16;
/** bpf_redirect_map() of enum bpf_func_id. */
const REDIRECT_MAP = 51;
/** Marks a 64-bit load as that of a map's descriptor. */
const PSEUDO_MAP_FD = 1;

/** First word: opcode, registers (destination low, source high), offset. Second word: immediate. */
export function instruction(
  opcode: number,
  destination: number,
  source: number,
  offset: number,
  immediate: number,
): number[] {
  return [opcode | (destination << 8) | (source << 12) | (offset << 16), immediate];
}

const LOAD_WORD = 0x61; // BPF_LDX | BPF_MEM | BPF_W
const LOAD_64 = 0x18; // BPF_LD | BPF_DW | BPF_IMM
const MOVE = 0xb7; // BPF_ALU64 | BPF_MOV | BPF_K
const CALL = 0x85; // BPF_JMP | BPF_CALL
const EXIT = 0x95; // BPF_JMP | BPF_EXIT

/** Gives every frame to the socket that the map holds for its queue; to the stack where it holds none. */
export function redirectProgram(mapFd: number): Int32Array {
  return Int32Array.from([
    ...instruction(LOAD_WORD, 2, 1, RX_QUEUE_INDEX, 0),
    ...instruction(LOAD_64, 1, PSEUDO_MAP_FD, 0, mapFd),
    ...instruction(0, 0, 0, 0, 0),
    ...instruction(MOVE, 3, 0, 0, XDP_PASS),
    ...instruction(CALL, 0, 0, 0, REDIRECT_MAP),
    ...instruction(EXIT, 0, 0, 0, 0),
  ]);
}
