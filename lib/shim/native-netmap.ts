/** Objects in each pool and bytes of an object; left out, the kernel chooses. */
export interface NetmapPools {
  file: string;
  ifNum?: number;
  ifSize?: number;
  ringNum?: number;
  ringSize?: number;
  bufNum?: number;
  bufSize?: number;
}

/** What to ask of /dev/netmap. Numbers left out are 0: the kernel chooses. */
export interface NetmapRequest {
  /** nr_name, bare: `eth0`, `eth0{1`, `vale0:a`; 63 bytes at most. */
  name: string;
  /** nr_mode: 1 all NIC rings, 2 host, 3 both, 4 one NIC ring pair, 7 none, 8 one host ring. */
  mode: number;
  ringId?: number;
  /** nr_flags. */
  flags?: number;
  /** Memory to share; 0 lets the kernel choose. */
  memId?: number;
  extraBufs?: number;
  txSlots?: number;
  rxSlots?: number;
  txRings?: number;
  rxRings?: number;
  hostTxRings?: number;
  hostRxRings?: number;
  /** A file whose memory netmap shall use (hugetlbfs, as a rule), and how to divide it; absent: netmap's own memory. */
  extmem?: NetmapPools | undefined;
  /** Data offsets in slots: the largest and the initial one in bytes, and how many bits of ptr hold them (0: all). */
  offsets?: { max: number; initial?: number; bits: number } | undefined;
}

/** A port's shape, as the kernel granted it. */
export interface NetmapGeometry {
  /** Bytes of the memory, all ports of its memory id in it. */
  memsize: number;
  /** Slots of each ring. */
  txSlots: number;
  rxSlots: number;
  txRings: number;
  rxRings: number;
  hostTxRings: number;
  hostRxRings: number;
  /** Ports with the same id exchange buffers. */
  memId: number;
}

/** An open netmap port. */
export interface NetmapOpened extends NetmapGeometry {
  handle: number;
  /** The mapped memory; detached by netmapClose(). */
  buffer: ArrayBuffer;
  /** Byte of netmap_if in `buffer`. */
  offset: number;
  ringId: number;
  /** Extra buffers granted, possibly fewer than asked; their chain starts at netmap_if's ni_bufs_head. */
  extraBufs: number;
  /** The largest data offset granted in bytes; 0 without `offsets`. */
  maxOffset: number;
  /** For poll(). */
  fd: number;
}

/** addon/netmap.c. Throwing functions throw an Error with `code`, `errno`, `syscall` and `port` (the bare name). */
export interface NetmapNative {
  /**
   * Registers and maps a port.
   * @throws Error whose `syscall` names the step: `open /dev/netmap`, `open extmem`, `mmap extmem`, `mmap`,
   *   `NIOCCTRL REGISTER`, or `NIOCCTRL REGISTER option extmem` / `… option offsets` where the kernel refused that option
   * @throws TypeError (code EINVAL) for a request that cannot be encoded
   */
  netmapOpen(request: NetmapRequest): NetmapOpened;
  /** The shape of a port without opening it; name `''` asks for the memory `memId` alone (counts are then 0). */
  netmapPortInfo(name: string, memId: number): NetmapGeometry;
  /** NIOCTXSYNC: 0 or a positive errno (EBADF once closed). 0 is no proof: a bad head or cur silently resets a ring. */
  netmapTxsync(handle: number): number;
  /** NIOCRXSYNC, likewise. */
  netmapRxsync(handle: number): number;
  /** Detaches the buffer, unmaps, closes. @throws EBADF when it is closed already */
  netmapClose(handle: number): void;
  /** 0 when /dev/netmap opens, else its errno: ENOENT no module, ENXIO no driver behind it, EACCES not permitted. */
  netmapAvailable(): number;
}
