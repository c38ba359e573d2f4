/**
 * `crash-child.js PORT…`, with thread-crash.js preloaded: a bridge of two ports, or a generator on one, whose thread dies.
 * Says in JSON what its promises were told, which descriptors are left, and how a second run on the same ports ended.
 */
import { parsePktGen } from '../../lib/cli/pkt-gen/pkt-gen-options.js';
import { startGenerator } from '../../lib/gen/gen-start.js';
import { startBridge } from '../../lib/forward/start.js';
import { descriptors } from './descriptors.js';

const names = process.argv.slice(2);

interface Run {
  opened: Promise<unknown>;
  running: Promise<unknown>;
  ended: Promise<unknown>;
  stop(): void;
}

function start(): Run {
  if (names.length === 2) return startBridge(names);
  return startGenerator(parsePktGen(['-i', names[0], '-f', 'tx', '-R', '10000']).settings);
}

/** What a promise was told: its error, or nothing. */
const told = (promise: Promise<unknown>): Promise<string> =>
  promise.then(
    () => '',
    (error: unknown) => String(error),
  );

const before = descriptors();
const first = start();
const errors = await Promise.all([first.opened, first.running, first.ended].map(told));
const left = descriptors().filter((target) => !before.includes(target));
const second = start();
await second.running;
second.stop();
const again = await told(second.ended);
process.stdout.write(JSON.stringify({ errors, left, again }));
