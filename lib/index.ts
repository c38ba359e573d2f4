/**
 * netmap-bridge as a library. `startBridge` joins two ports in a thread of its own, as the `bridge` tool does;
 * `openPorts` with `Bridge`, or with `Ring` alone, is for programs that run their own loop. Names are parsed by
 * `parsePortSpec`; what the user wrote wrong throws UsageError, what the system refuses throws PortError.
 */
export type { Amount } from './amount.js';
export * as abi from './abi.js';
export { chooseDriver, type Choice } from './auto.js';
export { Bridge, hostSide, nicSide, type BridgeOptions, type Side } from './bridge.js';
export { Control } from './control.js';
export * as counters from './counters.js';
export { PortError, RunError, UsageError } from './errors.js';
export { forwarder, isZeroCopy, whyCopy, type Forward } from './forward.js';
export type { EndReason } from './loop.js';
export { openPort, openPorts } from './open.js';
export type { Port, PortOptions } from './port.js';
export { formatPortSpec, parsePortSpec, type PortSpec } from './portspec.js';
export { Region } from './region.js';
export { Ring } from './ring.js';
export { mapRings, type RingPair } from './rings.js';
export { startBridge, type RunningBridge, type StartOptions } from './run.js';
export * as units from './units.js';
export type { DirectionInfo, Ended, Opened } from './worker.js';
