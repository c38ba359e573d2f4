/** What the system tells of a network interface, for the surroundings of a result. */
import { native } from '../../shim/native.js';
import type { InterfaceSettings } from '../results/surroundings.js';

/** An interface and the network namespace that it is in; '' is the one of this process. */
export interface InterfaceName {
  ifname: string;
  netns: string;
}

/** `eth0`, or `lab/eth0` for an interface in the network namespace `lab` (as `ip netns` names it). */
export function splitInterface(name: string): InterfaceName {
  const slash = name.indexOf('/');
  return { netns: name.slice(0, Math.max(slash, 0)), ifname: name.slice(slash + 1) };
}

/** The settings of an interface. Throws an Error with `code` when there is no such interface. */
export function inspectInterface(name: string): InterfaceSettings {
  const { ifname, netns } = splitInterface(name);
  const info = native.netdevInfo(ifname, netns);
  const known = <T>(record: Record<string, T | null>): Record<string, T> =>
    Object.fromEntries(Object.entries(record).filter((entry): entry is [string, T] => entry[1] !== null));
  return {
    ...(info.driver !== null && { driver: info.driver }),
    mtu: info.mtu,
    ...(info.speed !== null && info.speed > 0 && { gbps: info.speed / 1000 }),
    ...(info.rings !== null && { rings: { rx: info.rings.rx, tx: info.rings.tx } }),
    offloads: known<boolean>(info.offloads),
    ...(info.coalesce !== null && { moderation: known<number | boolean>(info.coalesce) }),
  };
}
