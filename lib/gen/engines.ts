import type { EndReason } from '../threads/loop.js';
import type { Port } from '../ports/port.js';
import type { Reflector } from './reflector.js';
import type { Quota } from './quota.js';
import { slotsWaiting, type Receiver } from './receiver.js';
import type { GenReport } from './gen-report.js';
import type { Sender, Source } from './sender.js';

/** What one mode of the generator does in a turn. */
export interface Engine {
  /** One turn at CLOCK_MONOTONIC `t`, ns. Returns the frames moved. */
  turn(t: number): number;
  /** Why the run is over; undefined: it is not. */
  over(t: number): EndReason | undefined;
  /** ns from `t` that the thread may sleep after a turn that moved nothing; 0 where only frames from outside count. */
  wait(t: number): number;
  report(): Partial<GenReport>;
  /** Lets files go. */
  close?(): void;
}

/** `-f tx` */
export class TxEngine implements Engine {
  constructor(
    readonly source: Source,
    readonly quota: Quota,
  ) {}

  turn(t: number): number {
    const { source, quota } = this;
    // Nothing is claimed while nothing is due, and so nothing is allocated; the source still syncs.
    const granted = source.wait(t) > 0 ? 0 : quota.claim(source.burst);
    const sent = source.send(t, granted);
    quota.settle(granted, sent);
    return sent;
  }
  over(): EndReason | undefined {
    if (this.quota.spent) return 'frames';
    return this.source.ended ? 'ended' : undefined;
  }
  wait(t: number): number {
    return this.source.wait(t);
  }
  report(): Partial<GenReport> {
    const { problem } = this.source;
    return { sent: this.source.report(), ...(problem !== undefined && { problem }) };
  }
  close(): void {
    this.source.close?.();
  }
}

/** `-f rx` and `-f pong`: something is done with the frames that arrive. */
class ArrivalEngine implements Engine {
  constructor(
    readonly port: Port,
    /** Takes what has arrived, as much as the quota grants. */
    readonly take: (quota: Quota) => number,
    readonly told: () => Partial<GenReport>,
    readonly quota: Quota,
  ) {}

  turn(): number {
    return this.take(this.quota);
  }
  over(): EndReason | undefined {
    if (this.quota.spent) return 'frames';
    return this.port.ended() && slotsWaiting(this.port) === 0 ? 'ended' : undefined;
  }
  wait(): number {
    return 0;
  }
  report(): Partial<GenReport> {
    const problem = this.port.problem?.();
    return { ...this.told(), ...(problem !== undefined && { problem }) };
  }
}

/** `-f rx` */
export function rxEngine(port: Port, receiver: Receiver, quota: Quota): Engine {
  return new ArrivalEngine(
    port,
    (granted) => receiver.receive(granted),
    () => ({ received: receiver.report() }),
    quota,
  );
}

/** `-f pong` */
export function pongEngine(port: Port, reflector: Reflector, quota: Quota): Engine {
  return new ArrivalEngine(
    port,
    (granted) => reflector.turn(granted),
    () => ({ reflected: reflector.report() }),
    quota,
  );
}

/** How long a reply is waited for, ns. */
const REPLY_NS = 1e9;

/** `-f ping`: at the rate asked for, or each as soon as the one before was answered. One thread, so it counts by itself. */
export class PingEngine implements Engine {
  #latest = 0;

  constructor(
    readonly sender: Sender,
    readonly receiver: Receiver,
    readonly most: number,
  ) {}

  turn(t: number): number {
    const { sender, receiver } = this;
    const received = receiver.receive();
    let most = this.most - sender.frames;
    if (sender.pacer.gap === 0) {
      const answered = receiver.tagged >= sender.frames || t - this.#latest >= REPLY_NS;
      most = Math.min(most, answered ? 1 : 0);
    }
    const sent = sender.send(t, most);
    if (sent > 0) this.#latest = t;
    return received + sent;
  }
  over(t: number): EndReason | undefined {
    const { sender, receiver } = this;
    if (sender.frames < this.most) return undefined;
    return receiver.tagged >= sender.frames || t - this.#latest >= REPLY_NS ? 'frames' : undefined;
  }
  wait(): number {
    return 0;
  }
  report(): Partial<GenReport> {
    return { sent: this.sender.report(), received: this.receiver.report() };
  }
}
