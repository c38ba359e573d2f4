import { native } from '../../shim/native.js';

/** Flags of linux/if_link.h. */
const XDP_FLAGS_SKB_MODE = 1 << 1;
const XDP_FLAGS_DRV_MODE = 1 << 2;
/** BPF_F_XDP_HAS_FRAGS of linux/bpf.h (5.18): the program copes with frames of several buffers. */
const HAS_FRAGS = 1 << 5;

/** The driver has no XDP, or none for this MTU or number of queues. */
const NO_NATIVE = new Set(['EOPNOTSUPP', 'ERANGE', 'ENOSPC']);

export type XdpMode = 'native' | 'generic';

/** A program on an interface. */
export interface Attachment {
  mode: XdpMode;
  /** Takes it off. The kernel does the same when the process dies: it hangs on a BPF link. */
  close(): void;
}

/**
 * Loads a program and attaches it, in the driver (native) or behind it (generic); `auto` takes native where the
 * driver has it.
 * @param frags whether frames of several buffers may come
 * @throws Error of the shim: EBUSY or EEXIST when a program is there already, EOPNOTSUPP, ERANGE, EPERM
 */
export function attach(
  port: { text: string; ifindex: number; netns: string },
  instructions: Int32Array,
  mode: XdpMode | 'auto',
  frags: boolean,
): Attachment {
  const program = native.bpfXdpProgram(port.text, instructions, frags ? HAS_FRAGS : 0);
  const link = (flags: number) => native.bpfXdpLink(port.text, program.handle, port.ifindex, flags, port.netns);
  try {
    if (mode !== 'generic') {
      try {
        const { handle } = link(XDP_FLAGS_DRV_MODE);
        return {
          mode: 'native',
          close: () => {
            native.bpfClose(handle);
          },
        };
      } catch (error) {
        if (mode === 'native' || !NO_NATIVE.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
      }
    }
    const { handle } = link(XDP_FLAGS_SKB_MODE);
    return {
      mode: 'generic',
      close: () => {
        native.bpfClose(handle);
      },
    };
  } finally {
    native.bpfClose(program.handle); // the link keeps what it needs
  }
}
