import { setTimeout as sleep } from 'node:timers/promises';
import { busyNs, CYCLES, LATEST_NS, SYSTEM_NS, USER_NS, WAITED_NS } from '../../threads/control.js';
import { lineRate, rateText, type FrameSize } from '../../text/units.js';
import { startBridge, type RunningBridge } from '../../forward/start.js';
import { PortError } from '../../text/errors.js';
import { threadTimes, type Bench, type BenchLoad, type BenchTrial } from './bench.js';
import { coreShares, readCores } from './cpu.js';
import { openEnd, type End, type RunningEnd } from './end.js';
import { DEFAULT_RATE, type Setup, waitCell } from './setup.js';
import { Interrupted } from './trial.js';

/** Frames still on the way are waited for until none has come for so long, and for two seconds at most (RFC 2544 section 23). */
const QUIET_MS = 200;
const LONGEST_MS = 2000;
/** Single frames that a device is given to show that it forwards at all. */
const FIRST_FRAMES = 5;
/** How often a sink is asked, ms. */
const ASK_MS = 50;

/** Ports of an outer bench. */
export interface OuterPorts {
  /** The generator's and the sink's own ports. */
  tx: string;
  rx: string;
  /** The ports of the device under test, where that is a bridge in this process; none where it is outside. */
  device: readonly string[];
}

/**
 * A generator and a sink with ports of their own. What is between them is measured: a bridge in this process, or
 * whatever else joins the two. One way. Frames are numbered and followed; those of one trial do not count in another.
 * @throws UsageError, PortError
 */
