/**
 * Forwarders between two veth interfaces, side by side in one topology: this bridge, the kernel's, DPDK's testpmd.
 *
 *     far end —veth— forwarder —veth— far end
 *
 * A fixed number of frames circulates: each far end sends what it gets straight back (XDP_TX), so the offered load is
 * whatever the forwarder returns and no sender stands in its way. Everything the forwarder causes runs on one CPU (its
 * thread, and the NAPI threads of its two interfaces), the far ends on another. CPU time is that of those threads, so
 * what else runs on the machine does not show in it; forwarded frames per second suffer from it all the same.
 */
import { spawnSync, type ChildProcess } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { busyNs, LATEST_NS, SYSTEM_NS, USER_NS } from '../../lib/threads/control.js';
import { native } from '../../lib/shim/native.js';
import { startBridge } from '../../lib/forward/start.js';
import { Lab, labAvailable, type Namespace } from '../lab/lab.js';
import { passProgram, reflectProgram } from '../lab/programs.js';
import { says, tcpreplay } from '../lab/traffic.js';
import { Report, spread } from './harness.js';

const FAR_CPU = 0;
const FORWARDER_CPU = 1;
/** In flight at any time. veth queues 256 frames; beyond that it drops them, and the circle would run dry. */
const CIRCULATING = 192;
const ROUNDS = 3;
const SECONDS = 2;
/** Bytes on the command line and in tables include the FCS. */
const SIZES = [64, 1518];

/** Interface names of their own: NAPI threads are found by them. */
const tag = process.pid.toString(36).slice(-3);
const INNER = [`x${tag}1`, `x${tag}2`] as const;
const OUTER = [`y${tag}1`, `y${tag}2`] as const;

interface Forwarder {
  /** CPU time, ns, that it has used apart from the NAPI threads. */
  cpu(): number;
  /** Sampled ns of its turns, and of those that moved frames; [0, 0] where that is not known. */
  sampled(): [number, number];
  stop(): Promise<void>;
}

interface Contender {
  name: string;
  start(net: Net): Promise<Forwarder>;
}

/** The topology, made anew for every measurement. */
class Net {
  readonly lab = new Lab();
  readonly middle: Namespace;
  readonly far: Namespace;
  readonly #links: number[] = [];

  constructor() {
    this.middle = this.lab.namespace('m');
    this.far = this.lab.namespace('f');
    for (const i of [0, 1]) {
      this.lab.veth(this.middle, { name: INNER[i] }, this.far, { name: OUTER[i] });
      for (const [ns, link] of [[this.middle, INNER[i]] as const, [this.far, OUTER[i]] as const]) {
        // Receive by NAPI, which veth does only with GRO or XDP, and in threads that can be put on a CPU.
        ns.offloads(link, { gro: true });
        ns.run('sh', '-c', `echo 1 > /sys/class/net/${link}/threaded`);
      }
      this.#attach(this.far, OUTER[i], reflectProgram());
    }
  }

