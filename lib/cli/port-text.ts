/** What every tool prints of a port: what was opened, and the port's own statistics. */
import { parsePortSpec, writesStdout } from '../names/portspec.js';
import type { PortInfo } from '../ports/port-info.js';
import { formatTime } from '../text/units.js';

/** A port and its own statistics. */
export interface PortStats {
  name: string;
  stats: Record<string, number>;
}

/** Whether one of the ports sends its frames to the program's standard output. */
export function stdoutTaken(names: readonly string[]): boolean {
  return names.map(parsePortSpec).some((spec) => spec.kind === 'pcap' && writesStdout(spec));
}

/** Whether frames flow by a clock of their own (`clock=virtual`), so that the machine's says nothing of their rate. */
export function onVirtualClock(names: readonly string[]): boolean {
  return names.map(parsePortSpec).some((spec) => spec.kind === 'sim' && spec.clock === 'virtual');
}

/** A port's driver, rings and memory in words. */
export function portText({ driver, txRings, rxRings, txSlots, rxSlots, bufSize, region }: PortInfo): string {
  const rings = (kind: string, count: number, slots: number): string[] => {
    return count === 0 ? [] : [`${count} ${kind} ring${count === 1 ? '' : 's'} × ${slots} slots`];
  };
  const all = [...rings('tx', txRings, txSlots), ...rings('rx', rxRings, rxSlots)].join(', ');
  return `${driver}, ${all}, buffers of ${bufSize} bytes, memory ${region}`;
}

/** A count with thousands set apart. */
export const count = (n: number): string => n.toLocaleString('en-US');

/** Counters of the ports, each `name value`; without those that are zero unless `zeros`. */
export function portStatsText({ name, stats }: PortStats, zeros = false): string {
  const shown = Object.entries(stats).filter(([, value]) => zeros || value !== 0);
  if (shown.length === 0) return '';
  const words = shown.map(([key, value]) =>
    key.endsWith('Ns') ? `${spaced(key.slice(0, -2))} ${formatTime(value)}` : `${spaced(key)} ${count(value)}`,
  );
  return `${name}: ${words.join(', ')}\n`;
}

/** `longestGap` and `rx_dropped` as words. */
function spaced(key: string): string {
  return key.replaceAll('_', ' ').replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}
