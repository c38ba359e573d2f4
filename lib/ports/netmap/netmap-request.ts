import type { NetmapRequest } from '../../shim/native-netmap.js';
import type { NetmapMode, NetmapSpec } from '../../names/netmap-name.js';

/** nr_mode by the rings asked for (net/netmap.h, API 14). A pipe's end is in its name: the kernel refuses modes 5 and 6. */
const MODES: Record<NetmapMode, number> = {
  nic: 1,
  host: 2,
  'nic-host': 3,
  'one-nic': 4,
  'one-host': 8,
  'pipe-master': 1,
  'pipe-slave': 1,
};
const ONE_NIC = 4;

/** nr_flags. */
const MONITOR_TX = 0x100;
const MONITOR_RX = 0x200;
const ZCOPY_MONITOR = 0x400;
const EXCLUSIVE = 0x800;
const RX_RINGS_ONLY = 0x2000;
const TX_RINGS_ONLY = 0x4000;

function flags(spec: NetmapSpec): number {
  return (
    (spec.monitorTx ? MONITOR_TX : 0) |
    (spec.monitorRx ? MONITOR_RX : 0) |
    (spec.zcopyMonitor ? ZCOPY_MONITOR : 0) |
    (spec.exclusive ? EXCLUSIVE : 0) |
    (spec.rxOnly ? RX_RINGS_ONLY : 0) |
    (spec.txOnly ? TX_RINGS_ONLY : 0)
  );
}

/**
 * What a port name asks of the kernel.
 * @param memId the memory to use; 0 lets the kernel choose
 */
export function netmapRequest(spec: NetmapSpec, memId = spec.memId ?? 0): NetmapRequest {
  const { conf = {}, offset } = spec;
  const pipe = spec.pipe !== undefined;
  return {
    name: spec.name,
    mode: pipe && spec.ring !== undefined ? ONE_NIC : MODES[spec.mode],
    ringId: spec.ring ?? 0,
    flags: flags(spec),
    memId,
    txRings: conf.txRings ?? conf.rings ?? 0,
    rxRings: conf.rxRings ?? conf.rings ?? 0,
    hostTxRings: conf.hostTxRings ?? conf.hostRings ?? 0,
    hostRxRings: conf.hostRxRings ?? conf.hostRings ?? 0,
    txSlots: conf.txSlots ?? conf.slots ?? 0,
    rxSlots: conf.rxSlots ?? conf.slots ?? 0,
    extmem: spec.extmem,
    // The kernel reads 0 bits as all 64 of ptr.
    offsets: offset && { max: offset.initial, initial: offset.initial, bits: offset.bits ?? 0 },
  };
}
