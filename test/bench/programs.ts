/** What frame programs cost: the cursor on every slot of a ring, and a filter on every frame. */
import { MOREFRAG } from '../../lib/rings/abi.js';
import { Memory } from '../../lib/rings/memory.js';
import type { Ring } from '../../lib/rings/ring.js';
import { Frame } from '../../lib/programs/frame.js';
import { compileFilter, type Accepts } from '../../lib/programs/filter/filter.js';
import { ethernet, ipv4, ipv6, tcp, udp } from '../programs/frames.js';
import { alternate, Report } from './harness.js';

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

/** A turn of the ring; the frames that `accepts`. A function of its own for each filter, as the lane is. */
function runner(ring: Ring, accepts: Accepts): () => number {
  const body = `return function run() {
  let accepted = 0;
  for (let turn = 0; turn < turns; turn++)
    for (let i = 0; i < slots; i++) if (frame.load(ring, i) && accepts(frame)) accepted++;
  return accepted;
}`;
  // eslint-disable-next-line @typescript-eslint/no-implied-eval
  const make = new Function('ring', 'frame', 'accepts', 'turns', 'slots', body) as (...of: unknown[]) => () => number;
  return make(ring, new Frame(), accepts, TURNS, SLOTS);
}

export function benchPrograms(jsonFile: string | undefined): void {
  const plan = { tx: [], rx: [SLOTS] };
  const memory = new Memory({ plans: [plan], bufSize: 2048 });
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
  const report = new Report(`frame programs on a ring of ${SLOTS} frames, the cursor included`, 'ns a frame', jsonFile);
  const figures = alternate(
    contenders.map(([name, accepts]) => {
      const run = runner(ring, accepts);
      const timed = (): number => {
        const start = performance.now();
        run();
        return ((performance.now() - start) * 1e6) / (TURNS * SLOTS);
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
