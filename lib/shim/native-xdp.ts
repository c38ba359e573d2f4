/** Where an AF_XDP ring lies in its mapping: byte offsets, as XDP_MMAP_OFFSETS tells them. */
export interface XdpRingMap {
  buffer: ArrayBuffer;
  entries: number;
  producer: number;
  consumer: number;
  flags: number;
  desc: number;
}

/** A handle of the shim, and its descriptor for poll(). */
export interface HandleAndFd {
  handle: number;
  fd: number;
}

/** The shim's functions for AF_XDP and BPF; addon/xdp.c says what each does. Off Linux all throw ENOSYS. */
export interface XdpNative {
  xdpSocket(port: string, netns: string): HandleAndFd;
  xdpClose(socket: number): void;
  xdpUmem(socket: number, memory: number, offset: number, bytes: number, frameSize: number): void;
  xdpRings(
    socket: number,
    fill: number,
    completion: number,
    rx: number,
    tx: number,
  ): { fill: XdpRingMap; completion: XdpRingMap; rx: XdpRingMap; tx: XdpRingMap };
  /** `shared`: the socket whose UMEM is used too, or -1. */
  xdpBind(socket: number, ifindex: number, queue: number, flags: number, shared: number): void;
  /** Bit 0: zero-copy. */
  xdpOptions(socket: number): number;
  /** rx_dropped, rx_invalid_descs, tx_invalid_descs, rx_ring_full, rx_fill_ring_empty_descs, tx_ring_empty_descs. */
  xdpStatistics(socket: number, out: Float64Array): void;
  /** 0 or errno. */
  xdpSetOption(socket: number, level: number, option: number, value: number): number;
  /** 0 or errno. */
  xdpWakeRx(socket: number): number;
  /** 0 or errno. */
  xdpWakeTx(socket: number): number;
  /** Bytes that may be locked now; -1 without limit. */
  raiseMemlock(): number;
  bpfXskMap(port: string, entries: number): HandleAndFd;
  /** Another descriptor, of this environment, for an object that another thread of the process has open as `fd`. */
  bpfDup(port: string, fd: number): HandleAndFd;
  bpfMapSet(map: number, queue: number, socket: number): void;
  bpfXdpProgram(port: string, instructions: Int32Array, flags: number): HandleAndFd;
  bpfXdpLink(port: string, program: number, ifindex: number, flags: number, netns: string): HandleAndFd;
  /** Puts another program in the place of a link's. */
  bpfLinkUpdate(link: number, program: number): void;
  bpfClose(object: number): void;
}
