/**
 * `many-ports.js ROUNDS PORTS` with --expose-gc, PORTS a JSON array of arrays of names: opens each array together, uses and
 * closes them all, time and again. Says in JSON what the process held after the first round and after the last.
 */
import { readFileSync } from 'node:fs';
import { openPorts } from '../../lib/ports/open.js';
import { descriptors } from './descriptors.js';

const [rounds, list] = process.argv.slice(2);
const groups = JSON.parse(list) as string[][];

/** From /proc/self/status, in KiB. */
function kib(field: string): number {
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(readFileSync('/proc/self/status', 'utf8'))?.[1]);
}

/** Returns how many rings of closed ports can still be read. */
function round(): number {
  const ports = groups.flatMap((names) => openPorts(names));
  for (const port of ports) {
    port.rxsync();
    port.txsync();
  }
  for (const port of ports) port.close();
  return ports.flatMap((port) => [...port.tx, ...port.rx]).filter((ring) => ring.i32.length > 0).length;
}

async function state() {
  for (let i = 0; i < 3; i++) {
    gc!();
    await new Promise(setImmediate);
  }
  return {
    descriptors: descriptors().length,
    addressMiB: kib('VmSize') >> 10,
    pinned: kib('VmPin'),
  };
}

let attached = round();
const before = await state();
for (let left = Number(rounds) - 1; left > 0; left--) attached += round();
process.stdout.write(JSON.stringify({ attached, before, after: await state() }));
