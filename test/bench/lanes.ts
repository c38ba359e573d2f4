/** A lane's move() against a plain C loop that does the same work on the same memory. */
import { spawnSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { Lane } from '../../lib/forward/lane.js';
import { RING_HEAD, RING_TAIL } from '../../lib/rings/abi.js';
import { Memory } from '../../lib/rings/memory.js';
import type { Ring } from '../../lib/rings/ring.js';
import { alternate, Report } from './harness.js';

const SLOTS = 1024;
const ROUNDS = 15;
/** ns of CPU time a sample takes: a hundred thousand steps of its clock, and more than a switch to another thread. */
const SAMPLE_NS = 2e7;

interface Loops {
  run(
    rxWords: Int32Array,
    rx: number,
    txWords: Int32Array,
    tx: number,
    ...rest: [burst: number, rxBuffers: number, txBuffers: number, turns: number, copies: number]
  ): number;
  /** CPU time of this thread, ns: what other programs on the machine take does not count. */
  cpuNs(): number;
}

function buildC(): Loops {
  const gyp = spawnSync('node-gyp', ['rebuild', '-C', 'test/bench'], { encoding: 'utf8' });
  if (gyp.status !== 0)
    throw new Error(`the C loops did not build; run this as npm run bench, which has node-gyp:\n${gyp.stderr}`);
  return createRequire(import.meta.url)(`${process.cwd()}/test/bench/build/Release/loops.node`) as Loops;
}

/** Frames of one length from one ring to another, by C and by TypeScript in turns; ns a frame of each round. */
function race(loops: Loops, lane: Lane, len: number, burst: number): { c: number[]; ts: number[] } {
  const { rx, tx } = lane;
  for (let slot = 0; slot < SLOTS; slot++) rx.setLenFlags(slot, len);
  const [rm, tm] = [rx.i32, tx.i32];
  const [rxHead, rxTail] = [rx.base + RING_HEAD, rx.base + RING_TAIL];
  const [txHead, txTail] = [tx.base + RING_HEAD, tx.base + RING_TAIL];
  const copies = lane.whyCopy === undefined ? 0 : 1;
  // The same turn as in loops.c.
  const runTs = (turns: number): number => {
    let moved = 0;
    for (let i = 0; i < turns; i++) {
      rm[rxTail] = (rm[rxHead] + burst) % SLOTS;
      tm[txTail] = (tm[txHead] + burst) % SLOTS;
      moved += lane.move(burst);
    }
    return moved;
  };
  const runC = (turns: number): number =>
    loops.run(rm, rx.base, tm, tx.base, burst, rx.bufLimit - 2, tx.bufLimit - 2, turns, copies);
  const timed = (run: (turns: number) => number): (() => number) => {
    const sample = (turns: number): number => {
      const start = loops.cpuNs();
      if (run(turns) !== turns * burst) throw new Error('not every frame was moved');
      return (loops.cpuNs() - start) / (turns * burst);
    };
    let ns = sample(Math.ceil(1e5 / burst));
    return () => (ns = sample(Math.ceil(SAMPLE_NS / (ns * burst))));
  };
  const figures = alternate(
    [
      { name: 'c', run: timed(runC) },
      { name: 'ts', run: timed(runTs) },
    ],
    ROUNDS,
  );
  lane.settle();
  return { c: figures.get('c')!, ts: figures.get('ts')! };
}

function add(report: Report, what: string, { c, ts }: { c: number[]; ts: number[] }, goal: number): void {
  report.add(`${what}: C -O2`, c);
  report.add(`${what}: TypeScript`, ts);
  report.add(
    `${what}: speed of TypeScript ÷ C`,
    c.map((ns, round) => ns / ts[round]),
    `goal ≥ ${goal}`,
  );
}

const plan = { tx: [SLOTS], rx: [SLOTS] };

function rings(): { rx: Ring; tx: Ring; close: () => void } {
  const memory = new Memory({ plans: [plan], bufSize: 2048 });
  const { tx, rx } = memory.carve(plan);
  memory.release();
  const close = (): void => {
    memory.release();
  };
  return { rx: rx[0], tx: tx[0], close };
}

export function benchForward(jsonFile: string | undefined): void {
  const loops = buildC();
  const report = new Report('forward: TypeScript against C, 64-byte frames', 'CPU ns a frame', jsonFile);
  const { rx, tx, close } = rings();
  const goals = new Map([
    [1, 0.9],
    [2, 0.9],
    [4, 1],
    [8, 1],
    [16, 1],
    [32, 1.1],
    [256, 1.2],
    [1023, 1.2],
  ]);
  for (const [burst, goal] of goals) add(report, `burst ${burst}`, race(loops, new Lane(rx, tx), 60, burst), goal);
  report.print();
  close();
}

export function benchCopy(jsonFile: string | undefined): void {
  const loops = buildC();
  const report = new Report('copy: TypeScript against C, one memory to another', 'CPU ns a frame', jsonFile);
  const from = rings();
  const to = rings();
  const goals = new Map([
    [1, 0.5],
    [8, 0.75],
    [32, 1],
    [256, 1],
  ]);
  for (const len of [60, 512, 1514])
    for (const [burst, goal] of goals)
      add(report, `${len} bytes, burst ${burst}`, race(loops, new Lane(from.rx, to.tx), len, burst), goal);
  report.print();
  from.close();
  to.close();
}
