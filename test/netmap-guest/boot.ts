/** The virtual machine that build.sh makes: builds it, boots it, runs a command in it. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const source = fileURLToPath(new URL('../../../test/netmap-guest/', import.meta.url));

/** Two cables: eth0 to eth1, eth2 to eth3. */
const CABLES = [0, 1, 2, 3].flatMap((nic) => [
  ...['-netdev', `hubport,id=n${nic},hubid=${nic >> 1}`],
  ...['-device', `e1000,netdev=n${nic},mac=52:54:00:00:00:0${nic},romfile=`],
]);

/** Of the kernel: a panic ends the machine; its clock is the host's counter, whose rate `khz` spares a measurement. */
function kernelArguments(run: string, khz: string): string {
  const clock = khz === '' ? '' : `tsc_early_khz=${khz} `;
  return (
    'console=ttyS0 quiet loglevel=4 panic=1 oops=panic net.ifnames=0 tsc=reliable clocksource=tsc ' +
    `${clock}mitigations=off nokaslr nosoftlockup rcupdate.rcu_cpu_stall_suppress=1 guest.run=${run}`
  );
}

/** Makes the machine in `folder` from netmap's sources, where that has not been done. Returns what it is made of. */
export function buildGuest(netmap: string, folder: string): string {
  const { status, stdout } = spawnSync(join(source, 'build.sh'), [netmap, folder], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  if (status !== 0) throw new Error('the virtual machine could not be made');
  return stdout.trim();
}

/** How a machine runs. */
export interface Boot {
  /** ms of this machine's time after which it is ended. */
  readonly limitMs: number;
  /** One CPU, on which 1 instruction takes 1 ns whatever this machine is doing: times are numbers of instructions. */
  readonly counted: boolean;
}

/**
 * Boots the machine, runs a command in it as root, and hands over each line that it writes to standard output.
 * @throws Error when the command fails or the machine ends without it: with what was written to standard error, or the console's last lines
 */
export async function runInGuest(
  folder: string,
  command: readonly string[],
  { limitMs, counted }: Boot,
  line: (text: string) => void,
): Promise<void> {
  const run = mkdtempSync(join(folder, 'share', 'run-'));
  const file = (name: string): string => join(run, name);
  const read = (name: string): string => (existsSync(file(name)) ? readFileSync(file(name), 'utf8') : '');
  const words = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const paths = `PATH=${process.env.PATH ?? ''}:/usr/sbin:/sbin TMPDIR=/run HOME=/root GUEST=${folder}`;
  writeFileSync(file('start'), `export ${paths}\ncd '${process.cwd()}'\nexec ${words}\n`);
  const khz = counted ? '' : spawnSync(join(folder, 'bin', 'tsc-khz'), { encoding: 'utf8' }).stdout.trim();
  const machine = spawn(
    'qemu-system-x86_64',
    [
      ...(counted
        ? ['-icount', 'shift=0,sleep=off', '-accel', 'tcg,tb-size=512', '-smp', '1']
        : ['-accel', 'tcg,thread=multi,tb-size=512', '-smp', '2']),
      ...[
        '-cpu',
        'max',
        '-m',
        '2500',
        '-nodefaults',
        '-display',
        'none',
        '-no-reboot',
        '-serial',
        `file:${file('console')}`,
      ],
      ...['-kernel', join(folder, 'vmlinuz'), '-initrd', join(folder, 'initramfs.gz')],
      ...['-append', kernelArguments(run, khz)],
      ...['-fsdev', 'local,id=host,path=/,security_model=none,readonly=on,multidevs=remap'],
      ...['-device', 'virtio-9p-pci,fsdev=host,mount_tag=host'],
      ...['-fsdev', `local,id=share,path=${run},security_model=none`],
      ...['-device', 'virtio-9p-pci,fsdev=share,mount_tag=share'],
      ...CABLES,
    ],
    { stdio: ['ignore', 'ignore', 'ignore'] },
  );
  const stop = (): boolean => machine.kill('SIGKILL');
  process.once('exit', stop);
  const ended = once(machine, 'exit').then(() => true);
  const deadline = Date.now() + limitMs;
  let shown = 0;
  const show = (): void => {
    const lines = read('said').split('\n');
    for (; shown < lines.length - 1; shown++) line(lines[shown]);
  };
  while (!(await Promise.race([ended, sleep(300, false)]))) {
    show();
    if (Date.now() > deadline) stop();
  }
  show();
  process.removeListener('exit', stop);
  const status = read('status').trim();
  const why = status === '' ? read('console').split('\n').slice(-30).join('\n') : read('errors');
  if (status === '0') rmSync(run, { recursive: true });
  else if (Date.now() > deadline) throw new Error(`not done after ${limitMs / 1000} s; see ${run}`);
  else throw new Error(`${status === '' ? 'the machine ended early' : `exit status ${status}`}; see ${run}\n${why}`);
}
