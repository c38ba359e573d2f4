/** One end of a bench, a generator or a sink: opens its port once and makes one run after the other on it. */
import { parentPort, workerData } from 'node:worker_threads';
import { Control } from '../../threads/control.js';
import { PortError } from '../../text/errors.js';
import { rxEngine, TxEngine, type Engine } from '../../gen/engines.js';
import { runEngine } from '../../gen/gen-loop.js';
import { parseEndpoint, parseMacRange } from '../../gen/range.js';
import { Quota, UNLIMITED } from '../../gen/quota.js';
import { Receiver } from '../../gen/receiver.js';
import type { GenReport } from '../../gen/gen-report.js';
import { Sender } from '../../gen/sender.js';
import { REQUEST, swapHalf } from '../../gen/tag.js';
import { makeTemplates } from '../../gen/templates.js';
import { native, now } from '../../shim/native.js';
import { openPort } from '../../ports/open.js';
import type { Port } from '../../ports/port.js';
import { failure, Failed } from '../../threads/serve.js';
import type { WaitMode } from '../../forward/wait.js';

/** What an end is made of. */
export interface EndJob {
  name: string;
  /** Whether a sink to which nothing comes spins or sleeps. */
  wait: WaitMode;
}

/** One run: `send` ends by itself, `receive` when it is stopped through `shared`. */
export type EndRun =
  | {
      kind: 'send';
      shared: SharedArrayBuffer;
      size: number;
      rate: number;
      frames: number;
      seconds: number;
      stream: number;
    }
  | { kind: 'receive'; shared: SharedArrayBuffer; stream: number }
  | { kind: 'close' };

export type EndMessage =
  | { type: 'open' }
  | { type: 'running' }
  | { type: 'report'; report: GenReport }
  | { type: 'end'; report: GenReport }
  | { type: 'fail'; usage: boolean; message: string };

/** Frames put into the ring at once, and frames a sender that was held up may catch up with. */
const BURST = 256;
/** Links take up to this long to come up after a NIC changed its mode, ns; upstream's tools wait as long. */
const LINK_WAIT_NS = 4e9;

/**
 * RFC 2544 appendix C.2.6.2 sets 198.18.0.0/15 aside for benchmarks; port 9 is discard (section C.2.6.4 asks for UDP
 * echo, 7, only where a device filters). Broadcast is what reaches a sink whose address nobody knows.
 */
const FLOW = {
  sourceMac: parseMacRange('02:00:00:00:00:01'),
  destinationMac: parseMacRange('ff:ff:ff:ff:ff:ff'),
  vlans: [],
  source: parseEndpoint('198.18.0.1', 9),
  destination: parseEndpoint('198.19.0.1', 9),
};

function send(message: EndMessage): void {
  parentPort!.postMessage(message);
}

function fail(error: unknown): void {
  const { usage, message } = failure(error);
  send({ type: 'fail', usage, message });
}

function engineFor(port: Port, run: Exclude<EndRun, { kind: 'close' }>): Engine {
  if (run.kind === 'receive') return rxEngine(port, new Receiver(port, REQUEST, swapHalf(run.stream)), UNLIMITED);
  const templates = makeTemplates(FLOW, { sizes: [run.size], randomPayload: false, plain: false });
  // One ring: one stream, whose numbers the sink follows.
  const options = { flow: FLOW, templates, burst: BURST, stream: run.stream, rate: run.rate };
  return new TxEngine(new Sender(port, port.tx.slice(0, 1), options), new Quota(run.frames));
}

const { name, wait } = workerData as EndJob;
try {
  const port = openPort(name);
  const deadline = now() + LINK_WAIT_NS;
  while (port.hasLink && !port.linkUp()) {
    if (now() >= deadline)
      throw new PortError(
        `${name}: the link did not come up within ${LINK_WAIT_NS / 1e9} s, and nothing can be measured without it; ` +
          'see to the cable, and that the interfaces at both of its ends are up',
        name,
      );
    native.sleepNs(10e6);
  }
  parentPort!.on('message', (run: EndRun) => {
    try {
      if (run.kind === 'close') {
        port.close();
        parentPort!.close();
        return;
      }
      const engine = engineFor(port, run);
      send({ type: 'running' });
      const ended = runEngine(engine, port, new Control(run.shared), {
        wait,
        ns: run.kind === 'send' ? run.seconds * 1e9 : 0,
        say: () => undefined,
        report: (now) => {
          send({ type: 'report', report: now });
        },
      });
      if (ended instanceof Failed) throw ended.error;
      send({ type: 'end', report: ended.report });
    } catch (error) {
      fail(error);
    }
  });
  send({ type: 'open' });
} catch (error) {
  fail(error);
}
