/** A network interface; `null` where system or driver do not tell. */
export interface NetdevInfo {
  index: number;
  /** Bytes of L3 payload. */
  mtu: number;
  /** `promisc` counts every holder, packet-socket memberships too. */
  flags: { up: boolean; running: boolean; promisc: boolean };
  /** Administratively up and with carrier. */
  link: 'up' | 'down';
  /** Whether its frames begin with an Ethernet header. */
  ethernet: boolean;
  /** The machine's own loopback. */
  loopback: boolean;
  /** ARPHRD_… of linux/if_arp.h, IFT_… of FreeBSD's net/if_types.h. */
  linkType: number;
  /** What a virtual interface is: `veth`, `tun`, `wireguard`. */
  kind: string | null;
  /** An IP address that the host has on it; link-local ones, which come by themselves, aside. */
  address: string | null;
  /** What it is a member of; `kind` is `bridge`, `bond`, `vrf` and the like. */
  master: { name: string; kind: string | null } | null;
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
  /** What changes while a port is open, by the places in LOOK, into `out`. Takes the kernel's network lock twice. */
  netdevLook(ifname: string, netns: string, out: Float64Array): void;
  /** A handle for netdevRunning(). */
  netdevOpen(ifname: string, netns: string): number;
  /** 1 up and running, 0 not, or −errno. One ioctl that waits for nobody's lock; the kernel may lag behind the carrier. */
  netdevRunning(handle: number): number;
  /** Of netdevOpen(). */
  netdevClose(handle: number): void;
  /** The MAC address alone, `null` for an interface without one. */
  netdevMac(ifname: string, netns: string): string | null;
  /** Makes the interface take every frame until netdevPromiscClose(); on Linux the kernel undoes it if the process dies. */
  netdevPromiscOpen(ifname: string, netns: string): number;
  netdevPromiscClose(handle: number): void;
}

/** Places in what netdevLook() writes. */
export const LOOK = {
  link: 0,
  mtu: 1,
  /** −1 where unknown, as `txQueues`. */
  rxQueues: 2,
  txQueues: 3,
  /** The interface's own counters since it was made. */
  rxPackets: 4,
  txPackets: 5,
  rxErrors: 6,
  txErrors: 7,
  rxDropped: 8,
  txDropped: 9,
  /** Lost in the device for want of buffers; 0 where unknown. */
  rxMissed: 10,
} as const;
export const LOOK_LENGTH = 11;
