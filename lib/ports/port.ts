import type { Amount } from '../rings/amount.js';
import type { PortSpec } from '../names/portspec.js';
import type { MemoryPlan, Memory, RingPlan } from '../rings/memory.js';
import type { SharedGate } from './xdp/xdp-gate.js';
import type { Region } from '../rings/region.js';
import type { Ring } from '../rings/ring.js';

/**
 * A port: rings in a region, and the two syncs that move them. What stands behind differs, what is seen does not.
 * Only the thread that opened a port uses it.
 */
export interface Port {
  /** As the user wrote it. */
  readonly name: string;
  /** `netmap`, `xdp`, `sim`, `pipe`, `pcap`. */
  readonly driver: string;
  readonly region: Region;
  readonly tx: readonly Ring[];
  readonly rx: readonly Ring[];
  /** Rings to and from the host's network stack; empty where the port has none open. */
  readonly hostTx: readonly Ring[];
  readonly hostRx: readonly Ring[];
  /** What a person should know about the port before frames flow, a sentence each. */
  readonly notes: readonly string[];

  /**
   * Takes what was put into the tx rings and gives free slots back. Never blocks.
   * @throws PortError when the port can no longer be used, e.g. its interface is gone
   */
  txsync(): void;
  /**
   * Takes back the rx slots that were consumed and shows what has arrived. Never blocks.
   * @throws PortError when the port can no longer be used
   */
  rxsync(): void;

  /** Descriptors that poll() as readable when frames have arrived and writable when tx slots are free; may be empty. */
  readonly fds: readonly number[];
  /**
   * Called before a poll() on the descriptors that does what txsync() does and, asked for POLLIN, what rxsync() does.
   * Returns whether there is anything to send. Absent: poll() only waits.
   */
  willPoll?(): boolean;
  /** Nanoseconds the thread may sleep for lack of work where there is no descriptor to wait on. */
  readonly napNs: number;

  /** Whether the link is up; a port without a link is always up. */
  linkUp(): boolean;
  /** Whether the port stands for a link that needs time to come up after opening. */
  readonly hasLink: boolean;
  /** The interface whose link that is, for threads that watch it from outside; absent where it is none. */
  readonly netdev?: Netdev | undefined;
  /**
   * Looks at the interface behind the port, which has changed or may be gone; asks the kernel, which may take its time.
   * @param grow open rings for rx queues that the interface has got: they come last in `rx` and `tx`
   * @throws PortError when the port can no longer be used
   */
  look?(grow: boolean): void;
  /** What has changed about the port that a person should know, a sentence each, since the last call; absent: nothing can. */
  news?(): readonly string[];
  /** Whether its source has ended: what is in the rx rings now is the last. */
  ended(): boolean;
  /** What was wrong with the source when it ended, e.g. a truncated file; absent where a source cannot be wrong. */
  problem?(): string | undefined;
  /** Slots handed over by txsync() that have not left yet. */
  txPending(): number;
  /** Whether it was opened so recently that it may not have begun to send: what waits will leave later. Absent: never. */
  settling?(): boolean;
  /** What txsync() took and will never send, since the port was opened; absent where nothing tells. */
  refused?(): Amount;
  /** What the tx rings hold, or txsync() took, that has not left yet; absent where the newest txPending() slots do. */
  unsent?(): Amount;
  /** What is known of frames outside the rings; absent where nothing counts them. */
  outside?(): Outside | undefined;
  /** The port's own counters by name, e.g. frames the interface missed; see each kind. */
  stats(): Record<string, number>;

  /** Lets everything go; views of its rings read as empty afterwards. Twice is harmless. */
  close(): void;
}

/** An interface by its name, in a network namespace; `''`: where the process is. */
export interface Netdev {
  readonly ifname: string;
  readonly netns: string;
}

/** Frames at the interface behind a port, since the port was opened. */
export interface Outside {
  /** Arrived there, by the interface's own count, whatever became of them; null where it has counted none, as NICs may in netmap mode. */
  arrived: number | null;
  /** Of these, lost before they came into the rx rings. */
  lostBefore: number;
  /** Of these, in the rx rings and not taken from there. */
  waiting: number;
  /** Handed to the interface, by whomever, and dropped there: none of what the port refused or still has. */
  lostAfter: number;
}

/** How ports are to be opened. */
export interface PortOptions {
  /** Put interfaces into promiscuous mode while open. Default true. */
  promisc?: boolean;
  /** Frames are going to be copied from port to port, although their buffers could be exchanged. Default false. */
  copy?: boolean;
  /** For a port that opens some of an AF_XDP interface's queues while other threads have the others. */
  gate?: SharedGate;
}

/**
 * A port about to be opened. One that can live in any memory says what it needs there, so that the ports of one
 * bridge are given one memory and exchange buffers; one without `needs` brings its own.
 */
export interface Prepared {
  readonly needs?: Needs;
  open(memory: Memory | undefined): Port;
  /** Lets go what preparing took hold of, when the port is not going to be opened. Harmless after open(). */
  abandon?(): void;
}

export interface Needs {
  readonly plan: RingPlan;
  readonly bufSize: MemoryPlan['bufSize'];
  readonly offsetMask?: number;
}

/** What each port kind's file exports: prepares a spec of its kind. Throws UsageError or PortError. */
export type Prepare<Spec extends PortSpec> = (spec: Spec, options: PortOptions) => Prepared;
