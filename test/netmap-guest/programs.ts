/** What the checks inside the machine run: bridges and generators, ours and upstream's. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** Whose program. */
export type Whose = 'ours' | "upstream's";
export const BOTH: readonly Whose[] = ["upstream's", 'ours'];

/** What build.sh has put aside: upstream's programs, and busybox. */
export const built = (name: string): string => join(process.env.GUEST ?? '', 'bin', name);

export function command(whose: Whose, name: string): [string, ...string[]] {
  return whose === 'ours' ? [process.execPath, join('dist', 'tools', `${name}.js`)] : [built(name)];
}

/** Seconds until a program must have said what is waited for: where instructions are translated, JavaScript starts slowly. */
const PATIENCE_S = 120;

/** A program that runs. */
export class Program {
  /** All that it has written. */
  said = '';
  readonly #child: ChildProcess;
  readonly #ended: Promise<number>;

  constructor([file, ...args]: readonly [string, ...string[]]) {
    this.#child = spawn(file, args, { stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => (this.said += text));
    this.#ended = once(this.#child, 'close').then(([status]) => (status as number | null) ?? -1);
  }

  /** Waits until what it has said matches. */
  async until(pattern: RegExp): Promise<RegExpExecArray> {
    const deadline = Date.now() + PATIENCE_S * 1000;
    for (;;) {
      const match = pattern.exec(this.said);
      if (match !== null) return match;
      if (this.#child.exitCode !== null || Date.now() > deadline)
        throw new Error(`${this.#child.spawnargs.join(' ')} did not say ${String(pattern)}, but: ${this.said}`);
      await sleep(50);
    }
  }

  signal(signal: NodeJS.Signals): void {
    this.#child.kill(signal);
  }

  /** Its exit status, -1 after a signal; undefined where it runs on for more than so many seconds. */
  ended(seconds: number): Promise<number | undefined> {
    return Promise.race([this.#ended, sleep(seconds * 1000, undefined, { ref: false })]);
  }

  /** Ends it as a user does. */
  async stop(): Promise<void> {
    this.signal('SIGCONT');
    this.signal('SIGINT');
    if ((await this.ended(30)) !== undefined) return;
    this.signal('SIGKILL');
    throw new Error(`${this.#child.spawnargs.join(' ')} had to be killed; it said: ${this.said}`);
  }

  /** CPU time of its threads so far, ns. */
  get cpuNs(): number {
    const tasks = `/proc/${this.#child.pid ?? 0}/task`;
    const ns = (id: string): number => Number(readFileSync(`${tasks}/${id}/schedstat`, 'utf8').split(' ')[0]);
    return readdirSync(tasks).reduce((sum, id) => sum + ns(id), 0);
  }
}

/** Runs a command to its end; returns what it wrote. */
export function run(file: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(file, args, { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${file} ${args.join(' ')}: ${stdout}${stderr}`);
  return stdout;
}
export const valeCtl = (...args: string[]): string => run(built('vale-ctl'), ...args);

/** A bridge that forwards both ways. `options` are for ours; links are given so many seconds. */
export async function bridge(
  whose: Whose,
  ports: readonly string[],
  options: readonly string[],
  linkS = 0,
): Promise<Program> {
  const names = ports.flatMap((port) => ['-i', port]);
  const program = new Program([
    ...command(whose, 'bridge'),
    ...names,
    '-w',
    `${linkS}`,
    ...(whose === 'ours' ? options : []),
  ]);
  await program.until(whose === 'ours' ? /→.*\n.*→/ : /Ready to go/);
  await sleep(linkS * 1000 + 500);
  return program;
}

/** Between whom frames go. */
export interface Way {
  readonly from: string;
  readonly to: string;
  /** Seconds that links are given. */
  readonly linkS?: number;
}

/** How many frames, and how many of them a second; absent: as many as there is room for. */
export interface Load {
  readonly count: number;
  readonly rate?: number;
}

/** What became of frames. */
export interface Arrived {
  readonly frames: number;
  /** Frames a second, by the receiver. */
  readonly pps: number;
  /** Twice there or out of order, where the receiver can tell. */
  readonly wrong: number;
}

/** Sends frames of 60 bytes from one port to another, by either generator, and waits until they have arrived or no more come. */
export async function transfer(
  { from, to, linkS = 0 }: Way,
  { count, rate }: Load,
  [sender, receiver]: readonly [Whose, Whose] = ["upstream's", "upstream's"],
): Promise<Arrived> {
  // Upstream's waits 1 s for a link at least. Either sends 60 bytes without being told.
  const options = (whose: Whose): string[] =>
    whose === 'ours' ? ['-w', `${linkS}`, '--json', '--wait', 'poll'] : ['-w', `${Math.max(linkS, 1)}`];
  const pktGen = (whose: Whose, port: string, mode: string, ...more: string[]): Program =>
    new Program([...command(whose, 'pkt-gen'), '-i', port, '-f', mode, '-n', `${count}`, ...options(whose), ...more]);
  const rx = pktGen(receiver, to, 'rx');
  await rx.until(receiver === 'ours' ? /"type":"open"/ : /waiting for initial packets/);
  await sleep(linkS * 1000);
  const tx = pktGen(sender, from, 'tx', ...(rate === undefined ? [] : ['-R', `${rate}`]));
  // A receiver that ends with the last frame keeps a pipe's slots, and a sender waits for them: then the receiver's end counts.
  const sent = sender === 'ours' ? /"type":"summary"/ : /^Sent \d+ packets/m;
  await Promise.race([tx.until(sent), rx.ended(PATIENCE_S)]);
  if ((await rx.ended(5)) === undefined) await rx.stop();
  if ((await tx.ended(1)) === undefined) await tx.stop();
  return receiver === 'ours' ? ourArrived(rx.said) : upstreamsArrived(rx.said);
}

function ourArrived(said: string): Arrived {
  const summary = said.split('\n').find((line) => line.includes('"type":"summary"')) ?? '{}';
  const { received, receivedPps = 0 } = JSON.parse(summary) as {
    received?: { frames: number; duplicates: number; reordered: number };
    receivedPps?: number;
  };
  if (received === undefined) throw new Error(`pkt-gen has no summary: ${said}`);
  return { frames: received.frames, pps: receivedPps, wrong: received.duplicates + received.reordered };
}

const UNITS: Record<string, number> = { '': 1, K: 1e3, M: 1e6, G: 1e9 };

function upstreamsArrived(said: string): Arrived {
  const frames = Number(/^Received (\d+) packets/m.exec(said)?.[1] ?? 0);
  const [, number = '0', unit = ''] = /^Speed: ([\d.]+) ([KMG]?)pps/m.exec(said) ?? [];
  return { frames, pps: Number(number) * (UNITS[unit] ?? NaN), wrong: 0 };
}
