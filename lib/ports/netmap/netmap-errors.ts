import type { PortError } from '../../text/errors.js';
import type { NetmapRequest } from '../../shim/native-netmap.js';
import { remedied, type Remedies } from '../remedies.js';
import type { NetmapSpec } from '../../names/netmap-name.js';

/** What a remedy may name. */
interface Context {
  spec: NetmapSpec;
  request: NetmapRequest;
}
type Remedy = (context: Context) => string;

const DENIED = 'opening /dev/netmap needs root, or a rule that gives this user the device (devfs.rules, udev)';

const GET_NETMAP =
  'this machine has no netmap. On FreeBSD: kldload netmap (or "device netmap" in the kernel, as GENERIC has). ' +
  'On Linux: build the module from https://github.com/luigirizzo/netmap and modprobe netmap; ' +
  'without it, xdp: ports (AF_XDP) work on any interface. On both, ' +
  DENIED;

/** Bytes of a ring's header and of a slot (net/netmap.h). */
const RING_HEADER = 256;
const SLOT = 16;

/**
 * The pools that ENOMEM can mean, with how each is raised. NICs share one memory; VALE ports and pipes of their own
 * memory have the priv_ pools (netmap(4), SYSCTL VARIABLES AND MODULE PARAMETERS).
 */
function pools({ spec, request }: Context): string {
  const prefix = spec.vale || spec.pipe !== undefined ? 'priv_' : '';
  const slots = Math.max(request.txSlots ?? 0, request.rxSlots ?? 0);
  const size = slots > 0 ? ` (${slots} slots need ${RING_HEADER + slots * SLOT})` : '';
  return (
    'a pool of netmap memory is exhausted, whatever RAM is free: too few rings ' +
    `(${prefix}ring_num), rings too small for their slots (${prefix}ring_size, 256 + 16 a slot${size}) or too few buffers ` +
    `(${prefix}buf_num, one for each slot of every ring). The kernel log says which. Raise it while no port is open: ` +
    `sysctl dev.netmap.${prefix}ring_num=… on FreeBSD; on Linux /sys/module/netmap/parameters/${prefix}ring_num, ` +
    `or for good in /etc/modprobe.d: options netmap ${prefix}ring_num=…`
  );
}

const noInterface: Remedy = ({ spec }) =>
  spec.vale
    ? `the kernel knows no port ${spec.name}`
    : `there is no interface ${spec.name.replace(/[{}].*$/, '')}, or it cannot be used with netmap; see: ifconfig, or ip link`;

/** By step and code; a code alone stands for every step. */
const REMEDIES: Remedies<Context> = new Map(
  Object.entries<Remedy>({
    'open /dev/netmap ENOENT': () => GET_NETMAP,
    'open /dev/netmap ENXIO': () => `the device is there but no driver behind it: ${GET_NETMAP}`,
    'open /dev/netmap ENODEV': () => `the device is there but no driver behind it: ${GET_NETMAP}`,
    'open /dev/netmap EACCES': () => DENIED,
    'open /dev/netmap EPERM': () => DENIED,
    'open extmem ENOENT': ({ request }) =>
      `${request.extmem?.file ?? ''} is not there: create it with its full size first (truncate -s), on hugetlbfs if it can be`,
    'open extmem EINVAL': ({ request }) =>
      `${request.extmem?.file ?? ''} is empty: give it its full size first (truncate -s)`,
    'NIOCCTRL REGISTER option extmem EOPNOTSUPP': () =>
      'this netmap was built without external memory: leave @extmem out',
    'NIOCCTRL REGISTER option extmem EINVAL': ({ request }) =>
      `netmap cannot divide ${request.extmem?.file ?? ''} as asked: make it larger, or its pools smaller`,
    'NIOCCTRL REGISTER option extmem ENOMEM': ({ request }) =>
      `${request.extmem?.file ?? ''} is too small for its pools: make it larger, or the pools smaller`,
    'NIOCCTRL REGISTER option offsets EOPNOTSUPP': ({ spec }) =>
      `${spec.name} has no data offsets (its driver, or this netmap): leave @offset out`,
    'NIOCCTRL REGISTER option offsets EINVAL': () =>
      'the offset must fit its bits and be no larger than a buffer (2048 as a rule)',
    'NIOCCTRL REGISTER option offsets EBUSY': ({ spec }) =>
      `${spec.name} is open already with a smaller offset: close that program first`,
    'NIOCCTRL REGISTER ENXIO': noInterface,
    'NIOCCTRL REGISTER ENODEV': noInterface,
    'NIOCCTRL REGISTER EINVAL': ({ spec, request }) =>
      (request.memId ?? 0) > 0
        ? `no memory has the id ${request.memId ?? 0} (a private one exists while its port is open), or ${spec.name} has no such ring`
        : spec.ring !== undefined
          ? `${spec.name} has no ring ${spec.ring}`
          : `netmap cannot open ${spec.name} this way: the loopback interface has no netmap mode, and a kernel with another API than 14 refuses all`,
    'NIOCCTRL REGISTER ENOMEM': pools,
    'NIOCCTRL REGISTER EBUSY': ({ spec }) =>
      `${spec.name} is in use: opened exclusively (/x) by another program, opened by others while this asks for /x, ` +
      'or attached to a VALE switch (vale-ctl -d detaches it)',
    'NIOCCTRL REGISTER EIO': ({ spec }) =>
      `${spec.name} puts a virtio-net header before each frame, which this program does not use: turn it off (on FreeBSD: ` +
      'sysctl dev.netmap.ptnet_vnet_hdr=0, or the offloads of the interface)',
    'NIOCCTRL REGISTER EPERM': () => DENIED,
    'mmap ENOMEM': () => 'mapping the netmap memory failed: raise the limit of address space (ulimit -v)',
    ENXIO: noInterface,
    ENODEV: noInterface,
  }),
);

/** What the shim threw, with its remedy. */
export function withRemedy(error: unknown, spec: NetmapSpec, request: NetmapRequest): PortError {
  return remedied(error, spec.text, REMEDIES, { spec, request });
}
