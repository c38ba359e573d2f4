/** Settings of network interfaces that the tool itself knows how to read, to change and to put back. */
import type { NetdevOffload } from '../../shim/native-netdev.js';
import { native } from '../../shim/native.js';
import { splitInterface } from './inspect.js';
import { CommandError, output, type Words } from './matrix-command.js';

/** What is asked of an interface: MTU in bytes, slots of each ring, µs between receive interrupts, offloads by name. */
export interface DeviceSettings {
  mtu?: number;
  slots?: number;
  itr?: number;
  features?: Record<string, boolean>;
}

/** What an interface was set to. `features` has all that can be changed, by ethtool's (FreeBSD: ifconfig's) names. */
export interface DeviceState {
  mtu: number;
  rings?: { rx: number; tx: number };
  rxUsecs?: number;
  features: Record<string, boolean>;
}

/** An offload as ethtool(8), FreeBSD's ifconfig(8) and netdevInfo() call it. */
interface Offload {
  linux: readonly string[];
  freebsd: readonly string[];
  info: readonly NetdevOffload[];
}

/** Offloads by the names they have in a matrix. */
export const OFFLOADS: Readonly<Record<string, Offload>> = {
  tso: { linux: ['tso'], freebsd: ['tso'], info: ['tso'] },
  gso: { linux: ['gso'], freebsd: [], info: ['gso'] },
  gro: { linux: ['gro'], freebsd: [], info: ['gro'] },
  lro: { linux: ['lro'], freebsd: ['lro'], info: ['lro'] },
  checksum: { linux: ['rx', 'tx'], freebsd: ['rxcsum', 'txcsum'], info: ['rxChecksum', 'txChecksum'] },
  rxchecksum: { linux: ['rx'], freebsd: ['rxcsum'], info: ['rxChecksum'] },
  txchecksum: { linux: ['tx'], freebsd: ['txcsum'], info: ['txChecksum'] },
  rxvlan: { linux: ['rxvlan'], freebsd: ['vlanhwtag'], info: ['rxVlan'] },
  txvlan: { linux: ['txvlan'], freebsd: ['vlanhwtag'], info: ['txVlan'] },
};

const LINUX = process.platform === 'linux';
const TIMEOUT_MS = 30_000;

/** What netdevInfo() calls ifconfig's switches. */
const FREEBSD_SWITCHES = {
  tso: 'tso',
  lro: 'lro',
  rxcsum: 'rxChecksum',
  txcsum: 'txChecksum',
  vlanhwtag: 'rxVlan',
} as const;

const inside = (netns: string, argv: Words): string[] =>
  netns === '' ? [...argv] : ['ip', 'netns', 'exec', netns, ...argv];

/**
 * The switches in what `ethtool -k` prints that can be changed, as wanted: one that is off only because another is off
 * counts as on. A group (`tcp-segmentation-offload`) is told by its members, which are indented below it.
 */
export function parseFeatures(text: string): Record<string, boolean> {
  const lines = text.split('\n').map((line) => /^(\s*)([\w-]+): (on|off)(.*)$/.exec(line));
  const features: Record<string, boolean> = {};
  for (const [i, match] of lines.entries()) {
    if (match === null) continue;
    const [, indent, name, value, rest] = match;
    const isGroup = indent === '' && (lines.at(i + 1)?.[1] ?? '') !== '';
    if (isGroup || rest.includes('[fixed]')) continue;
    features[name] = (/\[requested (on|off)\]/.exec(rest)?.[1] ?? value) === 'on';
  }
  return features;
}

/** What an interface is set to now. Throws an Error with `code` when there is no such interface. */
export async function readDevice(name: string): Promise<DeviceState> {
  const { ifname, netns } = splitInterface(name);
  const info = native.netdevInfo(ifname, netns);
  const features = LINUX
    ? parseFeatures(await output(inside(netns, ['ethtool', '-k', ifname]), TIMEOUT_MS))
    : Object.fromEntries(
        Object.entries(FREEBSD_SWITCHES).flatMap(([word, key]) => {
          const on = info.offloads[key];
          return on === null ? [] : [[word, on]];
        }),
      );
  return {
    mtu: info.mtu,
    ...(info.rings !== null && { rings: { rx: info.rings.rx, tx: info.rings.tx } }),
    ...(info.coalesce !== null && { rxUsecs: info.coalesce.rxUsecs }),
    features,
  };
}

function featureWords(features: Record<string, boolean>): string[] {
  return Object.entries(features).flatMap(([word, on]) =>
    LINUX ? [word, on ? 'on' : 'off'] : [on ? word : `-${word}`],
  );
}

