import type { FrameSize } from '../../text/units.js';
import type { GenReport } from '../../gen/gen-report.js';
import type { GenEnded } from '../../gen/job.js';
import { Thread, type Running } from '../../threads/thread.js';
import { parsePortSpec } from '../../names/portspec.js';
import type { PortInfo } from '../../ports/port-info.js';
import type { WaitMode } from '../../forward/wait.js';

/** What an end is made of. */
export interface EndJob {
  name: string;
  /** Whether a sink to which nothing comes spins or sleeps. */
  wait: WaitMode;
}

/** One run: `send` ends by itself, `receive` when it is stopped. */
export type EndRun =
  | { kind: 'send'; size: FrameSize; rate: number; frames: number; seconds: number; stream: number }
  | { kind: 'receive'; stream: number };

export type RunningEnd = Running<GenReport, GenEnded>;

/** A generator or sink in a thread of its own, whose port stays open from run to run. */
export type End = Thread<PortInfo, EndRun, GenReport, GenEnded>;

/** Opens the port and waits for its link. @throws UsageError, PortError */
export async function openEnd(name: string, wait: WaitMode): Promise<End> {
  parsePortSpec(name);
  const job: EndJob = { name, wait };
  const end: End = new Thread({
    url: new URL('./end-worker.js', import.meta.url),
    name: 'bench end',
    job,
    last: ({ report }) => report,
    ports: (port) => [port],
  });
  await end.opened;
  return end;
}
