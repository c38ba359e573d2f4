/**
 * netmap-bridge as a library. `startBridge` joins two ports in a thread of its own, as the `bridge` tool does;
 * `openPorts` with `Bridge`, or with `Ring` alone, is for programs that run their own loop. Names are parsed by
 * `parsePortSpec`; what the user wrote wrong throws UsageError, what the system refuses throws PortError.
 */
export type { Amount } from './rings/amount.js';
export * as abi from './rings/abi.js';
export { chooseDriver, type Choice } from './ports/choose.js';
export { Bridge, hostSide, nicSide, type BridgeOptions, type Side } from './forward/bridge.js';
export * as counters from './forward/counters.js';
export { PortError, RunError, UsageError } from './text/errors.js';
export { Lane, whyCopy, type LaneOptions } from './forward/lane.js';
export { BURST_SPENT, EMPTY, type Move } from './forward/lane-words.js';
export type { EndReason } from './threads/loop.js';
export { openPort, openPorts } from './ports/open.js';
export type { Port, PortOptions } from './ports/port.js';
export { formatPortSpec, parsePortSpec, type PortSpec } from './names/portspec.js';
export { compileFilter, type Accepts } from './programs/filter/filter.js';
export { FlowTable, type Flow } from './programs/flows.js';
export { Frame, NONE } from './programs/frame.js';
export { Link, type LinkSpec } from './programs/link.js';
export { BACK, DIVERT, DROP, FORWARD, makeProgram } from './programs/program.js';
export type { Counter, OnFrame, Program, ProgramFactory, Setup, Verdict } from './programs/program.js';
export { readyProgram } from './programs/ready.js';
export { Region } from './rings/region.js';
export { Ring } from './rings/ring.js';
export { mapRings, type RingPair } from './forward/lane-group.js';
export { startBridge, type RunningBridge, type StartOptions } from './forward/start.js';
export * as units from './text/units.js';
export type { DirectionInfo, Ended, Opened } from './forward/bridge-job.js';
