/** What `bridge` prints: what was opened, rates while it runs, and what became of every frame. */
import { NOT_FORWARDED } from '../counters.js';
import type { PortInfo } from '../portinfo.js';
import type { DirectionInfo, Opened } from '../worker.js';
import { formatTime } from '../units.js';
import type { Traffic } from './traffic.js';

/** A direction and what flowed in it. */
export interface Flow extends Traffic {
  /** `a→b` */
  direction: string;
  from: string;
  to: string;
}

/** A port and its own statistics. */
export interface PortStats {
  name: string;
  stats: Record<string, number>;
}

/** A port's name without its options, where that still tells the ports apart. */
function labels(ports: readonly PortInfo[]): string[] {
  const short = ports.map(({ name }) => name.replace(/(?<!:)@.*$/s, ''));
  return new Set(short).size === short.length ? short : ports.map(({ name }) => name);
}

/** The names of a direction: `direction` short, `from` and `to` in full. */
export function directionNames({ ports }: Opened, { from, to }: DirectionInfo): Omit<Flow, keyof Traffic> {
  const short = labels(ports);
  return { direction: `${short[from]}→${short[to]}`, from: ports[from].name, to: ports[to].name };
}

/** What was opened, for people. */
export function openedText(opened: Opened, verbose: number): string {
  const { ports, whyCopy } = opened;
  const lines = ports.flatMap((port) => [`${port.name}: ${portText(port)}`, ...port.notes.map((note) => `  ${note}`)]);
  lines.push(whyCopy === undefined ? 'zero-copy: buffers are exchanged' : `copy: ${whyCopy}`);
  for (const direction of opened.directions) {
    const { rings } = direction;
    const pairs = verbose > 0 ? `: ${rings.map(([rx, tx]) => `rx ${rx} to tx ${tx}`).join(', ')}` : '';
    lines.push(`${directionNames(opened, direction).direction}${pairs}`);
  }
  return `${lines.join('\n')}\n`;
}

/** The same as an object for programs. */
export function openedJson(opened: Opened): Record<string, unknown> {
  const { ports, whyCopy, directions } = opened;
  return {
    ports,
    zeroCopy: whyCopy === undefined,
    ...(whyCopy !== undefined && { whyCopy }),
    directions: directions.map((direction) => ({ ...directionNames(opened, direction), rings: direction.rings })),
  };
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
/** Three decimals, or three digits that count where there would be none. */
const figure = (value: number): string => (value === 0 || value >= 0.1 ? value.toFixed(3) : value.toPrecision(3));
const rates = ({ mpps, gbitPerSecond }: Traffic): string =>
  `${figure(mpps)} Mpps, ${figure(gbitPerSecond)} Gbit/s on the wire`;
const frames = (n: number): string => `${count(n)} ${n === 1 ? 'frame' : 'frames'}`;

/** One line for a direction and an interval. */
export function intervalText(seconds: number, flow: Flow): string {
  const lost = lossText(flow);
  return (
    `${seconds.toFixed(1)} s  ${flow.direction}: ${rates(flow)}, ${frames(flow.forwarded)}, ` +
    `batch ${flow.averageBatch.toFixed(1)}${lost === '' ? '' : `, not forwarded: ${lost}`}\n`
  );
}

function lossText({ notForwarded }: Traffic): string {
  return [...NOT_FORWARDED.values()]
    .filter(({ name }) => (notForwarded[name] ?? 0) > 0)
    .map(({ name, words }) => `${count(notForwarded[name])} ${words}`)
    .join(', ');
}

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

export function summaryText(
  seconds: number,
  flows: readonly Flow[],
  ports: readonly PortStats[],
  verbose: number,
): string {
  const lines = [`\nforwarding ran for ${formatTime(seconds * 1e9)}\n`];
  for (const flow of flows) {
    const lost = lossText(flow);
    lines.push(
      `${flow.direction}: ${frames(flow.forwarded)}, ${count(flow.bytes)} bytes; ${rates(flow)}; ` +
        `average batch ${flow.averageBatch.toFixed(1)}; not forwarded: ${lost === '' ? 'none' : lost}\n`,
    );
    if (flow.zeroSlots > 0) lines.push(`  ${count(flow.zeroSlots)} slots of length zero were passed over\n`);
    if (verbose > 0) lines.push(`  received ${count(flow.received)}, tx ring full ${count(flow.txFull)} times\n`);
  }
  for (const port of ports) lines.push(portStatsText(port, verbose > 0));
  return lines.join('');
}
