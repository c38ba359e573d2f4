import { readdirSync, readFileSync } from 'node:fs';
import { arch, cpus, hostname, release, type } from 'node:os';

/** Settings of one interface, as far as its driver tells them. */
export interface InterfaceSettings {
  driver?: string;
  mtu?: number;
  /** Link speed in Gbit/s. */
  gbps?: number;
  /** Slots in each ring. */
  rings?: { rx: number; tx: number };
  offloads?: Record<string, boolean>;
  /** Interrupt moderation, by the driver's or ethtool's names. */
  moderation?: Record<string, number | boolean>;
  /** Why nothing more is known. */
  error?: string;
}

/** What a number was measured on. */
export interface Surroundings {
  host: string;
  system: string;
  kernel: string;
  arch: string;
  cpu: string;
  /** Logical processors. */
  cores: number;
  /** Frequency governors in use, or absent where the system does not tell (virtual machines, mostly). */
  governor?: string;
  node: string;
  /** Name and version of this software. */
  software: string;
  interfaces?: Record<string, InterfaceSettings>;
}

function governors(): string | undefined {
  const base = '/sys/devices/system/cpu';
  try {
    const names = readdirSync(base).filter((name) => /^cpu\d+$/.test(name));
    const read = (name: string): string => readFileSync(`${base}/${name}/cpufreq/scaling_governor`, 'utf8').trim();
    return [...new Set(names.map(read))].sort().join(', ') || undefined;
  } catch {
    // No cpufreq here: the frequency is not the system's to choose, or it does not say.
    return undefined;
  }
}

function software(): string {
  const text = readFileSync(new URL('../../../../package.json', import.meta.url), 'utf8');
  const { name, version } = JSON.parse(text) as { name: string; version: string };
  return `${name} ${version}`;
}

/**
 * Describes this machine and the named interfaces. `inspect` tells an interface's settings; when it throws, its message
 * stands in their place, for a measurement is worth keeping even where a driver does not answer.
 */
export function describeSurroundings(
  interfaces: readonly string[] = [],
  inspect: (name: string) => InterfaceSettings = () => ({}),
): Surroundings {
  const processors = cpus();
  const governor = governors();
  const settings = (name: string): InterfaceSettings => {
    try {
      return inspect(name);
    } catch (error) {
      return { error: (error as Error).message };
    }
  };
  return {
    host: hostname(),
    system: type(),
    kernel: release(),
    arch: arch(),
    cpu: processors[0]?.model.trim() ?? 'unknown',
    cores: processors.length,
    ...(governor !== undefined && { governor }),
    node: process.version,
    software: software(),
    ...(interfaces.length > 0 && { interfaces: Object.fromEntries(interfaces.map((name) => [name, settings(name)])) }),
  };
}
