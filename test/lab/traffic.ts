// The programs people test a network with, run in a lab's namespace.
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import type { Namespace } from './lab.js';

export interface Finished {
  status: number | null;
  signal: NodeJS.Signals | null;
  stdout: string;
  stderr: string;
}

/** Collects what a child writes; `ended` resolves when it has exited and closed its output. */
export function collect(child: ChildProcess): { output: Finished; ended: Promise<Finished> } {
  const output: Finished = { status: null, signal: null, stdout: '', stderr: '' };
  child.stdout?.setEncoding('utf8').on('data', (text: string) => (output.stdout += text));
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (output.stderr += text));
  const ended = once(child, 'close').then(([status, signal]) => {
    output.status = status as number | null;
    output.signal = signal as NodeJS.Signals | null;
    return output;
  });
  return { output, ended };
}

/** Waits until what a child writes on standard output or error matches. */
export async function says(child: ChildProcess, pattern: RegExp): Promise<void> {
  let text = '';
  await new Promise<void>((resolve, reject) => {
    const read = (more: Buffer | string) => {
      text += more.toString();
      if (pattern.test(text)) resolve();
    };
    child.stdout?.on('data', read);
    child.stderr?.on('data', read);
    child.once('close', () => {
      reject(new Error(`${child.spawnargs.join(' ')} ended before it said ${String(pattern)}: ${text}`));
    });
  });
}

async function complete(ns: Namespace, command: string, args: string[]): Promise<Finished> {
  const { ended } = collect(ns.spawn(command, args, { stdio: ['ignore', 'pipe', 'pipe'] }));
  const result = await ended;
  if (result.status !== 0 && command !== 'ping')
    throw new Error(`${command} ${args.join(' ')}: ${result.stdout}${result.stderr}`);
  return result;
}

/** Echo requests sent and answers received; `flood` sends the next one as soon as the last is answered. */
export async function ping(
  ns: Namespace,
  to: string,
  options: {
    count?: number;
    bytes?: number;
    flood?: boolean;
    dontFragment?: boolean;
    deadline?: number;
    /** Further options of ping, such as -b. */
    more?: string[];
  } = {},
): Promise<{ sent: number; received: number; duplicates: number }> {
  const args = ['-n', '-q', '-c', String(options.count ?? 1), '-s', String(options.bytes ?? 56)];
  args.push('-w', String(options.deadline ?? 60));
  if (options.flood === true) args.push('-f');
  if (options.dontFragment === true) args.push('-M', 'do');
  const { stdout, stderr } = await complete(ns, 'ping', [...args, ...(options.more ?? []), to]);
  const counts = /(\d+) packets transmitted, (\d+) received/.exec(stdout);
  if (counts === null) throw new Error(`ping ${to}: ${stdout}${stderr}`);
  const duplicates = Number(/\+(\d+) duplicates/.exec(stdout)?.[1] ?? 0);
  return { sent: Number(counts[1]), received: Number(counts[2]), duplicates };
}

/** A running capture. */
export class Capture {
  private constructor(
    private readonly child: ChildProcess,
    private readonly result: ReturnType<typeof collect>,
  ) {}

  /** Starts tcpdump, and waits until it listens. `direction` is seen from the interface. */
  static async start(
    ns: Namespace,
    link: string,
    file: string,
    options: { direction?: 'in' | 'out' | 'inout'; filter?: string; snaplen?: number } = {},
  ): Promise<Capture> {
    const child = ns.spawn(
      'tcpdump',
      [
        ...['-n', '-U', '--immediate-mode', '-B', '65536', '-Z', 'root', '-s', String(options.snaplen ?? 262144)],
        ...['-i', link, '-Q', options.direction ?? 'in', '-w', file],
        ...(options.filter === undefined ? [] : [options.filter]),
      ],
      { stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const result = collect(child);
    await says(child, /listening on/);
    return new Capture(child, result);
  }

  /** Stops; throws if the kernel dropped frames before tcpdump could write them. Resolves to the frames captured. */
  async stop(): Promise<number> {
    this.child.kill('SIGINT');
    const { stderr } = await this.result.ended;
    const dropped = Number(/(\d+) packets? dropped by kernel/.exec(stderr)?.[1] ?? NaN);
    if (dropped !== 0) throw new Error(`tcpdump lost frames of its own: ${stderr}`);
    return Number(/(\d+) packets? captured/.exec(stderr)?.[1] ?? NaN);
  }
}

/** Sends a capture's frames out of an interface; frames sent. */
export async function tcpreplay(ns: Namespace, link: string, file: string, pps?: number): Promise<number> {
  const pace = pps === undefined ? ['--topspeed'] : [`--pps=${pps}`];
  const { stdout } = await complete(ns, 'tcpreplay', [...pace, '-i', link, file]);
  return Number(/Successful packets:\s+(\d+)/.exec(stdout)?.[1] ?? NaN);
}

export interface Iperf {
  bitsPerSecond: number;
  /** bits/s of each second. */
  seconds: number[];
  retransmits: number;
  /** UDP datagrams lost and sent; 0 for TCP. */
  lost: number;
  sent: number;
}

interface IperfReport {
  error?: string;
  intervals: { sum: { bits_per_second: number } }[];
  end: {
    sum?: { bits_per_second: number; lost_packets: number; packets: number };
    sum_sent?: { retransmits?: number };
    sum_received?: { bits_per_second: number };
  };
}

/** One iperf3 run from `from` to a server that it starts in `at`, which has the address `address`. */
export async function iperf3(
  from: Namespace,
  at: Namespace,
  address: string,
  options: { seconds?: number; reverse?: boolean; udp?: boolean; rate?: string; streams?: number } = {},
): Promise<Iperf> {
  const server = at.spawn('iperf3', ['-s', '-1', '--forceflush'], { stdio: ['ignore', 'pipe', 'pipe'] });
  await says(server, /listening on/);
  const args = ['-c', address, '-J', '-t', String(options.seconds ?? 10), '-P', String(options.streams ?? 1)];
  if (options.reverse === true) args.push('-R');
  if (options.udp === true) args.push('-u');
  if (options.rate !== undefined) args.push('-b', options.rate);
  const { stdout } = await complete(from, 'iperf3', args);
  server.kill('SIGKILL');
  const report = JSON.parse(stdout) as IperfReport;
  if (report.error !== undefined) throw new Error(`iperf3: ${report.error}`);
  return {
    bitsPerSecond: report.end.sum_received?.bits_per_second ?? report.end.sum?.bits_per_second ?? 0,
    seconds: report.intervals.map((one) => one.sum.bits_per_second),
    retransmits: report.end.sum_sent?.retransmits ?? 0,
    lost: report.end.sum?.lost_packets ?? 0,
    sent: report.end.sum?.packets ?? 0,
  };
}
