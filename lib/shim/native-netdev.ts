/** A network interface; `null` where system or driver do not tell. */
export interface NetdevInfo {
  index: number;
  /** Bytes of L3 payload. */
  mtu: number;
  /** `promisc` counts every holder, packet-socket memberships too. */
  flags: { up: boolean; running: boolean; promisc: boolean };
  /** Administratively up and with carrier. */
  link: 'up' | 'down';
  /** `02:00:00:00:00:01` */
  mac: string | null;
  driver: string | null;
  /** The device's address on its bus, `0000:00:03.0`. */
  busInfo: string | null;
  /** Mbit/s. */
  speed: number | null;
  /** Queues in use. */
  rxQueues: number | null;
  txQueues: number | null;
  /** Descriptors a ring has and may have. */
  rings: { rxMax: number; rx: number; txMax: number; tx: number } | null;
  /** Interrupt moderation, µs. */
  coalesce: { rxUsecs: number; txUsecs: number; adaptiveRx: boolean | null } | null;
  /** `rxVlan`, `txVlan`: tags stripped and inserted by the interface. */
  offloads: Record<NetdevOffload, boolean | null>;
}

export type NetdevOffload = 'rxChecksum' | 'txChecksum' | 'tso' | 'gso' | 'gro' | 'lro' | 'rxVlan' | 'txVlan';

/**
 * addon/netdev.c. `netns` is `''` (where the process is) or a name as in `ip netns`. All throw an Error with `code`,
 * `errno`, `syscall` and `port` (the interface): ENODEV (Linux) or ENXIO (FreeBSD) no such interface; with syscall
 * `setns` ENOENT no such namespace, EPERM not allowed to enter it.
 */
export interface NetdevNative {
  netdevInfo(ifname: string, netns: string): NetdevInfo;
  /** Whether frames can pass: up and with carrier. One ioctl, made to be asked often. */
  netdevLink(ifname: string, netns: string): boolean;
  /** The MAC address alone, `null` for an interface without one. */
  netdevMac(ifname: string, netns: string): string | null;
  /** Makes the interface take every frame until netdevPromiscClose(); on Linux the kernel undoes it if the process dies. */
  netdevPromiscOpen(ifname: string, netns: string): number;
  netdevPromiscClose(handle: number): void;
}
