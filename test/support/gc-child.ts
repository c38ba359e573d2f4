// Forwards without pause between two marks on stdout; run under --trace-gc by integrity.test.ts.
import { writeSync } from 'node:fs';
import { Bridge, nicSide } from '../../lib/forward/bridge.js';
import { FRAMES } from '../../lib/forward/counters.js';
import { turning } from '../../lib/forward/loop.js';
import { spin } from '../../lib/threads/loop.js';
import { openPorts } from '../../lib/ports/open.js';

const [, , first, second, warmup, frames] = process.argv;
const [a, b] = openPorts([first, second]);
const bridge = new Bridge(nicSide(a), nicSide(b));
const [forth, back] = bridge.counters;

const run = new Float64Array(16);
const work = turning(bridge, 'busy');

function turnUntil(total: number): void {
  spin(work, run, () => (forth[FRAMES] + back[FRAMES] >= total ? true : undefined));
}

turnUntil(Number(warmup));
// What start-up and warm-up left must not bring on a collection that is not forwarding's doing.
(globalThis as { gc?: () => void }).gc?.();
writeSync(1, 'BEGIN\n');
turnUntil(Number(warmup) + Number(frames));
writeSync(1, 'END\n');
