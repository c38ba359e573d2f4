/** netmap-bridge as a library: ports, rings, forwarding, and the bridge that runs in a thread of its own. */
export * as abi from './abi.js';
export { Bridge, hostSide, nicSide, type BridgeOptions, type Side } from './bridge.js';
export * as counters from './counters.js';
export { PortError, UsageError } from './errors.js';
export { forwarder, isZeroCopy, type Forward } from './forward.js';
export { openPort, openPorts } from './open.js';
export type { Port, PortOptions } from './port.js';
export { formatPortSpec, parsePortSpec, type PortSpec } from './portspec.js';
export { Region } from './region.js';
export { Ring } from './ring.js';
export { mapRings, type RingPair } from './rings.js';
export { startBridge, type Ended, type Opened, type RunningBridge, type StartOptions } from './run.js';
export * as units from './units.js';
