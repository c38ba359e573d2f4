/** What `bridge` prints: what was opened, rates while it runs, and what became of every frame. */
import { NOT_FORWARDED } from '../../forward/counters.js';
import type { PortInfo } from '../../ports/port-info.js';
import type { DirectionInfo, Opened } from '../../forward/bridge-job.js';
import { count, portStatsText, portText, type PortStats } from '../port-text.js';
import { balanceText, type Balance } from './balance.js';
import { formatTime } from '../../text/units.js';
import { frames, rates, type Traffic } from '../traffic.js';

/** A direction and what flowed in it. */
export interface Flow extends Traffic {
  /** `a→b` */
  direction: string;
  from: string;
  to: string;
  /** What became of every frame that arrived, at the end, where the interface counts them. */
  balance?: Balance;
  /** Frames that the interface they were handed to dropped, at the end, where it counts them: not taken off `forwarded`. */
  lostAfter?: number;
}

/** A port's name without its options, where that still tells the ports apart. */
function labels(ports: readonly PortInfo[]): string[] {
  const short = ports.map(({ name }) => name.replace(/(?<!:)@.*$/s, ''));
  return new Set(short).size === short.length ? short : ports.map(({ name }) => name);
}

/** The names of a direction: `direction` short, `from` and `to` in full. */
export function directionNames(
  { ports, directions }: Opened,
  { index, from, to }: DirectionInfo,
): Omit<Flow, keyof Traffic> {
  const short = labels(ports);
  // Two directions of one port are those from and to its host rings.
  const ends =
    from === to && directions.length > 1
      ? [
          ['', ' (host)'],
          [' (host)', ''],
        ][index]
      : ['', ''];
  return {
    direction: `${short[from]}${ends[0]}→${short[to]}${ends[1]}`,
    from: ports[from].name + ends[0],
    to: ports[to].name + ends[1],
  };
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

/** One line for a direction and an interval. */
export function intervalText(seconds: number, flow: Flow): string {
  const lost = lossText(flow);
  return (
    `${seconds.toFixed(1)} s  ${flow.direction}: ${rates(flow, ', ')}${frames(flow.forwarded)}, ` +
    `batch ${flow.averageBatch.toFixed(1)}${lost === '' ? '' : `, not forwarded: ${lost}`}\n`
  );
}

function lossText({ notForwarded }: Traffic): string {
  return [...NOT_FORWARDED.values()]
    .filter(({ name }) => (notForwarded[name] ?? 0) > 0)
    .map(({ name, words }) => `${count(notForwarded[name])} ${words}`)
    .join(', ');
}

export function summaryText(
  seconds: number | null,
  longestGapNs: number | undefined,
  flows: readonly Flow[],
  ports: readonly PortStats[],
  verbose: number,
): string {
  const ran = seconds === null ? 'ended as it began' : `ran for ${formatTime(seconds * 1e9)}`;
  const gap = longestGapNs === undefined ? '' : `; longest gap between turns ${formatTime(longestGapNs)}`;
  const lines = [`\nforwarding ${ran}${gap}\n`];
  for (const flow of flows) {
    const lost = lossText(flow);
    lines.push(
      `${flow.direction}: ${frames(flow.forwarded)}, ${count(flow.bytes)} bytes; ${rates(flow, '; ')}` +
        `average batch ${flow.averageBatch.toFixed(1)}; not forwarded: ${lost === '' ? 'none' : lost}` +
        `${(flow.lostAfter ?? 0) > 0 ? `; dropped by ${flow.to} on the way out: ${count(flow.lostAfter!)}` : ''}\n`,
    );
    if (flow.balance !== undefined) lines.push(`  ${balanceText(flow.balance)}\n`);
    if (flow.zeroSlots > 0) lines.push(`  ${count(flow.zeroSlots)} slots of length zero were passed over\n`);
    if (verbose > 0) lines.push(`  received ${count(flow.received)}, tx ring full ${count(flow.txFull)} times\n`);
  }
  for (const port of ports) lines.push(portStatsText(port, verbose > 0));
  return lines.join('');
}

/** The programs' counters: those that are not 0, in a line; nothing where there is no program. */
export function programsText(counters: Readonly<Record<string, number>>): string {
  const shown = Object.entries(counters).filter(([, n]) => n > 0);
  return shown.length === 0 ? '' : `programs: ${shown.map(([name, n]) => `${name} ${count(n)}`).join(', ')}\n`;
}

/** The same for programs. */
export function countersJson(counters: Readonly<Record<string, number>>): { programs?: Record<string, number> } {
  return Object.keys(counters).length === 0 ? {} : { programs: { ...counters } };
}
