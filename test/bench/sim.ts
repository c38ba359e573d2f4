/** Two unlimited simulated ports, 64-byte frames, one thread, both directions. */
import { runTrial } from '../../lib/measure/trial/trial.js';
import { Report } from './harness.js';

const ROUNDS = 5;

/**
 * Buffers of 2,112 bytes: at 2,048 every frame's first line falls into the same 32 sets of the caches. Rings of 512
 * slots keep slots and first lines of four rings within a second-level cache of 512 KiB.
 */
const PORTS = 'rate=max,slots=512,buf=2112';

export async function benchSim(jsonFile: string | undefined): Promise<void> {
  const report = new Report('two unlimited simulated ports, 64 bytes, both directions summed', 'Mpps', jsonFile);
  const variants = [
    { name: 'unchecked', options: `${PORTS},check=off`, note: 'goal ≥ 100; ixy.js: 4.95 (ixy-languages)' },
    { name: 'every frame stamped and checked', options: PORTS, note: 'goal ≥ 60' },
  ];
  const wall = new Map(variants.map(({ name }) => [name, [] as number[]]));
  const cpu = new Map(variants.map(({ name }) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round++) {
    for (const { name, options } of variants) {
      const trial = await runTrial({ names: [`sim:a@${options}`, `sim:b@${options}`], seconds: 1 });
      const frames = trial.directions.reduce((sum, { forwardedInTime }) => sum + forwardedInTime, 0);
      wall.get(name)!.push(frames / trial.seconds / 1e6);
      cpu.get(name)!.push((frames * 1e3) / (trial.userNs + trial.systemNs));
    }
  }
  for (const { name, note } of variants) {
    report.add(name, wall.get(name)!, note);
    report.add(`${name}, for each second of CPU time`, cpu.get(name)!, 'what a core of its own would do');
  }
  report.print();
}
