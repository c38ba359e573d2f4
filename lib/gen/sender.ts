import { BYTES, COUNTERS, FRAMES, SLOTS, TX_FULL } from '../forward/counters.js';
import { UsageError } from '../text/errors.js';
import type { Port } from '../ports/port.js';
import type { Ring } from '../rings/ring.js';
import { emitterFor, type Emit } from './emit.js';
import type { Flow } from './headers.js';
import { Pacer } from './pacer.js';
import { SpanClock } from './span.js';
import type { Sent } from './gen-report.js';
import type { Templates } from './templates.js';
import { refusedBy, unsentBy } from '../forward/unsent.js';

/** Where frames to send come from: made up, or read from a capture. */
export interface Source {
  /** Puts what is due at time `t`, at most `most` frames, into the tx rings and syncs. Returns how many. */
  send(t: number, most: number): number;
  /** Frames put into the rings so far. */
  readonly frames: number;
  /** The most that one send() is good for. */
  readonly burst: number;
  /** No frame will come any more. */
  readonly ended: boolean;
  /** ns from `t` until the next frame is due; 0 or less: it is. */
  wait(t: number): number;
  report(): Sent;
  readonly problem?: string | undefined;
  /** Lets files go. */
  close?(): void;
}

/** Time between two syncs while nothing is sent, ns: what was sent must leave, and a sync may cost a system call. */
const IDLE_SYNC_NS = 20_000;

interface SenderOptions {
  readonly flow: Flow;
  readonly templates: Templates;
  /** Frames put into the rings at once, and frames it may be behind its schedule. */
  readonly burst: number;
  /** Frames a second; Infinity: as fast as possible. */
  readonly rate: number;
  /** Stream number of the first ring; the others follow. */
  readonly stream: number;
}

/** Sends made-up frames, paced, over all rings it is given in turn. */
export class Sender implements Source {
  readonly ended = false;
  readonly pacer: Pacer;
  readonly #counters = new Float64Array(COUNTERS);
  readonly #emit: readonly Emit[];
  readonly #span = new SpanClock();
  #turn = 0;
  #synced = 0;

  constructor(
    readonly port: Port,
    rings: readonly Ring[],
    { flow, templates, burst, rate, stream }: SenderOptions,
  ) {
    checkRings(port, rings, templates);
    this.pacer = new Pacer(rate, burst);
    this.#emit = rings.map((ring, k) => emitterFor(ring, flow, templates, (stream + k) & 0xffff, this.#counters));
  }

  get frames(): number {
    return this.#counters[FRAMES];
  }
  get burst(): number {
    return this.pacer.bound;
  }

  send(t: number, most: number): number {
    const { pacer, port } = this;
    const emit = this.#emit;
    // Asked for nothing, as while the last answers to a ping are awaited, it is not behind its schedule either.
    const due = most > 0 ? Math.min(pacer.due(t), most) : 0;
    let sent = 0;
    if (due > 0) {
      const high = Math.floor(t / 0x1_0000_0000);
      const low = t - high * 0x1_0000_0000;
      this.#turn = this.#turn + 1 < emit.length ? this.#turn + 1 : 0;
      for (let k = 0; k < emit.length && sent < due; k++)
        sent += emit[(this.#turn + k) % emit.length](due - sent, high, low);
      if (sent < due) this.#counters[TX_FULL]++;
    }
    if (sent > 0) {
      pacer.left(sent, t);
      this.#span.moved(sent, t);
    }
    // Also when the rings are full: it is the sync that gives slots back.
    if (due > 0 || t - this.#synced >= IDLE_SYNC_NS) {
      port.txsync();
      this.#synced = t;
    }
    return sent;
  }

  wait(t: number): number {
    return this.pacer.wait(t);
  }

  report(): Sent {
    return { ...sentOf(this.#counters, this.port), span: this.#span.span, ...this.pacer.report() };
  }
}

/** What has left of what was put into the rings. */
export function sentOf(
  counters: Float64Array,
  port: Port,
): Pick<Sent, 'frames' | 'bytes' | 'unsent' | 'refused' | 'txFull'> {
  const refused = refusedBy({ port, tx: port.tx });
  const unsent = unsentBy({ port, tx: port.tx }, counters[SLOTS]);
  return {
    frames: counters[FRAMES] - unsent.frames - refused.frames,
    bytes: counters[BYTES] - unsent.bytes - refused.bytes,
    unsent: unsent.frames,
    refused: refused.frames,
    txFull: counters[TX_FULL],
  };
}

function checkRings(port: Port, rings: readonly Ring[], { headerWords, lengths }: Templates): void {
  const longest = Math.max(...lengths);
  for (const { bufSize, numSlots } of rings) {
    if (bufSize < 4 * (headerWords + 4))
      throw new UsageError(`${port.name}: buffers of ${bufSize} bytes do not hold the headers; ask for larger ones`);
    const slots = Math.ceil(longest / bufSize);
    if (slots > Math.min(64, numSlots - 1))
      throw new UsageError(
        `${port.name}: a frame of ${longest + 4} bytes takes ${slots} of its ${bufSize}-byte buffers; ` +
          `at most ${Math.min(64, numSlots - 1)} can make one frame: write a smaller -l`,
      );
  }
}
