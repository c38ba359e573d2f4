/** The forwarding thread: opens the ports, waits for their links, and runs the loop. */
import { endpoints } from '../ports/choose.js';
import { Bridge, hostSide, nicSide, type Side } from './bridge.js';
import {
  countersIn,
  type DirectionInfo,
  type Ended,
  type Opened,
  type PortCounters,
  type WorkerJob,
} from './bridge-job.js';
import { UsageError } from '../text/errors.js';
import { bridgeUntilOver } from './loop.js';
import { runPrograms, type RunningPrograms } from '../programs/running.js';
import { now } from '../shim/native.js';
import { openPorts } from '../ports/open.js';
import type { Outside, Port } from '../ports/port.js';
import { portInfo } from '../ports/port-info.js';
import { closeAll, orClose, pin, serve, statsLeft, waitForLinks, type Served } from '../threads/serve.js';

function flows({ a, b, lanes }: Bridge, ports: readonly Port[]): DirectionInfo[] {
  const sides = [ports.indexOf(a.port), ports.indexOf(b.port)];
  return ([0, 1] as const)
    .filter((index) => lanes[index].length > 0)
    .map((index) => ({
      index,
      from: sides[index],
      to: sides[1 - index],
      rings: lanes[index].map(({ rx, tx }): [number, number] => [rx.id, tx.id]),
    }));
}

/** What is counted outside the rings of a side; null where nothing counts it, as of host rings, or the interface is gone. */
function outsideOf({ port, rx }: Side): Outside | null {
  try {
    return (rx === port.rx && port.outside?.()) || null;
  } catch {
    return null;
  }
}

/** The other side of `a`: the second port, or the first again, looped back or with its host stack. */
function otherSide(a: Port, b: Port | undefined, loop: boolean): Side {
  if (b !== undefined || loop) return nicSide(b ?? a);
  const host = hostSide(a);
  if (host.rx.length === 0)
    throw new UsageError(`${a.name} has no host stack to be bridged to; name a second port, or loop it back with -L`);
  return host;
}

function join(
  job: WorkerJob,
  ports: readonly Port[],
  third: Port | undefined,
  programs: RunningPrograms | undefined,
): Served<Opened, undefined, PortCounters[], Ended> {
  const [a, b] = ports as [Port, Port | undefined];
  const bridge = new Bridge(nicSide(a), otherSide(a, b, job.loop), {
    burst: job.burst,
    copy: job.copy,
    oneWay: job.oneWay || job.loop,
    frames: job.frames,
    counters: countersIn(job.counters),
    ...(programs !== undefined && { program: programs }),
    ...(third !== undefined && { third: nicSide(third) }),
  });
  const directions = flows(bridge, ports);
  if (directions.length === 0)
    throw new UsageError(
      `nothing can flow between ${ports.map(({ name }) => name).join(' and ')}: no side receives what the other can send`,
    );
  const all = third === undefined ? ports : [...ports, third];
  return {
    opened: {
      ports: all.map(portInfo),
      whyCopy: bridge.whyCopy,
      directions,
      programCounters: programs?.counters ?? [],
    },
    run: (_, control, tell) => {
      waitForLinks(all, job.linkWait, control, tell.say);
      tell.running();
      const stats = (): PortCounters[] => all.map((port) => port.stats());
      programs?.start(now());
      const tick = programs?.tick;
      const options = { wait: job.wait, ns: job.seconds * 1e9, stats, ...(tick !== undefined && { tick }) };
      const { ended: reason, failure } = bridgeUntilOver(bridge, control, tell, options);
      programs?.stop(now());
      const outside = [bridge.a, bridge.b].map(outsideOf);
      const problems = all.flatMap((port) => port.problem?.() ?? []);
      const last = failure === undefined ? stats() : all.map(statsLeft);
      return { ended: { reason, stats: last, outside, problems }, failure };
    },
    close: () => {
      closeAll(all);
    },
  };
}

serve(async (job: WorkerJob, say) => {
  pin(job.cpu);
  const programs =
    job.programs.length === 0
      ? undefined
      : await runPrograms(job.programs, job.onError, new Float64Array(job.programCounters), say);
  const { specs, says } = endpoints(job.names, job.loop);
  const third = job.third === undefined ? [] : endpoints([job.third], true).specs;
  says.forEach(say);
  const ports = openPorts([...specs, ...third], { promisc: job.promisc, copy: job.copy });
  return orClose(ports, () => join(job, ports.slice(0, specs.length), ports[specs.length], programs));
});
