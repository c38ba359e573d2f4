import { native } from './native.js';

/** linux/perf_event.h. */
const PERF_TYPE_HARDWARE = 0;
const PERF_COUNT_HW_CPU_CYCLES = 0;

/** Codes of perf_event_open(2) for a counter that this machine, this kernel or this user does not have. */
const NO_COUNTER = new Set(['ENOENT', 'ENOSYS', 'ENODEV', 'EOPNOTSUPP', 'EACCES', 'EPERM', 'EINVAL', 'EBUSY']);

/** A counter of perf_event_open(2): its type and which of them. */
export interface PerfEvent {
  type: number;
  config: number;
}

const CYCLES: PerfEvent = { type: PERF_TYPE_HARDWARE, config: PERF_COUNT_HW_CPU_CYCLES };

/** What the calling thread has cost since this was made, as of the latest read(). */
export class ThreadUsage {
  /** CPU time, ns (getrusage, RUSAGE_THREAD). */
  userNs = 0;
  systemNs = 0;
  /**
   * Cycles of the core, user and kernel; NaN where no counter can be read: in most virtual machines, on FreeBSD, and
   * for ordinary users while kernel.perf_event_paranoid is above 1.
   */
  cycles = NaN;
  readonly #usage = new Float64Array(4);
  readonly #user0: number;
  readonly #system0: number;
  #counter: number | undefined;

  /** @param event what is counted as cycles */
  constructor(event = CYCLES) {
    this.#counter = openCounter(event);
    native.threadUsage(this.#usage);
    [this.#user0, this.#system0] = this.#usage;
    this.read();
  }

  read(): void {
    const usage = this.#usage;
    native.threadUsage(usage);
    this.userNs = usage[0] - this.#user0;
    this.systemNs = usage[1] - this.#system0;
    if (this.#counter !== undefined) this.cycles = native.perfRead(this.#counter);
  }

  close(): void {
    if (this.#counter !== undefined) native.perfClose(this.#counter);
    this.#counter = undefined;
  }
}

function openCounter({ type, config }: PerfEvent): number | undefined {
  try {
    return native.perfOpen(type, config);
  } catch (error) {
    if (NO_COUNTER.has((error as NodeJS.ErrnoException).code ?? '')) return undefined;
    throw error;
  }
}
