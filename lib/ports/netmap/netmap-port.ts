import { getSystemErrorMap } from 'node:util';
import {
  IF_HOST_RX_RINGS,
  IF_HOST_TX_RINGS,
  IF_RING_OFS,
  IF_RX_RINGS,
  IF_TX_RINGS,
  RING_CUR,
  RING_HEAD,
  RING_TAIL,
} from '../../rings/abi.js';
import { PortError } from '../../text/errors.js';
import { native, now } from '../../shim/native.js';
import type { NetmapOpened, NetmapRequest } from '../../shim/native-netmap.js';
import { amountIn } from '../../rings/amount.js';
import { NetdevCounters } from '../netdev-counters.js';
import type { Netdev, Outside, Port, PortOptions, Prepare } from '../port.js';
import { parsePortSpec } from '../../names/portspec.js';
import { Region } from '../../rings/region.js';
import { Ring } from '../../rings/ring.js';
import type { NetmapSpec } from '../../names/netmap-name.js';
import { KernelLog } from './kernel-log.js';
import { withRemedy } from './netmap-errors.js';
import { netmapRequest } from './netmap-request.js';

/**
 * Drivers with netmap support of their own: netmap(4) SUPPORTED DEVICES, and for Linux the drivers that netmap's
 * configure knows. Any other is emulated over the interface's ordinary path.
 */
const NATIVE_DRIVERS: ReadonlySet<string> = new Set(
  process.platform === 'freebsd'
    ? [
        'cc',
        'cxgbe',
        'cxl',
        'em',
        'igb',
        'igc',
        'ix',
        'ixv',
        'ixl',
        'iavf',
        'ice',
        'lem',
        'ptnet',
        're',
        'vcc',
        'vcxl',
        'vmx',
        'vtnet',
      ]
    : [
        'e1000',
        'e1000e',
        'forcedeth',
        'i40e',
        'ice',
        'igb',
        'igc',
        'ixgbe',
        'ixgbevf',
        'mlx5_core',
        'r8169',
        'virtio_net',
        'vmxnet3',
      ],
);

/** The rings of one port that this descriptor has bound, in the order of netmap_if: NIC tx, host tx, NIC rx, host rx. */
interface BoundRings {
  tx: Ring[];
  hostTx: Ring[];
  rx: Ring[];
  hostRx: Ring[];
}

function boundRings(region: Region, nifpByte: number): BoundRings {
  const { i32 } = region;
  const nifp = nifpByte / 4;
  let word = nifp + IF_RING_OFS;
  const take = (count: number): Ring[] => {
    const rings: Ring[] = [];
    for (let i = 0; i < count; i++, word += 2) {
      const offset = region.i64(word);
      // A ring that is counted but not bound to this descriptor has no offset.
      if (offset !== 0) rings.push(new Ring(region, (nifpByte + offset) / 4));
    }
    return rings;
  };
  const tx = take(i32[nifp + IF_TX_RINGS]);
  const hostTx = take(i32[nifp + IF_HOST_TX_RINGS]);
  const rx = take(i32[nifp + IF_RX_RINGS]);
  const hostRx = take(i32[nifp + IF_HOST_RX_RINGS]);
  return { tx, hostTx, rx, hostRx };
}

/**
 * The rings of one direction, held to netmap's rule before the kernel sees them. The kernel itself answers a head or
 * cur that is not the user's with 0 and a ring put back, or with 0 and a head that its next sync believes.
 */
class Held {
  readonly #rings: readonly Ring[];
  /** As the last sync left them. */
  readonly #heads: Int32Array;
  /** Times a ring was put back. */
  reinits = 0;

  constructor(rings: readonly Ring[]) {
    this.#rings = rings;
    this.#heads = Int32Array.from(rings, (ring) => ring.head);
  }

