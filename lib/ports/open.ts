import { chooseDriver } from './choose.js';
import { PortError, UsageError } from '../text/errors.js';
import { Memory, MEMORY_MAX, memoryBytes, type MemoryPlan } from '../rings/memory.js';
import { portSpec, requireEthernet } from './interface.js';
import { native } from '../shim/native.js';
import type { NetmapSpec, PortSpec } from '../names/portspec.js';
import type { Needs, Port, PortOptions, Prepared } from './port.js';
import { prepareNetmap } from './netmap/netmap-port.js';
import { preparePcap } from './pcap/pcap-port.js';
import { preparePipe } from './pipe/pipe-port.js';
import { prepareSim } from './sim/sim-port.js';
import { prepareXdp } from './xdp/xdp-port.js';

function prepare(spec: PortSpec, options: PortOptions): Prepared {
  switch (spec.kind) {
    case 'netmap':
      checkNic(spec);
      return prepareNetmap(spec, options);
    case 'pipe':
      return preparePipe(spec, options);
    case 'sim':
      return prepareSim(spec, options);
    case 'xdp':
      return prepareXdp(spec, options);
    case 'pcap':
      return preparePcap(spec, options);
    case 'auto':
      return prepare(chooseDriver(spec).spec, options);
  }
}

/** @throws PortError for a NIC that is none to a bridge; whether there is one at all, netmap says */
function checkNic({ text, name, pipe, vale }: NetmapSpec): void {
  if (vale || pipe !== undefined) return;
  let info;
  try {
    info = native.netdevInfo(name, '');
  } catch {
    return;
  }
  requireEthernet(text, name, info);
}

/**
 * Opens ports that belong together. Those that can share a memory are given one, so that they exchange buffers.
 * As many ports as names, in their order: a tuple where the names are one.
 * If one fails, those already open are closed again.
 * @throws UsageError for a name that says nothing, PortError when a port cannot be opened
 */
export function openPorts<const Names extends readonly (string | PortSpec)[]>(
  names: Names,
  options: PortOptions = {},
): { -readonly [Name in keyof Names]: Port } {
  const specs = names.map((name) => (typeof name === 'string' ? portSpec(name) : name));
  const prepared: Prepared[] = [];
  const memories = new Map<Needs, Memory>();
  const ports: Port[] = [];
  try {
    for (const spec of specs) prepared.push(prepare(spec, options));
    shareMemories(prepared, memories);
    for (const port of prepared) ports.push(port.open(port.needs && memories.get(port.needs)));
  } catch (error) {
    letGo([
      ...ports.map((port) => () => {
        port.close();
      }),
      ...prepared.map((port) => () => port.abandon?.()),
    ]);
    throw error;
  } finally {
    for (const memory of new Set(memories.values())) memory.release();
  }
  return ports as { -readonly [Name in keyof Names]: Port };
}

/** Does all of it, whatever some of it throws: the error that made it necessary is the one to be told. */
function letGo(actions: readonly (() => void)[]): void {
  for (const action of actions) {
    try {
      action();
    } catch {
      // What cannot be closed is not worth hiding the cause.
    }
  }
}

/** Opens one port alone. @throws as {@link openPorts} */
export function openPort(name: string | PortSpec, options: PortOptions = {}): Port {
  return openPorts([name], options)[0];
}

/** One memory for all ports with the same size of buffers. */
function shareMemories(prepared: readonly Prepared[], memories: Map<Needs, Memory>): void {
  const needs = prepared.flatMap((port) => port.needs ?? []);
  for (const bufSize of new Set(needs.map((need) => need.bufSize))) {
    const group = needs.filter((need) => need.bufSize === bufSize);
    const memory = makeMemory({
      plans: group.map((need) => need.plan),
      bufSize,
      offsetMask: group.reduce((mask, need) => mask | (need.offsetMask ?? 0), 0),
    });
    for (const need of group) memories.set(need, memory);
  }
}

function makeMemory(plan: MemoryPlan): Memory {
  const gib = (bytes: number): string => `${(bytes / 2 ** 30).toFixed(1)} GiB`;
  const bytes = memoryBytes(plan);
  const needed = `the rings and their buffers of ${plan.bufSize} bytes need ${gib(bytes)} of memory`;
  const remedy = 'ask for fewer slots or rings, or smaller buffers';
  if (bytes > MEMORY_MAX) throw new UsageError(`${needed}, and ports can share ${gib(MEMORY_MAX)}; ${remedy}`);
  try {
    return new Memory(plan);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code !== 'ENOMEM') throw error;
    throw new PortError(`${needed}, and the system has not got them (ENOMEM); ${remedy}`, '', { code, cause: error });
  }
}
