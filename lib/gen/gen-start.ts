import { RunError, UsageError } from '../text/errors.js';
import { startThread, type RunningThread } from '../threads/thread.js';
import { mergeReports } from './merge.js';
import { quotaFor } from './quota.js';
import type { GenReport } from './gen-report.js';
import { StartLine } from './start-line.js';
import { partOf, shareOut } from './share-out.js';
import type { GenEnded, GenJob, GenOpened, GenSettings } from './job.js';

type RunningGenerator = RunningThread<GenOpened, GenReport, GenEnded>;

/**
 * Runs the generator in one or several worker threads, each with rings of its own.
 * @throws UsageError when the port name says nothing, or the port cannot be shared out among so many threads
 * @throws PortError when a port that is to be shared out cannot be looked at
 */
export function startGenerator(
  settings: GenSettings,
  onSay: (sentence: string) => void = () => undefined,
): RunningGenerator {
  const { name, mode, threads, promisc } = settings;
  if (settings.rings > 0 && settings.rings < threads)
    throw new UsageError(
      `${threads} threads cannot send on ${settings.rings} ring${settings.rings === 1 ? '' : 's'}: each needs one of its own; write -p ${threads} or more, or fewer threads with -c`,
    );
  const shares = shareOut(name, threads, mode !== 'tx', { promisc });
  shares.says.forEach(onSay);
  const quota = quotaFor(settings.frames || Infinity);
  const start = new StartLine(threads).shared;
  const said = new Set<string>();
  // Threads of one port find the same things worth saying.
  const sayOnce = (sentence: string): void => {
    if (threads > 1 && said.has(sentence)) return;
    said.add(sentence);
    onSay(sentence);
  };
  const { rings, rate, cpu, stream } = settings;
  const parts = shares.parts.map(({ spec, firstRing }, k) => {
    const job: GenJob = {
      ...settings,
      port: spec,
      options: shares.options,
      quota,
      start,
      rings: partOf(rings, threads, k),
      rate: rate === undefined ? undefined : rate / threads,
      cpu: cpu < 0 ? cpu : cpu + k,
      stream: (stream + firstRing) & 0xffff,
    };
    return startThread<GenOpened, GenReport, GenEnded>({
      url: new URL('./gen-worker.js', import.meta.url),
      name: 'pkt-gen',
      job,
      last: ({ report }) => report,
      ports: ({ port }) => [port],
      onSay: sayOnce,
    });
  });
  return together(parts, name, () => {
    shares.close();
  });
}

/** Several threads as one. When one of them fails, the others are stopped. */
function together(parts: readonly RunningGenerator[], name: string, close: () => void): RunningGenerator {
  const stop = (): void => {
    for (const part of parts) part.stop();
  };
  const settled = parts.map(async (part): Promise<GenEnded | Error> => {
    try {
      return await part.ended;
    } catch (error) {
      stop();
      return error as Error;
    }
  });
  const ended = Promise.all(settled).then((results) => {
    close();
    const failed = results.find((result) => result instanceof Error);
    const counted = results.flatMap((result) => (result instanceof Error ? endedOf(result) : result));
    if (failed === undefined) {
      const [{ reason }] = counted;
      return { reason, report: mergeReports(counted.map(({ report }) => report)) };
    }
    if (!(failed instanceof RunError)) throw failed;
    const report = mergeReports(counted.map(({ report: one }) => one));
    const options = failed.code === undefined ? {} : { code: failed.code };
    throw new RunError<GenEnded>(failed.message, name, { reason: 'failed', report }, options);
  });
  return {
    opened: quiet(Promise.all(parts.map((part) => part.opened)).then(openedTogether)),
    running: quiet(Promise.all(parts.map((part) => part.running)).then(() => undefined)),
    ended: quiet(ended),
    report: async () => mergeReports(await Promise.all(parts.map((part) => part.report()))),
    stop,
  };
}

/** A promise that nobody need listen to. */
function quiet<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}

function endedOf(error: Error): GenEnded[] {
  return error instanceof RunError ? [(error as RunError<GenEnded>).ended] : [];
}

/** The parts of a port as the whole. */
function openedTogether(parts: readonly GenOpened[]): GenOpened {
  const [first] = parts;
  const ports = parts.map(({ port }) => port);
  const sum = (key: 'txRings' | 'rxRings'): number => ports.reduce((total, port) => total + port[key], 0);
  return {
    ...first,
    port: {
      ...first.port,
      txRings: sum('txRings'),
      rxRings: sum('rxRings'),
      notes: [...new Set(ports.flatMap(({ notes }) => notes))],
    },
  };
}