  /** Returns whether the user let go of a slot, or the kernel has one: whether a sync can do anything for a tx ring. */
  check(): boolean {
    const rings = this.#rings;
    let due = false;
    for (let i = 0; i < rings.length; i++) {
      const { i32, base, numSlots } = rings[i];
      const head = i32[base + RING_HEAD];
      const free = i32[base + RING_TAIL] - head;
      if (free !== -1 && free !== numSlots - 1) due = true;
      if (head === this.#heads[i] && head === i32[base + RING_CUR]) continue;
      due = true;
      if (owned(rings[i], this.#heads[i])) this.#heads[i] = head;
      else {
        this.reinits++;
        rings[i].moveTo(this.#heads[i]);
      }
    }
    return due;
  }

  /** Slots that the user let go of after the last sync. */
  get waiting(): number {
    return this.#rings.reduce((sum, { head, numSlots }, i) => sum + ((head - this.#heads[i] + numSlots) % numSlots), 0);
  }
}

/** Whether `from` ≤ head ≤ cur ≤ tail, around the ring. */
function owned({ i32, base, numSlots }: Ring, from: number): boolean {
  const head = i32[base + RING_HEAD];
  const cur = i32[base + RING_CUR];
  const tail = i32[base + RING_TAIL];
  // Unsigned: refuses negative values too. A tail that is no slot is for the kernel to put right.
  if (head >>> 0 >= numSlots || cur >>> 0 >= numSlots) return false;
  const taken = (head - from + numSlots) % numSlots;
  const ahead = (cur - from + numSlots) % numSlots;
  return taken <= ahead && (tail >>> 0 >= numSlots || ahead <= (tail - from + numSlots) % numSlots);
}

/** ns after opening within which a NIC begins to send: its ring may stand for 1 to 2 s though its carrier reads up. */
const SETTLE_NS = 5e9;

/**
 * A port of the kernel's netmap. `stats()`: `reinits`, rings put back because head or cur broke netmap's rule; of a NIC what
 * it counts itself since the port was opened, whoever used it: frames it lost, `interface_…` (see NetdevCounters).
 */
class NetmapPort implements Port {
  readonly driver = 'netmap';
  readonly name: string;
  readonly region: Region;
  readonly tx: readonly Ring[];
  readonly rx: readonly Ring[];
  readonly hostTx: readonly Ring[];
  readonly hostRx: readonly Ring[];
  readonly notes: readonly string[];
  readonly fds: readonly number[];
  readonly napNs = 0;
  readonly hasLink: boolean;
  readonly netdev: Netdev | undefined;
  readonly #handle: number;
  readonly #ifname: string;
  readonly #isPipe: boolean;
  readonly #heldTx: Held;
  readonly #heldRx: Held;
  readonly #opened = now();
  /** Tails of the tx rings when they were opened. */
  readonly #tails: readonly number[];
  readonly #counters: NetdevCounters | undefined;
  #promisc = -1;
  #open = true;

  constructor(spec: NetmapSpec, request: NetmapRequest, opened: NetmapOpened, options: PortOptions) {
    this.name = spec.text;
    this.#handle = opened.handle;
    this.#ifname = spec.name;
    this.#isPipe = spec.pipe !== undefined;
    this.fds = [opened.fd];
    try {
      // Ports of one memory id see the same buffers, wherever each has mapped them.
      this.region = new Region(`netmap:${opened.memId}`, opened.buffer);
      const bound = boundRings(this.region, opened.offset);
      const hostOnly = spec.mode === 'host' || spec.mode === 'one-host';
      // `IF^` is a port of its own: what it forwards are the host's rings.
      this.tx = hostOnly ? bound.hostTx : bound.tx;
      this.rx = hostOnly ? bound.hostRx : bound.rx;
      this.hostTx = hostOnly ? [] : bound.hostTx;
      this.hostRx = hostOnly ? [] : bound.hostRx;
      this.#heldTx = new Held([...bound.tx, ...bound.hostTx]);
      this.#heldRx = new Held([...bound.rx, ...bound.hostRx]);
      this.#tails = this.tx.map((ring) => ring.tail);
      const nic = !spec.vale && spec.pipe === undefined;
      const monitor = spec.monitorTx || spec.monitorRx;
      this.hasLink = nic && !hostOnly;
      this.netdev = this.hasLink ? { ifname: spec.name, netns: '' } : undefined;
      this.#counters = this.netdev && countersOf(this.netdev);
      this.notes = nic ? notes(spec.name) : [];
      // After registering, because i40e leaves promiscuous mode when it enters netmap's.
      if (nic && !hostOnly && !monitor && options.promisc !== false) this.#promisc = promiscuous(spec);
    } catch (error) {
      native.netmapClose(opened.handle);
      throw withRemedy(error, spec, request);
    }
  }

  txsync(): void {
    if (!this.#heldTx.check()) return;
    const errno = native.netmapTxsync(this.#handle);
    if (errno !== 0) throw this.#failed('NIOCTXSYNC', errno);
  }

  rxsync(): void {
    this.#heldRx.check();
    const errno = native.netmapRxsync(this.#handle);
    if (errno !== 0) throw this.#failed('NIOCRXSYNC', errno);
  }

  willPoll(): boolean {
    this.#heldRx.check();
    return this.#heldTx.check();
  }

  #failed(call: string, errno: number): PortError {
    const [code, text] = getSystemErrorMap().get(-errno) ?? [`errno ${errno}`, 'unknown error'];
    return new PortError(
      `${this.name}: ${call}: ${text} (${code}): the port is closed or its interface is gone`,
      this.name,
      {
        code,
      },
    );
  }

  linkUp(): boolean {
    if (!this.hasLink) return true;
    try {
      return native.netdevLink(this.#ifname, '');
    } catch {
      return false; // gone; the next sync says so
    }
  }

  ended(): boolean {
    return false;
  }

  txPending(): number {
    if (!this.#open) return 0;
    // A sync puts them where the other end finds them. Their slots come back when that end has synced twice, if it does.
    if (this.#isPipe) return this.#heldTx.waiting;
    let pending = 0;
    for (const ring of this.tx) pending += Math.max(ring.numSlots - 1 - ring.space, 0);
    return pending;
  }

  settling(): boolean {
    return this.hasLink && now() - this.#opened < SETTLE_NS && this.tx.every((ring, i) => ring.tail === this.#tails[i]);
  }

  outside(): Outside | undefined {
    return this.#counters?.outside(() => {
      const waiting = this.rx.map((ring) => amountIn(ring, ring.head, ring.space).frames);
      return { lost: 0, waiting: waiting.reduce((sum, frames) => sum + frames, 0) };
    });
  }

  stats(): Record<string, number> {
    return { reinits: this.#heldTx.reinits + this.#heldRx.reinits, ...this.#counters?.losses() };
  }

  close(): void {
    if (!this.#open) return;
    this.#open = false;
    // While the interface is still in netmap mode, as it was when it was set.
    if (this.#promisc >= 0) native.netdevPromiscClose(this.#promisc);
    native.netmapClose(this.#handle);
  }
}

/** undefined: netmap knows the interface, and the system does not. */
function countersOf(netdev: Netdev): NetdevCounters | undefined {
  try {
    return new NetdevCounters(netdev);
  } catch {
    return undefined;
  }
}

function promiscuous(spec: NetmapSpec): number {
  try {
    return native.netdevPromiscOpen(spec.name, '');
  } catch (error) {
    const { message, code = '' } = error as NodeJS.ErrnoException;
    throw new PortError(
      `${message}: a bridge needs promiscuous mode to see frames for others; --no-promisc goes without`,
      spec.text,
      { code, cause: error },
    );
  }
}

/** What a person should know about a NIC before frames flow. */
function notes(ifname: string): string[] {
  let info;
  try {
    info = native.netdevInfo(ifname, '');
  } catch {
    return []; // no network interface to the system
  }
  const found: string[] = [];
  const { driver, offloads } = info;
  if (driver !== null && !NATIVE_DRIVERS.has(driver))
    found.push(
      `${ifname}: its driver ${driver} is not known to support netmap, so the kernel emulates it: expect a fraction of ` +
        'native speed, and lost frames under load',
    );
  const on = (['rxChecksum', 'txChecksum', 'tso', 'gso', 'gro', 'lro', 'rxVlan', 'txVlan'] as const).filter(
    (offload) => offloads[offload] === true,
  );
  if (on.length > 0)
    found.push(
      `${ifname}: netmap does not change the interface's offloads, which alter or merge frames; on are: ${on.join(', ')} ` +
        (process.platform === 'freebsd'
          ? `(ifconfig ${ifname} -rxcsum -txcsum -tso -lro -vlanhwtag)`
          : `(ethtool -K ${ifname} rx off tx off tso off gso off gro off lro off rxvlan off txvlan off)`),
    );
  return found;
}

/** The memory id of the port named by `@share=`. */
function sharedMemory(spec: NetmapSpec, request: NetmapRequest): number {
  if (spec.share === undefined) return spec.memId ?? 0;
  const shared = parsePortSpec(
    spec.share.startsWith('vale') ? spec.share : `netmap:${spec.share.replace(/^netmap:/, '')}`,
  );
  if (shared.kind !== 'netmap') return 0;
  try {
    return native.netmapPortInfo(shared.name, shared.memId ?? 0).memId;
  } catch (error) {
    throw withRemedy(error, shared, request);
  }
}

/** Prepares a port of the kernel's netmap; it brings its own memory. */
export const prepareNetmap: Prepare<NetmapSpec> = (spec, options) => ({
  open() {
    let request = netmapRequest(spec);
    request = { ...request, memId: sharedMemory(spec, request) };
    const log = new KernelLog();
    let opened;
    try {
      opened = native.netmapOpen(request);
    } catch (error) {
      throw withRemedy(error, spec, request, log.said());
    } finally {
      log.close();
    }
    return new NetmapPort(spec, request, opened, options);
  },
});
