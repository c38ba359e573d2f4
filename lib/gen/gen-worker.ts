/** A thread of the generator: opens its share of the port, waits for the link, and runs the engine. */
import { UsageError } from '../text/errors.js';
import { native } from '../shim/native.js';
import { portSpec } from '../ports/interface.js';
import { openPort } from '../ports/open.js';
import type { Port } from '../ports/port.js';
import { closeAll, orClose, pin, serve, waitForLinks, type Served } from '../threads/serve.js';
import { portInfo } from '../ports/port-info.js';
import { PingEngine, pongEngine, rxEngine, TxEngine, type Engine } from './engines.js';
import type { GenEnded, GenJob, GenOpened } from './job.js';
import { runEngine } from './gen-loop.js';
import { Quota } from './quota.js';
import { Receiver } from './receiver.js';
import { Reflector } from './reflector.js';
import { Replay } from './replay.js';
import type { GenReport } from './gen-report.js';
import { Sender, type Source } from './sender.js';
import { StartLine } from './start-line.js';
import { REPLY, REQUEST, swapHalf } from './tag.js';
import { makeTemplates } from './templates.js';
import type { Flow } from './headers.js';

/** Locally administered, for ports without an address of their own. */
const ANY_MAC = Uint8Array.from([0x02, 0, 0, 0, 0, 0x01]);

/** The address of the interface behind a port. */
function ownMac(name: string): Uint8Array {
  const spec = portSpec(name);
  if (spec.kind !== 'xdp' && spec.kind !== 'netmap' && spec.kind !== 'auto') return ANY_MAC;
  try {
    const ifname = spec.kind === 'netmap' ? spec.name : spec.ifname;
    const text = native.netdevMac(ifname, spec.kind === 'xdp' ? (spec.netns ?? '') : '');
    return text === null ? ANY_MAC : Uint8Array.from(text.split(':'), (byte) => parseInt(byte, 16));
  } catch {
    return ANY_MAC; // VALE ports and netmap pipes are no interfaces of the system
  }
}

function makeSource(port: Port, job: GenJob, flow: Flow): Source {
  if (job.replay !== undefined) return new Replay(port, job.replay, job.burst, job.rate);
  return makeSender(port, job, flow);
}

function makeSender(port: Port, job: GenJob, flow: Flow): Sender {
  const templates = makeTemplates(flow, job);
  const { burst, stream } = job;
  if (job.rings > port.tx.length)
    throw new UsageError(
      `${port.name} has ${port.tx.length} tx ring${port.tx.length === 1 ? '' : 's'}; write -p ${port.tx.length * job.threads} or less`,
    );
  const rings = port.tx.slice(0, job.mode === 'ping' ? 1 : job.rings || port.tx.length);
  return new Sender(port, rings, { flow, templates, burst, stream, rate: job.rate ?? Infinity });
}

function makeEngine(port: Port, job: GenJob, flow: Flow): Engine {
  const quota = new Quota(job.frames || Infinity, job.quota);
  const { mode } = job;
  if (mode !== 'rx' && port.tx.length === 0)
    throw new UsageError(`${port.name} sends nothing; -f ${mode} needs a port that does`);
  if (mode !== 'tx' && port.rx.length === 0)
    throw new UsageError(`${port.name} receives nothing; -f ${mode} needs a port that does`);
  switch (mode) {
    case 'tx':
      return new TxEngine(makeSource(port, job, flow), quota);
    case 'rx':
      return rxEngine(port, new Receiver(port, REQUEST), quota);
    case 'ping':
      return new PingEngine(
        makeSender(port, job, flow),
        new Receiver(port, REPLY, swapHalf(job.stream), flow.sourceMac),
        job.frames || Infinity,
      );
    case 'pong':
      return pongEngine(port, new Reflector(port), quota);
  }
}

function attach(port: Port, job: GenJob): Served<GenOpened, undefined, GenReport, GenEnded> {
  const sourceMac = job.flow.sourceMac ?? addressOf(ownMac(job.name));
  const engine = makeEngine(port, job, { ...job.flow, sourceMac });
  return {
    opened: { port: portInfo(port), sourceMac: macText(sourceMac.bytes) },
    run: (_, control, tell) => {
      waitForLinks([port], job.linkWait, control, tell.say);
      new StartLine(job.threads, job.start).wait(control);
      tell.running();
      return runEngine(engine, port, control, tell, { wait: job.wait, ns: job.seconds * 1e9 });
    },
    close: () => {
      closeAll([engine, port]);
    },
  };
}

function addressOf(bytes: Uint8Array): Flow['sourceMac'] {
  const low = bytes.slice(2).reduce((value, byte) => value * 256 + byte, 0);
  return { bytes, low: { first: low, last: low } };
}

function macText(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join(':');
}

serve((job: GenJob) => {
  pin(job.cpu);
  const port = openPort(job.port, job.options);
  return orClose([port], () => attach(port, job));
});