export async function outerBench(setup: Setup, ports: OuterPorts, signal?: AbortSignal): Promise<Bench> {
  const { tx, rx, device } = ports;
  const { burst, copy, wait, oneWay, cpu } = setup;
  const rate = setup.rate;
  let bridge: RunningBridge | undefined;
  const ends: End[] = [];
  const close = async (): Promise<void> => {
    bridge?.stop();
    await Promise.allSettled([...ends.map((end) => end.close()), bridge?.ended]);
  };
  try {
    const sink = await openEnd(rx, wait);
    ends.push(sink);
    const generator = await openEnd(tx, wait);
    ends.push(generator);
    if (device.length > 0) {
      bridge = startBridge(device, { burst, copy, wait, oneWay, ...(cpu === undefined ? {} : { cpu }) });
      await bridge.running;
    }
    const maxLoad = (size: FrameSize): number => lineRate(rate, size);
    // Frames that a device still holds from another run must not count in this one, either.
    let stream = Math.floor(Math.random() * 0x10000);
    const run = async (load: BenchLoad): Promise<BenchTrial> => {
      stream = (stream + 1) & 0xffff;
      const result = trial({ load: maxLoad(load.size), ...load }, stream, generator, sink, bridge, wait === 'busy');
      // A bridge that ends takes the trial with it: it only ends when it fails.
      const ended = bridge?.ended.then(() => result);
      return Promise.race(ended === undefined ? [result] : [result, ended]);
    };
    await forwards((load) => run({ ...load, ...(signal && { signal }) }), tx, rx);
    return {
      title: [tx, ...(device.length > 0 ? [device.join(' ⇄ ')] : ['device']), rx].join(' → '),
      directions: 1,
      maxLoad,
      cell: (size) => ({
        size,
        tx,
        rx,
        ...(device.length > 0 && {
          a: device[0],
          b: device[1],
          burst,
          ...(oneWay && { oneWay }),
          ...(copy && { copy }),
        }),
        ...(rate === DEFAULT_RATE ? {} : { rate: rateText(rate) }),
        ...waitCell(setup),
      }),
      close,
      run,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/**
 * A device that forwards nothing would only be found out by a search that ends at the lowest load (RFC 2544 section 23
 * begins a trial with frames that do not count, too).
 * @throws PortError
 */
async function forwards(run: (load: BenchLoad) => Promise<BenchTrial>, tx: string, rx: string): Promise<void> {
  for (let n = 0; n < FIRST_FRAMES; n++)
    if ((await run({ size: 64, load: 1000, seconds: 1, frames: 1 })).forwarded > 0) return;
  throw new PortError(
    `none of the first ${FIRST_FRAMES} frames sent at ${tx} came to ${rx}; ` +
      'see that the device between them is running, joins the two, and forwards broadcast frames',
    rx,
  );
}

async function trial(
  { size, load, seconds, frames, signal }: BenchLoad & { load: number },
  stream: number,
  generator: End,
  sink: End,
  bridge: RunningBridge | undefined,
  spins: boolean,
): Promise<BenchTrial> {
  const receiving = sink.start({ kind: 'receive', stream });
  let sending: RunningEnd | undefined;
  const stop = (): void => sending?.stop();
  const stopped = (): boolean => signal?.aborted === true;
  signal?.addEventListener('abort', stop, { once: true });
  try {
    await receiving.running;
    if (stopped()) throw new Interrupted();
    const cores = readCores();
    const run = Float64Array.from(bridge?.run ?? []);
    const most = frames ?? Math.round(load * seconds);
    // A burst has all the time it needs; a trial that falls behind its schedule ends in time, with fewer frames offered.
    const limit = frames === undefined ? seconds : 2 * seconds + 1;
    sending = generator.start({ kind: 'send', size, rate: load, frames: most, seconds: limit, stream });
    const over = sending.ended;
    // A sink only ends by itself when it fails.
    const { sent, ns } = (await Promise.race([over, receiving.ended.then(() => over)])).report;
    await settled(receiving, sent?.frames ?? 0);
    const after = bridge?.run;
    const coresEnd = readCores();
    receiving.stop();
    const { received } = (await receiving.ended).report;
    if (sent === undefined || received === undefined) throw new Error('a generator or sink without counts');
    const early = stopped();
    if (early && sent.frames === 0) throw new Interrupted();
    const forwarded = received.tagged - received.duplicates;
    const length = ns / 1e9;
    const due = sent.frames + sent.givenUp;
    const during = run.map((before, position) => (after === undefined ? NaN : after[position] - before));
    return {
      seconds: length,
      // A burst is sent whole however long that takes: the schedule it was held against says how slowly.
      due: early ? due : frames === undefined ? most : Math.max(most, due),
      offered: sent.frames,
      forwarded,
      lost: Math.max(0, sent.frames - forwarded),
      rate: forwarded / length,
      duplicates: received.duplicates,
      reordered: received.reordered,
      corrupt: 0,
      // More frames than were sent: somebody else uses this stream's number.
      unexplained: Math.max(0, forwarded - sent.frames),
      cores: coreShares(cores, coresEnd),
      ...(bridge === undefined
        ? {}
        : {
            threadNs: during[USER_NS] + during[SYSTEM_NS],
            ...(Number.isFinite(during[CYCLES]) && { threadCycles: during[CYCLES] }),
            ...threadTimes(spins ? (busyNs(during) ?? NaN) : NaN, during[WAITED_NS], during[LATEST_NS]),
          }),
      latency: { histogram: received.latency, every: 1, unmatched: received.otherClock + received.old },
    };
  } finally {
    signal?.removeEventListener('abort', stop);
    sending?.stop();
    receiving.stop();
  }
}

/** Until all of `expected` frames have come, or no more do. */
async function settled(sink: RunningEnd, expected: number): Promise<void> {
  let seen = -1;
  let quiet = 0;
  for (let waited = 0; waited < LONGEST_MS && quiet < QUIET_MS; waited += ASK_MS) {
    const { received } = await sink.report();
    const tagged = received?.tagged ?? 0;
    if (tagged - (received?.duplicates ?? 0) >= expected) return;
    quiet = tagged === seen ? quiet + ASK_MS : 0;
    seen = tagged;
    await sleep(ASK_MS);
  }
}
