import { native } from '../native.js';
import type { XdpRingMap } from './xdp-ring.js';

/** A handle of the shim, and its descriptor for poll(). */
export interface Opened {
  handle: number;
  fd: number;
}

/** What netdevInfo tells; what the driver does not say is null. */
export interface NetdevInfo {
  index: number;
  /** Bytes of L3 payload. */
  mtu: number;
  flags: { up: boolean; running: boolean; promisc: boolean };
  link: 'up' | 'down';
  driver: string | null;
  rxQueues: number | null;
  txQueues: number | null;
  offloads: Record<'rxChecksum' | 'txChecksum' | 'tso' | 'gso' | 'gro' | 'lro' | 'rxVlan' | 'txVlan', boolean | null>;
}

/** The shim's functions for AF_XDP and BPF; addon/xdp.c says what each does. Off Linux all throw ENOSYS. */
export interface XdpNative {
  netdevInfo(ifname: string, netns: string): NetdevInfo;
  netdevLink(ifname: string, netns: string): boolean;
  netdevPromiscOpen(ifname: string, netns: string): number;
  netdevPromiscClose(handle: number): void;
  xdpSocket(port: string, netns: string): Opened;
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
  bpfXskMap(port: string, entries: number): Opened;
  bpfMapSet(map: number, queue: number, socket: number): void;
  bpfXdpProgram(port: string, instructions: Int32Array, flags: number): Opened;
  bpfXdpLink(port: string, program: number, ifindex: number, flags: number, netns: string): Opened;
  bpfClose(object: number): void;
}

export const xdp = native as unknown as XdpNative;
