import { chooseDriver } from '../ports/choose.js';
import { UsageError } from '../text/errors.js';
import { native } from '../shim/native.js';
import type { PortOptions } from '../ports/port.js';
import { withRemedy } from '../ports/netmap/netmap-errors.js';
import { netmapRequest } from '../ports/netmap/netmap-request.js';
import { portSpec } from '../ports/interface.js';
import { openQueues } from '../ports/xdp/xdp-port.js';
import { formatPortSpec, type NetmapSpec, type PortSpec, type SimSpec, type XdpSpec } from '../names/portspec.js';

/** What one thread opens. */
interface Share {
  readonly spec: PortSpec;
  /** Number of its first ring among all of the port's. */
  readonly firstRing: number;
}

/** A port's rings in parts, one for each thread. */
interface Shares {
  readonly parts: readonly Share[];
  /** How each thread opens its part. */
  readonly options: PortOptions;
  /** What a person should know about it. */
  readonly says: readonly string[];
  /** To be called when every thread has closed its part. */
  close(): void;
}

/** The `k`-th of `parts` parts of `total`, which differ by one at most, the larger ones first. */
export function partOf(total: number, parts: number, k: number): number {
  return Math.floor(total / parts) + (k < total % parts ? 1 : 0);
}

/** First and number of each part's rings. */
function spans(rings: number, parts: number): { first: number; count: number }[] {
  let next = 0;
  return Array.from({ length: parts }, (_, k) => {
    const first = next;
    const count = partOf(rings, parts, k);
    next += count;
    return { first, count };
  });
}

/**
 * Shares a port out among threads: each ring belongs to one thread, and only that one opens it.
 * @param receives whether frames are to be received: then every ring must belong to a thread
 * @throws UsageError when the port has too few rings, or none to share; PortError when it cannot be looked at
 */
export function shareOut(name: string, threads: number, receives: boolean, options: PortOptions): Shares {
  const spec = portSpec(name);
  const shares = (parts: readonly Share[]): Shares => ({ parts, options, says: [], close: () => undefined });
  if (threads === 1) return shares([{ spec, firstRing: 0 }]);
  switch (spec.kind) {
    case 'sim':
      return shares(simShares(spec, threads, receives));
    case 'netmap':
      return shares(netmapShares(spec, threads, receives));
    case 'xdp':
      return xdpShares(spec, threads, options);
    case 'pipe':
      throw new UsageError(
        `${name}: a pipe has one ring each way, and a ring belongs to one thread; leave -c out, or run a pkt-gen for each of several pipes`,
      );
    case 'pcap':
      throw new UsageError(`${name}: a file is read or written by one thread; leave -c out`);
    case 'auto': {
      const { spec: chosen, why } = chooseDriver(spec);
      const found = shareOut(formatPortSpec(chosen), threads, receives, options);
      return { ...found, says: [why, ...found.says] };
    }
  }
}

function tooFew(name: string, rings: number, threads: number, remedy: string): UsageError {
  return new UsageError(
    `${name} has ${rings} ring${rings === 1 ? '' : 's'} each way, and each of ${threads} threads needs one of its own; write -c ${rings}, or ${remedy}`,
  );
}

/** Each thread simulates a port with its share of the rings and of the link's rate. */
function simShares(spec: SimSpec, threads: number, receives: boolean): Share[] {
  if (spec.rings < threads)
    throw tooFew(spec.text, spec.rings, threads, `give the port more: rings=${threads} in its name`);
  // A count of 0 means that frames arrive without end.
  if (receives && spec.count > 0 && spec.count < threads)
    throw new UsageError(
      `${spec.text} brings count=${spec.count}, fewer frames than ${threads} threads: write -c ${spec.count}, or a larger count`,
    );
  return spans(spec.rings, threads).map(({ first, count }, k) => ({
    firstRing: first,
    spec: {
      ...spec,
      rings: count,
      rate: (spec.rate * count) / spec.rings,
      count: partOf(spec.count, threads, k),
      seed: (spec.seed + k) >>> 0,
    },
  }));
}

/** netmap binds one ring pair to a descriptor, or all. */
function netmapShares(spec: NetmapSpec, threads: number, receives: boolean): Share[] {
  const pipe = spec.pipe !== undefined && spec.ring === undefined;
  if ((spec.mode !== 'nic' && !pipe) || spec.vale)
    throw new UsageError(
      `${spec.text}: only all rings of a NIC or a pipe can be shared out among threads; leave -c out`,
    );
  const rings = pipe ? pipeRings(spec, receives) : nicRings(spec, receives);
  const more = pipe
    ? `give the pipe more: @conf:rings=${threads}`
    : `set their number ${process.platform === 'linux' ? `with ethtool -L ${spec.name}` : 'in the driver'}`;
  if (rings < threads) throw tooFew(spec.text, rings, threads, more);
  if (receives && rings > threads)
    throw new UsageError(
      `${spec.text} receives on ${rings} rings, and netmap gives a thread one ring or all of them; write -c ${rings} or -c 1`,
    );
  return Array.from({ length: threads }, (_, ring) => ({
    spec: { ...spec, ring, ...(!pipe && { mode: 'one-nic' }) },
    firstRing: ring,
  }));
}

function nicRings(spec: NetmapSpec, receives: boolean): number {
  try {
    const { rxRings, txRings } = native.netmapPortInfo(spec.name, spec.memId ?? 0);
    return receives ? rxRings : txRings;
  } catch (error) {
    throw withRemedy(error, spec, netmapRequest(spec));
  }
}

/** A pipe is made when it is opened: with as many rings as are asked for, else one. */
function pipeRings({ conf = {} }: NetmapSpec, receives: boolean): number {
  return (receives ? conf.rxRings : conf.txRings) ?? conf.rings ?? 1;
}

/** Each thread opens sockets on its share of the queues; the program that fills them is attached here, once. */
function xdpShares(spec: XdpSpec, threads: number, options: PortOptions): Shares {
  const { queues, gate } = openQueues(spec, options);
  if (queues.length < threads) {
    gate.close();
    const { ifname } = spec;
    throw tooFew(
      spec.text,
      queues.length,
      threads,
      `raise their number with ethtool -L ${ifname}, if it can have more`,
    );
  }
  return {
    parts: spans(queues.length, threads).map(({ first, count }) => ({
      firstRing: first,
      spec: { ...spec, queues: { first: queues[first], last: queues[first + count - 1] } },
    })),
    options: { ...options, gate: gate.shared },
    says: [],
    close: () => {
      gate.close();
    },
  };
}
