// Networks for tests: namespaces and veth pairs that are always removed, also when the test is killed.
import { spawn, spawnSync, type ChildProcess, type SpawnOptions } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { missing, skipFor } from '../support/needs.js';

// Names are nmb<pid>-<number>-<label>: unique among running processes, and they tell whose they are.
const prefix = 'nmb';
const NETNS_DIRECTORY = '/run/netns';

/** Why no lab can be built here (not root, a program missing, no namespaces), or undefined where it can. */
export function labAvailable(...programs: string[]): string | undefined {
  if (process.platform !== 'linux') return 'network namespaces are a Linux facility';
  if (process.getuid?.() !== 0) return 'not root: namespaces and veth pairs need CAP_SYS_ADMIN and CAP_NET_ADMIN';
  const tools = missing('ip', 'sysctl', ...programs);
  if (tools !== undefined) return tools;
  const probe = `${prefix}${process.pid}-probe`;
  const made = spawnSync('ip', ['netns', 'add', probe], { encoding: 'utf8' });
  if (made.status !== 0) return `no network namespaces here: ${made.stderr.trim()}`;
  spawnSync('ip', ['netns', 'del', probe]);
  return undefined;
}

/** {@link skipFor} without a lab, or the programs that are run in it. */
export function skipWithoutLab(...programs: string[]): string | false {
  return skipFor(labAvailable(...programs));
}

/** Runs a command to its end; its standard output, or an Error with what it wrote. */
export function run(command: string, ...args: string[]): string {
  const result = spawnSync(command, args, { encoding: 'utf8', maxBuffer: 1 << 28 });
  if (result.error !== undefined) throw result.error;
  if (result.status !== 0)
    throw new Error(
      `${command} ${args.join(' ')}: exit ${result.status ?? result.signal ?? '?'}: ${result.stdout}${result.stderr}`,
    );
  return result.stdout;
}

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code !== 'ESRCH';
  }
}

// Links go first: an open socket can keep a namespace, and with it the interfaces, alive after its name is gone.
const REMOVE = `for ns in "$@"; do
  pids=$(ip netns pids "$ns" 2>/dev/null) && [ -n "$pids" ] && kill -KILL $pids 2>/dev/null
  for link in $(ip -n "$ns" -o link show type veth 2>/dev/null | cut -d: -f2 | cut -d@ -f1); do
    ip -n "$ns" link del "$link" 2>/dev/null
  done
  ip netns del "$ns" 2>/dev/null
done; true`;

function remove(names: string[]): void {
  if (names.length > 0) spawnSync('sh', ['-c', REMOVE, 'remove', ...names], { stdio: 'ignore' });
}

/** Removes namespaces whose process is gone. */
export function sweep(): void {
  let names: string[];
  try {
    names = readdirSync(NETNS_DIRECTORY);
  } catch {
    return; // nobody has made a namespace yet
  }
  remove(
    names.filter((name) => {
      const owner = new RegExp(`^${prefix}(\\d+)-`).exec(name);
      return owner !== null && !alive(Number(owner[1]));
    }),
  );
}

/** One interface as a Lab makes it. */
export interface EndOptions {
  name: string;
  /** Addresses with their prefix length, `10.0.0.1/24` or `fd00::1/64`. */
  addresses?: string[];
  /** MAC address; the kernel picks one if absent. */
  mac?: string;
}

export interface VethOptions {
  /** Bytes of L3 payload; 1500 by default. */
  mtu?: number;
  /** Queues each way at either end; 1 by default. */
  queues?: number;
  /** Applied to both ends by `ethtool -K`: `{ tx: false, tso: false }`. */
  offloads?: Record<string, boolean>;
}

export class Namespace {
  constructor(
    readonly name: string,
    private readonly children: Set<ChildProcess>,
  ) {}

  /** Runs a command inside to its end; its standard output. Throws with what the command said. */
  run(command: string, ...args: string[]): string {
    return run('ip', 'netns', 'exec', this.name, command, ...args);
  }

  /** Starts a command inside; killed when the lab closes. */
  spawn(command: string, args: string[], options: SpawnOptions = {}): ChildProcess {
    const child = spawn('ip', ['netns', 'exec', this.name, command, ...args], options);
    this.children.add(child);
    child.once('exit', () => this.children.delete(child));
    return child;
  }

