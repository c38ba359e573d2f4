/** One end of a bench, a generator or a sink: opens its port once and makes one run after the other on it. */
import { mixSequence, sizesOf } from '../../text/units.js';
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
import { openPort } from '../../ports/open.js';
import type { Port } from '../../ports/port.js';
import { portInfo, type PortInfo } from '../../ports/port-info.js';
import type { GenEnded } from '../../gen/job.js';
import { LINK_WAIT_S, linksDown, orClose, serve, type Served } from '../../threads/serve.js';
import type { EndJob, EndRun } from './end.js';

/** Frames put into the ring at once, and frames a sender that was held up may catch up with. */
const BURST = 256;
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

function engineFor(port: Port, run: EndRun): Engine {
  if (run.kind === 'receive') return rxEngine(port, new Receiver(port, REQUEST, swapHalf(run.stream)), UNLIMITED);
  const templates = makeTemplates(FLOW, { sizes: mixSequence(sizesOf(run.size)), randomPayload: false, plain: false });
  // One ring: one stream, whose numbers the sink follows.
  const options = { flow: FLOW, templates, burst: BURST, stream: run.stream, rate: run.rate };
  return new TxEngine(new Sender(port, port.tx.slice(0, 1), options), new Quota(run.frames));
}

/** @throws PortError where the link does not come up */
function awaitLink(port: Port): void {
  const { name } = port;
  if (linksDown([port], LINK_WAIT_S).length > 0)
    throw new PortError(
      `${name}: the link did not come up within ${LINK_WAIT_S} s, and nothing can be measured without it; ` +
        'see to the cable, and that the interfaces at both of its ends are up',
      name,
    );
}

serve(({ name, wait }: EndJob): Served<PortInfo, EndRun, GenReport, GenEnded> => {
  const port = openPort(name);
  return orClose([port], () => {
    awaitLink(port);
    return {
      opened: portInfo(port),
      run: (run, control, tell) => {
        const engine = engineFor(port, run);
        tell.running();
        return runEngine(engine, port, control, tell, { wait, ns: run.kind === 'send' ? run.seconds * 1e9 : 0 });
      },
      close: () => {
        port.close();
      },
    };
  });
});