  #attach(ns: Namespace, link: string, instructions: Int32Array): void {
    const { index } = native.netdevInfo(link, ns.name);
    const program = native.bpfXdpProgram('bench', instructions, 0);
    this.#links.push(native.bpfXdpLink('bench', program.handle, index, 0, ns.name).handle);
    native.bpfClose(program.handle);
  }

  /** For forwarders without XDP: veth delivers what its peer reflects only where some XDP program is attached. */
  pass(): void {
    for (const link of INNER) this.#attach(this.middle, link, passProgram());
  }

  /** For busy polling: whoever polls keeps an interface's interrupts, here its NAPI thread, off (Linux' AF_XDP guide). */
  deferInterrupts(): void {
    for (const link of INNER)
      this.middle.run(
        'sh',
        '-c',
        `cd /sys/class/net/${link}; echo 2 > napi_defer_hard_irqs; echo 200000 > gro_flush_timeout`,
      );
  }

  /** Puts every NAPI thread on its side's CPU; those of the forwarder's interfaces. */
  pin(): number[] {
    const threads = (links: readonly string[]) =>
      readdirSync('/proc')
        .filter((pid) => /^\d+$/.test(pid) && links.some((link) => comm(pid).startsWith(`napi/${link}-`)))
        .map(Number);
    for (const [links, cpu] of [[OUTER, FAR_CPU] as const, [INNER, FORWARDER_CPU] as const])
      for (const pid of threads(links)) spawnSync('taskset', ['-cp', String(cpu), String(pid)]);
    return threads(INNER);
  }

  /** Sends the frames that circulate from now on. `size` with FCS. */
  async inject(size: number): Promise<void> {
    const file = join(tmpdir(), `nmb-bench-${process.pid}.pcap`);
    const words = (...values: number[]) => Buffer.from(Uint32Array.from(values).buffer);
    const frame = Buffer.alloc(size - 4);
    frame.set([2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x88, 0xb5]);
    const record = [words(0, 0, frame.length, frame.length), frame];
    const frames = Array.from({ length: CIRCULATING }, () => record).flat();
    writeFileSync(file, Buffer.concat([words(0xa1b2c3d4, 0x0004_0002, 0, 0, 262144, 1), ...frames]));
    await tcpreplay(this.far, OUTER[0], file, 20_000);
    rmSync(file);
  }

  /** Frames the forwarder has sent. */
  forwarded(): number {
    return INNER.reduce((sum, link) => {
      const [{ stats64 }] = JSON.parse(this.middle.ip('-j', '-s', 'link', 'show', link)) as [
        { stats64: { tx: { packets: number } } },
      ];
      return sum + stats64.tx.packets;
    }, 0);
  }

  close(): void {
    for (const link of this.#links) native.bpfClose(link);
    this.lab.close();
  }
}

function comm(pid: string): string {
  try {
    return readFileSync(`/proc/${pid}/comm`, 'utf8');
  } catch {
    return ''; // it has ended meanwhile
  }
}

/** ns a thread has run: first word of its schedstat. */
function ran(path: string): number {
  return Number(readFileSync(`${path}/schedstat`, 'utf8').split(' ')[0]);
}

const ours = (name: string, wait: 'busy' | 'poll', options: string): Contender => ({
  name,
  async start(net) {
    if (options.includes('busy-poll')) net.deferInterrupts();
    const ports = INNER.map((link) => `xdp:${link}@netns=${net.middle.name},mode=native${options}`);
    const bridge = startBridge(ports, { wait, cpu: FORWARDER_CPU });
    await bridge.running;
    return {
      cpu: () => bridge.run[USER_NS] + bridge.run[SYSTEM_NS],
      sampled: () => [bridge.run[LATEST_NS], busyNs(bridge.run) ?? 0],
      stop: async () => {
        bridge.stop();
        await bridge.ended;
      },
    };
  },
});

const kernelBridge: Contender = {
  name: "the kernel's bridge",
  start(net) {
    net.pass();
    net.middle.ip('link', 'add', 'br0', 'type', 'bridge');
    for (const [i, link] of INNER.entries()) {
      net.middle.ip('link', 'set', link, 'master', 'br0');
      // The far ends' addresses are known beforehand: nothing is flooded or learnt.
      net.middle.run('bridge', 'link', 'set', 'dev', link, 'learning', 'off');
      net.middle.run('bridge', 'fdb', 'add', `02:00:00:00:00:0${i + 1}`, 'dev', link, 'master', 'static');
    }
    net.middle.ip('link', 'set', 'br0', 'up');
    return Promise.resolve({ cpu: () => 0, sampled: () => [0, 0], stop: () => Promise.resolve() });
  },
};

