import type { PortError } from '../../text/errors.js';
import { native } from '../../shim/native.js';
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

/** The interface or VALE port that a pipe hangs on; of any other port, its name. */
function parent({ name }: NetmapSpec): string {
  return name.replace(/[{}].*$/, '');
}

function isInterface(name: string): boolean {
  try {
    native.netdevLink(name, '');
    return true;
  } catch {
    return false;
  }
}

/** Whether a port's rings come from the memory that all NICs share: id 1. A pipe's come from its parent's. */
function isGlobal({ spec, request }: Context): boolean {
  if ((request.memId ?? 0) > 0) return request.memId === 1;
  if (spec.vale) return false;
  try {
    return native.netmapPortInfo(parent(spec), 0).memId === 1;
  } catch {
    return spec.pipe === undefined;
  }
}

/** What ENOMEM can mean (netmap(4), SYSCTL VARIABLES AND MODULE PARAMETERS). */
function pools(context: Context): string {
  const { spec, request } = context;
  const slots = Math.max(request.txSlots ?? 0, request.rxSlots ?? 0);
  const size = slots > 0 ? ` (${slots} slots need ${RING_HEADER + slots * SLOT})` : '';
  const rings = spec.pipe === undefined ? '' : '; a pipe takes four, of both its ends';
  if (request.extmem)
    return (
      `${request.extmem.file} has too few rings (ring-num${rings}), rings too small for their slots (ring-size, ` +
      `256 + 16 a slot${size}), too few buffers (buf-num, one for each slot of every ring) or too few ports (if-num): ` +
      'give @extmem: larger numbers, and the file the size for them'
    );
  if (!isGlobal(context))
    return (
      'private memory is made to measure when its first port is opened: the system is short of it, or, for a later ' +
      `port in the same memory, there is no room left in what was made then; netmap's dev.netmap.priv_ring_num and ` +
      'priv_buf_num (/sys/module/netmap/parameters on Linux) make it larger from the start'
    );
  return (
    'a pool of the memory that all NICs and their pipes share is exhausted, whatever RAM is free: too few rings ' +
    `(ring_num${rings}), rings too small for their slots (ring_size, 256 + 16 a slot${size}) or too few buffers ` +
    '(buf_num, one for each slot of every ring). Raise it while no port is open: sysctl dev.netmap.ring_num=… on ' +
    'FreeBSD; on Linux /sys/module/netmap/parameters/ring_num, or for good in /etc/modprobe.d: options netmap ring_num=…'
  );
}

/** What EINVAL at REGISTER can mean. */
function invalid({ spec, request }: Context): string {
  if (spec.monitorTx || spec.monitorRx)
    return `nobody has ${spec.name} open: a monitor sees what another program's port sends and receives, so open that first`;
  if (spec.vale && (spec.mode === 'host' || spec.mode === 'one-host'))
    return `${spec.name} has no host rings, as no VALE port has: leave ^ out`;
  if ((request.memId ?? 0) > 0)
    return `no memory has the id ${request.memId ?? 0} (a private one exists while its port is open), or ${spec.name} has no such ring`;
  if (spec.ring !== undefined) return `${spec.name} has no ring ${spec.ring}`;
  const port = spec.name.split(':')[1];
  if (spec.vale && isInterface(port))
    return `the interface ${port} is not attached to this switch: vale-ctl -a ${spec.name} attaches it, and netmap:${port} opens it alone`;
  return (
    `netmap cannot open ${spec.name} this way: the loopback interface has no netmap mode, a kernel with another API than ` +
    '14 refuses all, and so does one whose parameters are out of range (if_num: 10 to 10000)'
  );
}

const noInterface: Remedy = ({ spec }) =>
  spec.vale
    ? `the kernel knows no port ${spec.name}`
    : `there is no interface ${parent(spec)}, or it cannot be used with netmap; see: ifconfig, or ip link`;

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
    'NIOCCTRL REGISTER EINVAL': invalid,
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

/**
 * What the shim threw, with its remedy.
 * @param said what the kernel's log said of it
 */
export function withRemedy(error: unknown, spec: NetmapSpec, request: NetmapRequest, said = ''): PortError {
  const what = remedied(error, spec.text, REMEDIES, { spec, request });
  if (said !== '') what.message += `; the kernel's log: ${said}`;
  return what;
}
