import { UsageError } from '../text/errors.js';
import { native } from '../shim/native.js';
import { withRemedy } from './netmap/netmap-errors.js';
import { portSpec } from './interface.js';
import { netmapRequest } from './netmap/netmap-request.js';
import { formatPortSpec, type AutoSpec, type NetmapSpec, type PortSpec, type XdpSpec } from '../names/portspec.js';

/** The driver taken for a bare interface, and why. */
export interface Choice {
  spec: NetmapSpec | XdpSpec;
  /** A sentence for people. */
  why: string;
}

/** Codes by which /dev/netmap says that this user may not use it: the remedy is a permission, not another driver. */
const DENIED: ReadonlySet<string> = new Set(['EACCES', 'EPERM']);

/**
 * The best driver there is for an interface: netmap where /dev/netmap answers for it, else AF_XDP on Linux.
 * @throws PortError when there is neither, or /dev/netmap may not be opened
 */
export function chooseDriver({ ifname }: AutoSpec): Choice {
  const netmap = portSpec(`netmap:${ifname}`) as NetmapSpec;
  try {
    native.netmapPortInfo(netmap.name, 0);
    return { spec: netmap, why: `${ifname} is opened as ${netmap.text}: /dev/netmap answers for it` };
  } catch (error) {
    const { code = '', syscall = '' } = error as NodeJS.ErrnoException;
    if (process.platform !== 'linux' || DENIED.has(code)) throw withRemedy(error, netmap, netmapRequest(netmap));
    const xdp = portSpec(`xdp:${ifname}`) as XdpSpec;
    const because = syscall.startsWith('open') ? 'this machine has no netmap' : `netmap refuses it (${code})`;
    return { spec: xdp, why: `${ifname} is opened as ${xdp.text} (AF_XDP): ${because}` };
  }
}

/** What a bridge opens for the names it was given, and what there is to say about it. */
export interface Endpoints {
  specs: PortSpec[];
  says: string[];
}

/**
 * Bare interfaces get their driver, and one netmap port, or the same twice, gets its host rings as the other side.
 * @param loop the one port is to be looped back, so that it needs no other side
 * @throws UsageError or PortError
 */
export function endpoints(names: readonly string[], loop: boolean): Endpoints {
  if (names.length < 1 || names.length > 2)
    throw new UsageError(`a bridge joins one or two ports; ${names.length} given`);
  const says: string[] = [];
  const specs = [...new Set(names)].map((name) => {
    const spec = portSpec(name);
    if (spec.kind !== 'auto') return spec;
    const choice = chooseDriver(spec);
    says.push(choice.why);
    return choice.spec;
  });
  const [nic] = specs;
  if (specs.length === 1 && !loop && nic.kind === 'netmap' && nic.mode === 'nic' && !nic.vale) {
    const host: NetmapSpec = { ...nic, mode: 'host' };
    specs.push({ ...host, text: formatPortSpec(host) });
  }
  return { specs, says };
}
