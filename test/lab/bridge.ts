// A bridge inside the test's own process, so that a test can look at its rings; the tool is tested from outside.
import assert from 'node:assert/strict';
import { COUNTERS, FRAMES, notForwarded } from '../../lib/forward/counters.js';
import { forwarder, type Forward } from '../support/forwarder.js';
import { openPorts } from '../../lib/ports/open.js';
import type { Port } from '../../lib/ports/port.js';
import { auditBuffers } from '../support/xdp-audit.js';

const BURST = 256;
/** Turns between two visits of the event loop, where the test itself runs. */
const TURNS = 100;

export class InProcessBridge {
  readonly ports: Port[];
  readonly #counters = [new Float64Array(COUNTERS), new Float64Array(COUNTERS)];
  readonly #forward: Forward[];
  #running: Promise<void> | undefined;
  #stop = false;

  /** Opens both ports and starts forwarding, ring i to ring i. */
  constructor(a: string, b: string) {
    this.ports = openPorts([a, b]);
    const [first, second] = this.ports as [Port, Port];
    this.#forward = first.rx.flatMap((rx, i) => [
      forwarder(rx, second.tx[i], this.#counters[0]),
      forwarder(second.rx[i], first.tx[i], this.#counters[1]),
    ]);
    this.start();
  }

  start(): void {
    this.#stop = false;
    this.#running = this.#loop();
  }

  async #loop(): Promise<void> {
    while (!this.#stop) {
      for (let turn = 0; turn < TURNS; turn++) this.#turn();
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  #turn(): void {
    for (const port of this.ports) port.rxsync();
    for (const forward of this.#forward) forward(BURST);
    for (const port of this.ports) port.txsync();
  }

  /** Frames forwarded from the first port to the second, and back. */
  get forwarded(): [number, number] {
    return [this.#counters[0][FRAMES], this.#counters[1][FRAMES]];
  }

  /** Stops forwarding, leaving the ports open. Rejects with what ended the loop. */
  async pause(): Promise<void> {
    this.#stop = true;
    await this.#running;
  }

  /** Stops, proves that every buffer has exactly one owner and that no frame was refused, and closes the ports. */
  async close(): Promise<void> {
    try {
      await this.pause();
      for (let turn = 0; turn < TURNS; turn++) this.#turn();
      const audit = auditBuffers(this.ports);
      assert.deepEqual(audit.twice, [], 'buffers owned twice');
      assert.equal(audit.lost, 0, `buffers lost: ${JSON.stringify(audit)}`);
      for (const counters of this.#counters) assert.equal(notForwarded(counters), 0);
      for (const port of this.ports) {
        const { corrupt, reinits, tx_refused } = port.stats();
        assert.deepEqual({ corrupt, reinits, tx_refused }, { corrupt: 0, reinits: 0, tx_refused: 0 });
      }
    } finally {
      for (const port of this.ports) port.close();
    }
  }
}
