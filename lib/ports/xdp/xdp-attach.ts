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
  /**
   * Brings the program to rx queues that were added: drivers such as veth's leave them without one, until another program
   * takes its place.
   */
  renew(): void;
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
  const withProgram = <T>(use: (program: number) => T): T => {
    const { handle } = native.bpfXdpProgram(port.text, instructions, frags ? HAS_FRAGS : 0);
    try {
      return use(handle);
    } finally {
      native.bpfClose(handle); // the link keeps what it needs
    }
  };
  const linked = (program: number, mode: XdpMode): Attachment => {
    const flags = mode === 'native' ? XDP_FLAGS_DRV_MODE : XDP_FLAGS_SKB_MODE;
    const { handle } = native.bpfXdpLink(port.text, program, port.ifindex, flags, port.netns);
    return {
      mode,
      renew: () => {
        withProgram((another) => {
          native.bpfLinkUpdate(handle, another);
        });
      },
      close: () => {
        native.bpfClose(handle);
      },
    };
  };
  return withProgram((program) => {
    if (mode !== 'generic') {
      try {
        return linked(program, 'native');
      } catch (error) {
        if (mode === 'native' || !NO_NATIVE.has((error as NodeJS.ErrnoException).code ?? '')) throw error;
      }
    }
    return linked(program, 'generic');
  });
}
