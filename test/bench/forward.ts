/** forward() against a plain C loop that does the same work on the same memory. */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { RING_HEAD, RING_TAIL } from '../../lib/rings/abi.js';
import { forwarder } from '../../lib/forward/forward.js';
import { Memory } from '../../lib/rings/memory.js';
import { alternate, cpuNs, Report } from './harness.js';

const SLOTS = 1024;
const BURSTS = [1, 8, 32, 256, 1023];
const ROUNDS = 15;
const FRAMES_A_ROUND = 4e6;

type RunC = (words: Int32Array, rx: number, tx: number, burst: number, buffers: number, turns: number) => number;

function buildC(): RunC {
  const gyp = spawnSync('node-gyp', ['rebuild', '-C', 'test/bench'], { encoding: 'utf8' });
  if (gyp.status !== 0)
    throw new Error(`the C loop did not build; run this as npm run bench, which has node-gyp:\n${gyp.stderr}`);
  const require = createRequire(import.meta.url);
  return (require(`${process.cwd()}/test/bench/build/Release/forward_c.node`) as { run: RunC }).run;
}

export function benchForward(jsonFile: string | undefined): void {
  const runC = buildC();
  const plan = { tx: [SLOTS], rx: [SLOTS] };
  const memory = new Memory({ plans: [plan], bufSize: 2048 });
  const { tx, rx } = memory.carve(plan);
  for (let slot = 0; slot < SLOTS; slot++) rx[0].setLenFlags(slot, 60);
  const { i32 } = memory.region;
  const forward = forwarder(rx[0], tx[0], new Float64Array(16));
  const [rxHead, rxTail] = [rx[0].base + RING_HEAD, rx[0].base + RING_TAIL];
  const [txHead, txTail] = [tx[0].base + RING_HEAD, tx[0].base + RING_TAIL];
  // The same turn as in forward.c.
  const runTs = (burst: number, turns: number): number => {
    let moved = 0;
    for (let i = 0; i < turns; i++) {
      i32[rxTail] = (i32[rxHead] + burst) % SLOTS;
      i32[txTail] = (i32[txHead] + burst) % SLOTS;
      moved += forward(burst);
    }
    return moved;
  };

  const report = new Report('forward: TypeScript against C, 64-byte frames', 'CPU ns a frame', jsonFile);
  for (const burst of BURSTS) {
    const turns = Math.ceil(FRAMES_A_ROUND / burst);
    const timed = (work: () => number): number => {
      const start = cpuNs();
      if (work() !== turns * burst) throw new Error('not every frame was moved');
      return (cpuNs() - start) / (turns * burst);
    };
    const c = {
      name: 'C',
      run: () => timed(() => runC(i32, rx[0].base, tx[0].base, burst, rx[0].bufLimit - 2, turns)),
    };
    const ts = { name: 'TypeScript', run: () => timed(() => runTs(burst, turns)) };
    const figures = alternate([c, ts], ROUNDS);
    report.add(`burst ${burst}: C -O2`, figures.get('C')!);
    report.add(`burst ${burst}: TypeScript`, figures.get('TypeScript')!);
    const ratios = figures.get('C')!.map((ns, round) => ns / figures.get('TypeScript')![round]);
    report.add(`burst ${burst}: speed of TypeScript ÷ C`, ratios, burst >= 32 ? 'goal ≥ 1.0' : '');
  }
  report.print();
  memory.release();
}
