/**
 * netmap's memory layout as 32-bit word offsets (API 14, 64-bit systems, little-endian).
 * Numbers from the public header net/netmap.h; the addon holds them against the system's own at compile time.
 * Words, because the hot loop reads an Int32Array: 64-bit fields are two words, low one first.
 */

/** Words a slot takes: buf_idx, len | flags << 16, ptr (two words). */
export const SLOT_WORDS = 4;
export const SLOT_BUF_IDX = 0;
export const SLOT_LEN_FLAGS = 1;
/** Low word of ptr; its low bits hold the offset of the data in the buffer where the ring has an offset mask. */
export const SLOT_PTR = 2;

/** Slot flags, as they stand in the upper half of the len/flags word. */
export const BUF_CHANGED = 0x0001 << 16;
export const REPORT = 0x0002 << 16;
export const MOREFRAG = 0x0020 << 16;
/** The length half of the len/flags word. */
export const LEN_MASK = 0xffff;

/** Slots a frame may take at most (NETMAP_MAX_FRAGS). */
export const MAX_FRAME_SLOTS = 64;
/** Buffers 0 and 1 are reserved: a slot that names them is corrupt. */
export const FIRST_BUFFER = 2;

/** Ring header, word offsets; slots follow at word 64. */
export const RING_BUF_OFS = 0;
export const RING_NUM_SLOTS = 2;
export const RING_BUF_SIZE = 3;
/** ringid (low half) and dir (high half: 1 tx, 0 rx; what kernels write, though netmap.h says the reverse). */
export const RING_ID_DIR = 4;
export const DIR_TX = 1;
export const DIR_RX = 0;
export const RING_HEAD = 5;
export const RING_CUR = 6;
export const RING_TAIL = 7;
export const RING_FLAGS = 8;
export const RING_TS = 10;
export const RING_OFFSET_MASK = 14;
export const RING_SLOTS = 64;

/** netmap_if, word offsets; ring_ofs[] (i64, bytes from the netmap_if): NIC tx, host tx, NIC rx, host rx. */
export const IF_NAME = 0;
export const IF_VERSION = 4;
export const IF_FLAGS = 5;
export const IF_TX_RINGS = 6;
export const IF_RX_RINGS = 7;
export const IF_BUFS_HEAD = 8;
export const IF_HOST_TX_RINGS = 9;
export const IF_HOST_RX_RINGS = 10;
export const IF_RING_OFS = 14;
/** nr_version and ni_version. */
export const NETMAP_API = 14;
