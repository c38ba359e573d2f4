/**
 * The other process of the pipe tests: `pipe-child.js TASK PORT… [COUNT]`. Says `ready` once its ports are open.
 * send, receive: COUNT frames of pipe-frames.ts, then close. bridge: frames from the first port to the second, until
 * killed. tear: dies between the two stores of an exchange. hold: waits to be killed.
 */
import { FRAMES, COUNTERS } from '../../lib/forward/counters.js';
import { forwarder } from './forwarder.js';
import { openPorts } from '../../lib/ports/open.js';
import { FrameChecker, putFrame } from './pipe-frames.js';

const [task, ...rest] = process.argv.slice(2);
const names = rest.filter((word) => word.startsWith('pipe:'));
const count = Number(rest.find((word) => !word.startsWith('pipe:')) ?? 0);
const ports = openPorts(names);
const [port] = ports;
function say(message: unknown): void {
  process.send!(message);
}
say({ ready: true, notes: port.notes, stats: port.stats() });

function send(): void {
  for (let n = 0; n < count;) {
    while (n < count && putFrame(port.tx[0], 0, n)) n++;
    port.txsync();
  }
}

function receive(): void {
  const checker = new FrameChecker();
  while (checker.frames < count) {
    port.rxsync();
    checker.takeAll(port.rx[0]);
  }
  port.rxsync();
  say({ frames: checker.frames, faults: checker.faults });
}

function bridge(): void {
  const counters = new Float64Array(COUNTERS);
  const forward = forwarder(port.rx[0], ports[1].tx[0], counters);
  for (let told = false; ;) {
    port.rxsync();
    forward(64);
    ports[1].txsync();
    if (!told && counters[FRAMES] > 0) {
      told = true;
      say({ forwarding: true });
    }
  }
}

/** The first half of an exchange, as a bridge killed in the middle leaves it. */
function tear(): void {
  port.rxsync();
  const rx = port.rx[0];
  const tx = ports[1].tx[0];
  tx.i32[tx.slotWord(tx.head)] = rx.bufIdx(rx.head);
  process.kill(process.pid, 'SIGKILL');
}

switch (task) {
  case 'send':
    send();
    break;
  case 'receive':
    receive();
    break;
  case 'bridge':
    bridge();
    break;
  case 'tear':
    tear();
    break;
  case 'hold':
    process.on('message', say); // keeps the process alive
}
if (task !== 'hold') {
  for (const open of ports) open.close();
  process.disconnect();
}
