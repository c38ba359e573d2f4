import { hostLoses, interfaceExists } from '../interface.js';
import { queueReading, wholeName } from '../../names/xdp-name.js';
import type { XdpSpec } from '../../names/portspec.js';
import type { XdpGate } from './xdp-gate.js';
import type { NetdevInfo } from '../../shim/native-netdev.js';
import type { XdpSocket } from './xdp-socket.js';

/** `queue 1`, `queues 1 to 3` */
export function queueSpan(queues: readonly number[]): string {
  return queues.length === 1 ? `queue ${queues[0]}` : `queues ${queues[0]} to ${queues.at(-1)!}`;
}

/** What a person should know about an AF_XDP port before frames flow: what is in use, and what to set. */
export function xdpNotes(
  spec: XdpSpec,
  info: NetdevInfo,
  queues: readonly number[],
  socket: XdpSocket,
  { mode, queues: served }: XdpGate,
): string[] {
  const { ifname, netns } = spec;
  const command = `${netns === undefined ? '' : `ip netns exec ${netns} `}ethtool -K ${ifname}`;
  const notes = [
    `${ifname} (${info.driver ?? 'unknown driver'}): ${mode} XDP, ${socket.zeroCopy ? 'zero-copy' : 'copied by the kernel'}, ` +
      `${queueSpan(queues)}${socket.multiBuffer ? ', frames of several buffers' : ''}${socket.busyPoll ? ', busy polling' : ''}`,
  ];
  if (spec.busyPoll > 0 && !socket.busyPoll)
    notes.push(`${ifname}: busy polling needs Linux 5.11; interrupts are used`);
  if (socket.busyPoll)
    notes.push(
      `${ifname}: busy polling keeps interrupts off only after: echo 2 > /sys/class/net/${ifname}/napi_defer_hard_irqs; ` +
        `echo 200000 > /sys/class/net/${ifname}/gro_flush_timeout`,
    );
  const loses = hostLoses(ifname, info);
  if (loses !== undefined) notes.push(loses);
  const other = queueReading(ifname);
  if (
    wholeName(spec) === undefined &&
    !spec.text.includes('queue=') &&
    other !== undefined &&
    interfaceExists(other.ifname, netns)
  )
    notes.push(
      `${ifname} is an interface; queue ${other.queue} of ${other.ifname} is xdp:${other.ifname}@queue=${other.queue}`,
    );
  if (served < (info.rxQueues ?? 1))
    notes.push(`${ifname}: frames that arrive on its other queues go to the host, not through this port`);
  if (!info.flags.up) notes.push(`${ifname} is down; frames flow once it is up`);
  if (info.driver === 'veth')
    notes.push(
      `${ifname} is a veth: its peer sends frames with unfinished checksums unless its offload is off; on the other ` +
        `side run: ethtool -K PEER tx off txvlan off${mode === 'generic' ? ' tso off gso off' : ''}`,
    );
  const settings: [boolean | null, string, string][] = [
    [info.offloads.lro, 'lro', 'joins received frames into ones too long to send'],
    [info.offloads.rxVlan, 'rxvlan', 'takes VLAN tags off received frames, and they are lost'],
  ];
  for (const [on, setting, what] of settings)
    // veth names the feature but leaves the tag in the frame that XDP sees.
    if (on === true && info.driver !== 'veth') notes.push(`${ifname} ${what}: ${command} ${setting} off`);
  return notes;
}

/**
 * A sentence about rx queues that came or went.
 * @param served how many the port has open
 * @param opened how the opening of new ones went, in words
 */
export function queueNews(
  ifname: string,
  before: number,
  after: number,
  served: number,
  opened: string | undefined,
): string {
  const change = `${ifname} has ${after} rx queue${after === 1 ? '' : 's'} now, ${before} before`;
  if (opened !== undefined) return `${change}: ${opened}`;
  if (after > served)
    return `${change}: frames that arrive on the new ones go to the host, not through this port; start again to open them`;
  return `${change}: ${after < served ? 'this port receives nothing on those that are gone' : 'this port has all of them'}`;
}
