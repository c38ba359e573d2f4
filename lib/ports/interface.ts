/** Interfaces as this machine has them: which of its readings a port's name has here, and what cannot be bridged. */
import { PortError } from '../text/errors.js';
import { parsePortSpec, type PortSpec } from '../names/portspec.js';
import { wholeName } from '../names/xdp-name.js';
import { native } from '../shim/native.js';
import type { NetdevInfo } from '../shim/native-netdev.js';

export function interfaceExists(ifname: string, netns = ''): boolean {
  try {
    native.netdevLink(ifname, netns);
    return true;
  } catch {
    return false;
  }
}

/**
 * What a port name means here. `eth1-0` has two readings, an interface and a queue or ring of another: an interface of
 * exactly that name goes first.
 * @throws UsageError for a name that says nothing
 */
export function portSpec(name: string): PortSpec {
  const spec = parsePortSpec(name);
  if (spec.kind === 'xdp') {
    const whole = wholeName(spec);
    if (whole !== undefined && interfaceExists(whole, spec.netns)) return { ...spec, ifname: whole, queues: 'all' };
  }
  if (spec.kind === 'netmap' && spec.mode === 'one-nic' && !spec.vale) {
    const { ring, ...rest } = spec;
    const whole = `${spec.name}-${ring!}`;
    if (interfaceExists(whole)) return { ...rest, name: whole, mode: 'nic' };
  }
  return spec;
}

/** What stops on an interface while a port has it; undefined: nothing that anybody would miss. */
export function hostLoses(ifname: string, { loopback, master, address }: NetdevInfo): string | undefined {
  if (loopback)
    return `${ifname} is this machine's loopback: what its programs send each other over it goes into this port instead`;
  const open = 'while this port is open';
  if (master !== null)
    return `${ifname} is a member of the ${master.kind ?? 'device'} ${master.name}, which receives nothing through it ${open}`;
  if (address !== null)
    return `${ifname} has the host's address ${address}: the host's own traffic on it stops ${open}`;
  return undefined;
}

/**
 * Refuses an interface whose packets are no Ethernet frames: a bridge would take what follows for addresses.
 * @throws PortError that names it and its link-layer type
 */
export function requireEthernet(port: string, ifname: string, info: NetdevInfo): void {
  if (info.ethernet) return;
  const what = info.kind ?? info.driver;
  throw new PortError(
    `${port}: ${ifname} is no Ethernet interface${what === null ? '' : ` (${what})`}: what it carries has no Ethernet ` +
      `header (link-layer type ${info.linkType}); a bridge needs one whose frames have: tap instead of tun, gretap instead of gre, vxlan`,
    port,
    { code: 'EPROTONOSUPPORT' },
  );
}