  /** `ip -n NAME …` */
  ip(...args: string[]): string {
    return run('ip', '-n', this.name, ...args);
  }

  sysctl(key: string, value: string | number): void {
    this.run('sysctl', '-qw', `${key}=${value}`);
  }

  offloads(link: string, settings: Record<string, boolean>): void {
    const words = Object.entries(settings).flatMap(([key, on]) => [key, on ? 'on' : 'off']);
    this.run('ethtool', '-K', link, ...words);
  }

  /** The IDs of programs attached to an interface by XDP; empty when there are none. */
  xdpPrograms(link: string): number[] {
    const [shown] = JSON.parse(this.ip('-j', 'link', 'show', link)) as [
      { xdp?: { prog?: { id: number }; attached?: { prog: { id: number } }[] } },
    ];
    // `ip` names a lone program twice.
    const programs = [shown.xdp?.prog, ...(shown.xdp?.attached ?? []).map((one) => one.prog)];
    return [...new Set(programs.flatMap((program) => program?.id ?? []))];
  }

  /** How many hold the interface promiscuous (0: it is not). */
  promiscuity(link: string): number {
    const [shown] = JSON.parse(this.ip('-j', '-d', 'link', 'show', link)) as [{ promiscuity: number }];
    return shown.promiscuity;
  }
}

/** Namespaces and veth pairs of one test. Close it in `after`; should the process die first, a watcher closes it. */
export class Lab {
  private static made = 0;
  private readonly names: string[] = [];
  private readonly children = new Set<ChildProcess>();
  private readonly watcher: ChildProcess;
  private readonly tag = `${prefix}${process.pid}-${Lab.made++}-`;

  constructor() {
    sweep();
    // It outlives us by reading a pipe that only we hold: when it ends, whatever we were killed by, it cleans up.
    this.watcher = spawn(
      'sh',
      [
        '-c',
        `trap '' INT TERM HUP; cat; set -- $(ls ${NETNS_DIRECTORY} | grep "^$1"); ${REMOVE}`,
        'lab-watcher',
        this.tag,
      ],
      { detached: true, stdio: ['pipe', 'ignore', 'ignore'] },
    );
    this.watcher.unref();
    (this.watcher.stdin as unknown as { unref(): void }).unref();
  }

  /** A namespace with loopback up. Without IPv6 unless asked, so that a capture holds only what the test sent. */
  namespace(label: string, options: { ipv6?: boolean } = {}): Namespace {
    const name = this.tag + label;
    run('ip', 'netns', 'add', name);
    this.names.push(name);
    const ns = new Namespace(name, this.children);
    if (options.ipv6 === true) {
      // Addresses are usable at once: nobody else is there to be asked.
      for (const scope of ['all', 'default']) ns.sysctl(`net.ipv6.conf.${scope}.accept_dad`, 0);
    } else {
      for (const scope of ['all', 'default']) ns.sysctl(`net.ipv6.conf.${scope}.disable_ipv6`, 1);
    }
    ns.ip('link', 'set', 'lo', 'up');
    return ns;
  }

  /** A veth pair with one end in each namespace, both up. */
  veth(at: Namespace, a: EndOptions, bt: Namespace, b: EndOptions, options: VethOptions = {}): void {
    const queues = String(options.queues ?? 1);
    const size = ['mtu', String(options.mtu ?? 1500), 'numrxqueues', queues, 'numtxqueues', queues];
    const mac = (end: EndOptions) => (end.mac === undefined ? [] : ['address', end.mac]);
    at.ip(
      ...['link', 'add', a.name, ...mac(a), ...size, 'type', 'veth'],
      ...['peer', 'name', b.name, 'netns', bt.name, ...mac(b), ...size],
    );
    for (const [ns, end] of [[at, a] as const, [bt, b] as const]) {
      if (options.offloads !== undefined) ns.offloads(end.name, options.offloads);
      for (const address of end.addresses ?? []) ns.ip('addr', 'add', address, 'dev', end.name);
    }
    at.ip('link', 'set', a.name, 'up');
    bt.ip('link', 'set', b.name, 'up');
  }

  /** Kills what was started inside and removes every namespace and link. */
  close(): void {
    for (const child of this.children) child.kill('SIGKILL');
    remove(this.names.splice(0));
    this.watcher.stdin?.destroy();
  }
}
