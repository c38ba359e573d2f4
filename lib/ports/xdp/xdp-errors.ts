import type { PortError } from '../../text/errors.js';
import { remedied, type Remedies } from '../remedies.js';

/** What a remedy may name. */
export interface XdpContext {
  /** The port as the user wrote it. */
  port: string;
  ifname: string;
  netns: string;
  /** The other reading of its name, an interface of the whole of it. */
  whole?: string | undefined;
  queue?: number;
  /** Bytes of buffers to be locked. */
  bytes?: number;
  mtu?: number;
  /** Frames of several buffers were asked for, because the MTU needs them. */
  multiBuffer?: boolean;
}

const CAPABILITIES =
  'AF_XDP needs CAP_NET_RAW (the socket), CAP_NET_ADMIN and CAP_BPF (the redirect program), and CAP_SYS_ADMIN to open ' +
  'an interface in another network namespace: run as root, or give node these with setcap or AmbientCapabilities=; ' +
  'those of the root of a user namespace (a rootless container) are not enough';

type Remedy = (context: XdpContext) => string;

const inNamespace = ({ netns }: XdpContext) => (netns === '' ? '' : `ip netns exec ${netns} `);

const attached: Remedy = (context) =>
  `an XDP program is already attached to ${context.ifname}, by another bridge or program: stop that one, or detach ` +
  `what was left behind with: ${inNamespace(context)}ip link set dev ${context.ifname} xdp off`;

const noInterface: Remedy = ({ ifname, whole, netns }) => {
  const none = `there is no interface ${ifname}${whole === undefined ? '' : `, and none named ${whole}`}`;
  return netns === '' ? `${none}; see: ip link` : `${none} in the network namespace ${netns}; see: ip -n ${netns} link`;
};

const noNamespace: Remedy = ({ netns }) => `there is no network namespace ${netns}; see: ip netns list`;

const down: Remedy = (context) =>
  `${context.ifname} is down: bring it up with: ${inNamespace(context)}ip link set dev ${context.ifname} up`;

/** Linux before 6.6. */
const noMultiBuffer: Remedy = (context) =>
  `the MTU of ${context.mtu ?? 0} needs frames of several buffers, which this kernel does not have (Linux 6.6): use ` +
  `@frame=4096 for up to 3818, or: ${inNamespace(context)}ip link set dev ${context.ifname} mtu 1500`;

/** By call and code: the cause in words and what to do about it. */
const REMEDIES: Remedies<XdpContext> = new Map(
  Object.entries<Remedy>({
    'socket(AF_XDP) EPERM': () => CAPABILITIES,
    'socket(AF_XDP) EAFNOSUPPORT': () => 'this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS)',
    'socket(AF_XDP) ENOSYS': () => 'AF_XDP is a Linux facility; on FreeBSD use netmap:',
    'socket(AF_XDP) ENOENT': noNamespace,
    'setns ENOENT': noNamespace,
    // What ip(8) leaves in /run/netns when a namespace goes away in another mount namespace is a plain file.
    'setns EINVAL': noNamespace,
    'setns EPERM': () => CAPABILITIES,
    'XDP_UMEM_REG ENOBUFS': ({ bytes }) =>
      `the buffers need ${Math.ceil((bytes ?? 0) / 1024)} KiB of locked memory, more than this process may lock: raise it ` +
      '(ulimit -l, or LimitMEMLOCK= of a systemd unit), ask for fewer @slots, or give node CAP_IPC_LOCK (outside of any user namespace)',
    'XDP_UMEM_REG ENOMEM': ({ bytes }) => `not enough memory to pin ${Math.ceil((bytes ?? 0) / 1024)} KiB of buffers`,
    'bpf(BPF_MAP_CREATE) EPERM': () =>
      `${CAPABILITIES}; before Linux 5.11 it can also mean too little locked memory (ulimit -l)`,
    'bpf(BPF_PROG_LOAD) EINVAL': (context) =>
      context.multiBuffer === true
        ? noMultiBuffer(context)
        : 'the kernel refuses the redirect program; Linux 5.10 is needed',
    'bpf(BPF_PROG_LOAD) EPERM': () => CAPABILITIES,
    'bpf(BPF_LINK_CREATE) EPERM': () => CAPABILITIES,
    'bpf(BPF_LINK_CREATE) EBUSY': attached,
    'bpf(BPF_LINK_CREATE) EEXIST': attached,
    'bpf(BPF_LINK_CREATE) EINVAL': (context) =>
      `either ${context.ifname} has just gone, or the kernel is older than 5.9 and cannot attach by a BPF link`,
    'bpf(BPF_LINK_CREATE) EOPNOTSUPP': ({ port }) =>
      `the driver has no XDP of its own: leave @mode out or use @mode=generic in ${port}`,
    'bpf(BPF_LINK_CREATE) ERANGE': ({ ifname, mtu }) =>
      `the driver's XDP does not take the MTU of ${mtu ?? 0}: use @mode=generic, or lower it with: ip link set dev ${ifname} mtu 1500`,
    'bpf(BPF_LINK_CREATE) ENOSPC': ({ ifname }) =>
      `${ifname} has fewer rx queues than its peer has tx queues, so its driver refuses XDP: make them equal (ethtool -L), ` +
      'or use @mode=generic',
    'bind(AF_XDP) EBUSY': ({ ifname, queue }) =>
      `queue ${queue ?? 0} of ${ifname} is in use by another AF_XDP socket: stop that program, or choose another @queue`,
    'bind(AF_XDP) EINVAL': (context) =>
      context.multiBuffer === true
        ? noMultiBuffer(context)
        : `queue ${context.queue ?? 0} of ${context.ifname} is not there: its driver has fewer by now (see: ` +
          `${inNamespace(context)}ethtool -l ${context.ifname}), or, of a tun or tap, no program has attached to it`,
    'bind(AF_XDP) EOPNOTSUPP': () =>
      'the driver has no zero-copy for AF_XDP (or none for this MTU): leave @zerocopy out',
    'bind(AF_XDP) ENETDOWN': down,
    'bind(AF_XDP) ENODEV': noInterface,
    ENODEV: noInterface,
    ENXIO: noInterface,
    ENETDOWN: down,
    EPERM: () => CAPABILITIES,
    EACCES: () => CAPABILITIES,
  }),
);

/** What the shim threw, with its remedy. */
export function withRemedy(error: unknown, context: XdpContext): PortError {
  return remedied(error, context.port, REMEDIES, context);
}
