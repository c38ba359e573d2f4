/** What frame programs cost: the cursor on every slot of a ring, and a filter on every frame. */
import { MOREFRAG, SLOT_WORDS } from '../../lib/rings/abi.js';
import { Memory } from '../../lib/rings/memory.js';
import type { Ring } from '../../lib/rings/ring.js';
import { specialize } from '../../lib/rings/specialize.js';
import { Frame } from '../../lib/programs/frame.js';
import { compileFilter, type Accepts } from '../../lib/programs/filter/filter.js';
import { ethernet, ipv4, ipv6, tcp, udp } from '../programs/frames.js';
import { alternate, cpuNs, Report } from './harness.js';

const SLOTS = 1024;
const ROUNDS = 15;
const TURNS = 2000;

const FRAMES = [
  ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 53, new Array<number>(18).fill(0)))),
  ethernet(0x0800, ipv4({ protocol: 17 }, udp(1053, 4789, new Array<number>(18).fill(0)))),
  ethernet(0x0800, ipv4({ protocol: 6 }, tcp(40000, 443, 0x10))),
  ethernet(0x86dd, ipv6({ protocol: 17 }, udp(1053, 53, [], { from: 'fd00::1', to: 'fd00::2' }))),
];

const FILTERS = ['udp and port 53', 'tcp[13] & 2 != 0', 'vlan and host 10.0.0.1', 'net 10.0.0.0/8 and not port 443'];

/** Turns of the ring, compiled for it and for the program, as the lane is; the frames that `accepts`. */
function makeRunner(ring: Ring, frame: Frame, accepts: Accepts, turns: number, slotWords: number): () => number {
  const { i32, u8, slot0, numSlots, bufBase, bufSize } = ring;
  return function run(): number {
    let accepted = 0;
    for (let turn = 0; turn < turns; turn++)
      for (let i = 0; i < numSlots; i++) {
        const word = slot0 + i * slotWords;
        const length = i32[word + 1] & 0xffff;
        frame.moveTo(u8, bufBase + i32[word] * bufSize, length, length, 0, bufSize - length);
        if (accepts(frame)) accepted++;
      }
    return accepted;
  };
}

export function benchPrograms(jsonFile: string | undefined): void {
  const plan = { tx: [], rx: [SLOTS] };
  // At 2,048 bytes every frame's first line falls into the same sets of the caches.
  const memory = new Memory({ plans: [plan], bufSize: 2112 });
  const ring = memory.carve(plan).rx[0];
  for (let slot = 0; slot < SLOTS; slot++) {
    const frame = FRAMES[slot % FRAMES.length];
    ring.setLenFlags(slot, frame.length, ring.slotFlags(slot) & ~MOREFRAG);
    ring.u8.set(frame, ring.dataStart(slot));
  }
  const contenders: [string, Accepts][] = [
    ['the cursor alone', (frame) => frame.size > 0],
    ['two bytes, frame.u16(36)', (frame) => frame.u16(36) === 53],
    ['parsed to the UDP port, frame.u16(frame.udp + 2)', (frame) => frame.u16(frame.udp + 2) === 53],
    ...FILTERS.map((text): [string, Accepts] => [`filter '${text}'`, compileFilter(text)]),
  ];
  const report = new Report(
    `frame programs on a ring of ${SLOTS} frames, the cursor included`,
    'CPU ns a frame',
    jsonFile,
  );
  const figures = alternate(
    contenders.map(([name, accepts]) => {
      const run = specialize(makeRunner, 'programs')(ring, new Frame(), accepts, TURNS, SLOT_WORDS);
      const timed = (): number => {
        const start = cpuNs();
        run();
        return (cpuNs() - start) / (TURNS * SLOTS);
      };
      return { name, run: timed };
    }),
    ROUNDS,
  );
  for (const [name] of contenders) report.add(name, figures.get(name)!);
  report.print();
  memory.release();
  memory.release();
}
