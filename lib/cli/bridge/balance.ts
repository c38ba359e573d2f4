/** What became of every frame that arrived at an interface: it adds up, or what does not is said. */
import type { Outside } from '../../ports/port.js';
import { count } from '../port-text.js';
import type { Traffic } from '../traffic.js';

/** arrived = forwarded + notForwarded + lostBefore + waiting + elsewhere, in frames. */
export interface Balance {
  /** By the count of the interface that they arrived at; null where it does not count what the port receives. */
  arrived: number | null;
  forwarded: number;
  /** Taken from the rx rings and not forwarded, for whatever reason. */
  notForwarded: number;
  /** Lost before they came into the rx rings. */
  lostBefore: number;
  /** Still in the rx rings. */
  waiting: number;
  /**
   * The rest: they went past the port, or the counters were read while more came, which may make it negative. null where
   * that cannot be known.
   */
  elsewhere: number | null;
}

/** What the interfaces at both ends add to what flowed in a direction; nothing where they count nothing. */
export function interfaceCounts(
  flowed: Traffic,
  from: Outside | null,
  to: Outside | null,
): { balance?: Balance; lostAfter?: number } {
  return {
    ...(from !== null && { balance: balanceOf(flowed, from) }),
    ...(to !== null && { lostAfter: to.lostAfter }),
  };
}

function balanceOf({ received, forwarded }: Traffic, { arrived: counted, lostBefore, waiting }: Outside): Balance {
  const notForwarded = received - forwarded;
  const taken = received + waiting;
  // In netmap mode NICs count next to nothing of what the rings take.
  const arrived = (counted ?? 0) < taken / 2 ? null : (counted ?? lostBefore);
  const elsewhere = arrived === null ? null : arrived - taken - lostBefore;
  return { arrived, forwarded, notForwarded, lostBefore, waiting, elsewhere };
}

export function balanceText({ arrived, forwarded, notForwarded, lostBefore, waiting, elsewhere }: Balance): string {
  const rest = elsewhere ?? 0;
  const parts: [number, string][] = [
    [notForwarded, 'not forwarded'],
    [lostBefore, 'dropped before the rings'],
    [waiting, 'in the rings at the end'],
    [Math.max(rest, 0), 'that went past the port, or came as it opened or closed'],
  ];
  const shown = parts.filter(([n]) => n > 0).map(([n, words]) => ` + ${count(n)} ${words}`);
  const over = rest < 0 ? ` − ${count(-rest)} that the interface had not counted yet` : '';
  const left = arrived === null ? 'what arrived, the interface does not count:' : `${count(arrived)} arrived =`;
  return `${left} ${count(forwarded)} forwarded${shown.join('')}${over}`;
}