const testpmd = (driver: 'net_af_xdp' | 'net_af_packet'): Contender => ({
  name: `testpmd ${driver}`,
  async start(net) {
    if (driver === 'net_af_packet') net.pass();
    else net.deferInterrupts(); // its default is to busy-poll, 64 frames a turn
    const devices = INNER.map((link, i) => `--vdev=${driver}${i},iface=${link}`);
    const child: ChildProcess = net.middle.spawn(
      'dpdk-testpmd',
      [
        ...['-l', `${FAR_CPU},${FORWARDER_CPU}`, '--no-pci', '--no-huge', '--no-shconf', '-m', '512', ...devices],
        ...['--', '--forward-mode=io', '--nb-cores=1', '--auto-start', '--total-num-mbufs=16384', '-i'],
      ],
      { stdio: ['pipe', 'pipe', 'pipe'] },
    );
    await says(child, /testpmd> $/);
    const tasks = `/proc/${child.pid!}/task`;
    const worker = readdirSync(tasks).find((tid) => /worker/.test(comm(`${child.pid!}/task/${tid}`)))!;
    return {
      cpu: () => ran(`${tasks}/${worker}`),
      sampled: () => [0, 0],
      stop: async () => {
        child.kill('SIGKILL');
        await new Promise((resolve) => child.once('close', resolve));
      },
    };
  },
});

interface Figures {
  mpps: number;
  /** CPU time of thread and NAPI threads a frame. */
  nsPerFrame: number;
  /** The same without the thread's turns that moved nothing; NaN where they cannot be told apart. */
  usefulNsPerFrame: number;
}

async function measure(contender: Contender, size: number): Promise<Figures> {
  const net = new Net();
  try {
    const forwarder = await contender.start(net);
    const threads = net.pin();
    const look = () => ({
      frames: net.forwarded(),
      thread: forwarder.cpu(),
      napi: threads.reduce((sum, pid) => sum + ran(`/proc/${pid}`), 0),
      sampled: forwarder.sampled(),
      time: performance.now(),
    });
    await net.inject(size);
    await sleep(200);
    const before = look();
    await sleep(SECONDS * 1000);
    const after = look();
    await forwarder.stop();
    const frames = after.frames - before.frames;
    const thread = after.thread - before.thread;
    const napi = after.napi - before.napi;
    const moving = (after.sampled[1] - before.sampled[1]) / (after.sampled[0] - before.sampled[0]);
    return {
      mpps: frames / (after.time - before.time) / 1e3,
      nsPerFrame: (thread + napi) / frames,
      usefulNsPerFrame: (thread * moving + napi) / frames,
    };
  } finally {
    net.close();
  }
}

export async function benchXdp(jsonFile: string | undefined): Promise<void> {
  const reason = labAvailable() ?? (cpus().length < 2 ? 'two CPUs are needed' : undefined);
  if (reason !== undefined) {
    console.log(`\nxdp: not run: ${reason}`);
    return;
  }
  const contenders = [
    ours('bridge', 'busy', ''),
    ours('bridge --wait poll', 'poll', ''),
    ours('bridge @busy-poll=64', 'busy', ',busy-poll=64'),
    kernelBridge,
  ];
  if (spawnSync('dpdk-testpmd', ['--help'], { stdio: 'ignore' }).error === undefined)
    contenders.push(testpmd('net_af_xdp'), testpmd('net_af_packet'));
  for (const size of SIZES) {
    const figures = contenders.map((): Figures[] => []);
    for (let round = 0; round < ROUNDS; round++)
      for (const [i, contender] of contenders.entries()) figures[i].push(await measure(contender, size));
    const rate = new Report(
      `xdp: ${CIRCULATING} frames of ${size} bytes circulating, both directions`,
      'Mpps',
      jsonFile,
    );
    const cost = new Report(`xdp: CPU time of the forwarder a frame of ${size} bytes`, 'ns', jsonFile);
    for (const [i, { name }] of contenders.entries()) {
      rate.add(
        name,
        figures[i].map(({ mpps }) => mpps),
      );
      const useful = spread(figures[i].map(({ usefulNsPerFrame }) => usefulNsPerFrame)).median;
      cost.add(
        name,
        figures[i].map(({ nsPerFrame }) => nsPerFrame),
        Number.isNaN(useful) ? '' : `${useful.toFixed(0)} without turns that moved nothing`,
      );
    }
    rate.print();
    cost.print();
  }
}