/** The commands that change an interface. FreeBSD has none for rings and moderation that fits every driver. */
function commandsFor(name: string, change: Partial<DeviceState>): string[][] {
  const { ifname, netns } = splitInterface(name);
  const words = featureWords(change.features ?? {});
  if (!LINUX) {
    const mtu = change.mtu === undefined ? [] : ['mtu', String(change.mtu)];
    return mtu.length + words.length === 0 ? [] : [['ifconfig', ifname, ...mtu, ...words]];
  }
  const commands: string[][] = [];
  const { mtu, rings, rxUsecs } = change;
  if (mtu !== undefined) commands.push(['ip', 'link', 'set', 'dev', ifname, 'mtu', String(mtu)]);
  if (rings) commands.push(['ethtool', '-G', ifname, 'rx', String(rings.rx), 'tx', String(rings.tx)]);
  if (rxUsecs !== undefined) commands.push(['ethtool', '-C', ifname, 'rx-usecs', String(rxUsecs)]);
  if (words.length > 0) commands.push(['ethtool', '-K', ifname, ...words]);
  return commands.map((argv) => inside(netns, argv));
}

/** What there is to change to get from one state to another. */
function changes(from: DeviceState, to: DeviceState): Partial<DeviceState> {
  const features = Object.fromEntries(
    Object.entries(to.features).filter(([name, on]) => name in from.features && from.features[name] !== on),
  );
  return {
    ...(from.mtu !== to.mtu && { mtu: to.mtu }),
    ...(to.rings && (from.rings?.rx !== to.rings.rx || from.rings.tx !== to.rings.tx) && { rings: to.rings }),
    ...(to.rxUsecs !== undefined && from.rxUsecs !== to.rxUsecs && { rxUsecs: to.rxUsecs }),
    ...(Object.keys(features).length > 0 && { features }),
  };
}

/** The commands that put an interface back, as far as it is not what it was. */
export async function restoringCommands(name: string, was: DeviceState): Promise<string[][]> {
  return commandsFor(name, changes(await readDevice(name), was));
}

/**
 * Puts an interface back as it was and reads it again.
 * @throws Error when a command fails or something is still not as it was
 */
export async function restoreDevice(name: string, was: DeviceState): Promise<void> {
  for (const argv of await restoringCommands(name, was)) await output(argv, TIMEOUT_MS);
  const left = changes(await readDevice(name), was);
  if (Object.keys(left).length > 0)
    throw new Error(`${name} did not go back to ${JSON.stringify(left)}, although no command failed`);
}

/** The offload names of a matrix as the system's own words. */
function wanted(settings: DeviceSettings): Record<string, boolean> {
  const words = Object.entries(settings.features ?? {}).map(([offload, on]) => {
    const names = OFFLOADS[offload][LINUX ? 'linux' : 'freebsd'];
    if (names.length === 0) throw new Error(`${offload}: this system has no such offload`);
    return names.map((name) => [name, on] as const);
  });
  return Object.fromEntries(words.flat());
}

/** The commands that apply settings. */
export function applyingCommands(name: string, settings: DeviceSettings): string[][] {
  if (!LINUX && (settings.slots ?? settings.itr) !== undefined)
    throw new Error(`${name}: slots and itr have no common command here: give the axis as commands (sysctl) instead`);
  return commandsFor(name, {
    ...(settings.mtu !== undefined && { mtu: settings.mtu }),
    ...(settings.slots !== undefined && { rings: { rx: settings.slots, tx: settings.slots } }),
    ...(settings.itr !== undefined && { rxUsecs: settings.itr }),
    features: wanted(settings),
  });
}

/**
 * Applies settings to an interface and reads back what came of it.
 * @throws CommandError when a command fails, Error when the driver took something else than was asked for
 */
export async function applyDevice(name: string, settings: DeviceSettings): Promise<void> {
  const commands = applyingCommands(name, settings);
  for (const argv of commands) {
    try {
      await output(argv, TIMEOUT_MS);
    } catch (error) {
      // ethtool fails when a ring or a moderation is asked for that is already set.
      const same = error instanceof CommandError && /unmodified, ignoring|no .* parameters changed/.test(error.message);
      if (!same) throw error;
    }
  }
  const { ifname, netns } = splitInterface(name);
  const info = native.netdevInfo(ifname, netns);
  const refuse = (what: string, asked: string, is: string): never => {
    throw new Error(
      `${name}: ${what} ${asked} was asked for and it is ${is}: the driver, or another offload, does not allow it`,
    );
  };
  const { mtu, slots, itr, features = {} } = settings;
  if (mtu !== undefined && info.mtu !== mtu) refuse('mtu', String(mtu), String(info.mtu));
  if (slots !== undefined && info.rings?.rx !== slots) refuse('slots', String(slots), String(info.rings?.rx));
  if (itr !== undefined && info.coalesce?.rxUsecs !== itr) refuse('itr', String(itr), String(info.coalesce?.rxUsecs));
  for (const [offload, on] of Object.entries(features)) {
    for (const key of OFFLOADS[offload].info) {
      const is = info.offloads[key];
      if (is !== null && is !== on) refuse(offload, on ? 'on' : 'off', is ? 'on' : 'off');
    }
  }
}
