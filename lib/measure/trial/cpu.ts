/** What the whole machine's cores did while something was measured, from the operating system's own counters. */
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import type { CoreShares } from '../results/result.js';

/** Ticks of one core since start-up, by what it did. The length of a tick does not matter: only shares are made of them. */
export interface CoreTicks {
  user: number;
  system: number;
  /** Interrupt handlers; on FreeBSD their threads too. */
  irq: number;
  /** Deferred interrupt work, where the system tells it apart: on Linux. Else 0. */
  softirq: number;
  idle: number;
}

/**
 * Linux's /proc/stat, `cpuN` lines: user, nice, system, idle, iowait, irq, softirq, steal, … (proc_stat(5)).
 * Guest time is part of user time there. Returns the ticks by number of the core.
 */
export function parseProcStat(text: string): Map<number, CoreTicks> {
  const cores = new Map<number, CoreTicks>();
  for (const [, core, rest] of text.matchAll(/^cpu(\d+) +(.*)$/gm)) {
    const [user, nice, system, idle, iowait, irq, softirq, steal = 0] = rest.split(/ +/).map(Number);
    cores.set(Number(core), { user: user + nice, system, irq, softirq, idle: idle + iowait + steal });
  }
  return cores;
}

/** FreeBSD's `sysctl -n kern.cp_times`: for each core user, nice, system, interrupt, idle (sys/resource.h, CPUSTATES). */
export function parseCpTimes(text: string): Map<number, CoreTicks> {
  const numbers = text.trim().split(/\s+/).map(Number);
  const cores = new Map<number, CoreTicks>();
  for (let core = 0; 5 * core + 4 < numbers.length; core++) {
    const [user, nice, system, irq, idle] = numbers.slice(5 * core);
    cores.set(core, { user: user + nice, system, irq, softirq: 0, idle });
  }
  return cores;
}

/** The counters now; empty where the system does not tell (a container without /proc, for one). */
export function readCores(): Map<number, CoreTicks> {
  try {
    return process.platform === 'freebsd'
      ? parseCpTimes(execFileSync('sysctl', ['-n', 'kern.cp_times'], { encoding: 'utf8' }))
      : parseProcStat(readFileSync('/proc/stat', 'utf8'));
  } catch {
    return new Map();
  }
}

/** Shares between two readings. A core without a tick in between, or that came or went, is left out. */
export function coreShares(
  before: ReadonlyMap<number, CoreTicks>,
  after: ReadonlyMap<number, CoreTicks>,
): CoreShares[] {
  const shares: CoreShares[] = [];
  for (const [core, end] of after) {
    const start = before.get(core);
    if (start === undefined) continue;
    const of = (key: keyof CoreTicks): number => Math.max(0, end[key] - start[key]);
    const ticks = of('user') + of('system') + of('irq') + of('softirq') + of('idle');
    if (ticks === 0) continue;
    const share = (key: keyof CoreTicks): number => of(key) / ticks;
    shares.push({ core, user: share('user'), system: share('system'), irq: share('irq'), softirq: share('softirq') });
  }
  return shares;
}

/** Sums over all cores as result files name them: 1 is one core busy all the time. Empty where nothing is known. */
export function cpuMetrics(cores: readonly CoreShares[]): Record<string, number> {
  if (cores.length === 0) return {};
  const sum = (key: Exclude<keyof CoreShares, 'core'>): number => cores.reduce((total, core) => total + core[key], 0);
  return {
    cpu_user_share: sum('user'),
    cpu_system_share: sum('system'),
    cpu_irq_share: sum('irq'),
    cpu_softirq_share: sum('softirq'),
  };
}

/** Cores busy with anything, their shares added up; undefined where nothing is known. */
export function busyCores(cores: readonly CoreShares[]): number | undefined {
  return cores.length === 0 ? undefined : Object.values(cpuMetrics(cores)).reduce((sum, share) => sum + share);
}

/** The cores that did something, for people: `cpu0 93 % user, 5 % system · cpu3 2 % softirq`. */
export function coresText(cores: readonly CoreShares[]): string {
  const words = cores.flatMap(({ core, ...shares }) => {
    const parts = Object.entries(shares)
      .filter(([, share]) => share >= 0.005)
      .map(([what, share]) => `${Math.round(100 * share)} % ${what}`);
    return parts.length === 0 ? [] : [`cpu${core} ${parts.join(', ')}`];
  });
  return words.join(' · ');
}
