// Frames that a port takes and then does not send are not forwarded: counted with the reason, by every kind of port.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { SLOT_BUF_IDX } from '../../lib/rings/abi.js';
import { Bridge, nicSide } from '../../lib/forward/bridge.js';
import { BYTES, FRAMES, REFUSED, SLOTS, UNSENT, notForwarded } from '../../lib/forward/counters.js';
import { Control } from '../../lib/threads/control.js';
import { PortError } from '../../lib/text/errors.js';
import { TxEngine } from '../../lib/gen/engines.js';
import { runEngine } from '../../lib/gen/gen-loop.js';
import { UNLIMITED } from '../../lib/gen/quota.js';
import { parseEndpoint, parseMacRange } from '../../lib/gen/range.js';
import { Reflector } from '../../lib/gen/reflector.js';
import { Sender } from '../../lib/gen/sender.js';
import { makeTemplates } from '../../lib/gen/templates.js';
import { bridgeUntilOver } from '../../lib/forward/loop.js';
import { now } from '../../lib/shim/native.js';
import { openPort, openPorts } from '../../lib/ports/open.js';
import type { Port } from '../../lib/ports/port.js';
import { Lab, skipWithoutLab } from '../lab/lab.js';

/** Frames that come, of 200 bytes without FCS. */
const FRAMES_IN = 100;
const LENGTH = 200;
const SOURCE = `sim:src@count=${FRAMES_IN},size=${LENGTH + 4},clock=virtual`;
/** One slot in so many names a buffer that is not there when the port comes to send it. */
const EVERY = 7;

/**
 * Makes a port find slots that name no buffer: between forwarding and sending it has them changed, and the buffers put
 * back afterwards. Returns a function that tells how many frames were spoilt.
 */
function spoil(port: Port, slotsPerFrame: number): () => number {
  const txsync = port.txsync.bind(port);
  const [ring] = port.tx;
  let seen = ring.head;
  let slot = 0;
  const spoilt = new Set<number>();
  port.txsync = () => {
    const changed: [number, number][] = [];
    for (; seen !== ring.head; seen = ring.after(seen), slot++) {
      if (slot % EVERY !== 0) continue;
      const word = ring.slotWord(seen) + SLOT_BUF_IDX;
      changed.push([word, ring.i32[word]]);
      ring.i32[word] = 0;
      spoilt.add(Math.floor(slot / slotsPerFrame));
    }
    txsync();
    for (const [word, buffer] of changed) ring.i32[word] = buffer;
  };
  return () => spoilt.size;
}

/** Bridges SOURCE to `to` and says what was counted; `turn` is called after every turn of the bridge. */
function bridge(from: Port, to: Port, spoilt: () => number, turn: () => void = () => undefined): number[] {
  const joined = new Bridge(nicSide(from), nicSide(to), { oneWay: true, burst: 16 });
  let left = false;
  while (!(left && from.ended() && from.rx[0].space === 0)) {
    joined.turn();
    turn();
    joined.countRefused();
    left = joined.flush();
  }
  joined.countUnsent();
  const [counters] = joined.counters;
  assert.equal(counters[FRAMES] + notForwarded(counters), FRAMES_IN);
  assert.ok(spoilt() > 0);
  assert.deepEqual([counters[REFUSED], counters[UNSENT]], [spoilt(), 0]);
  assert.equal(counters[BYTES], LENGTH * counters[FRAMES]);
  return [counters[FRAMES], counters[SLOTS]];
}

/** Sends frames of 200 bytes, as many as the rings take. */
function senderOn(port: Port): Sender {
  const flow = {
    sourceMac: parseMacRange('02:00:00:00:00:01'),
    destinationMac: parseMacRange('02:00:00:00:00:02'),
    vlans: [],
    source: parseEndpoint('198.18.0.1', 1234),
    destination: parseEndpoint('198.19.0.1', 1234),
  };
  const templates = makeTemplates(flow, { sizes: [LENGTH + 4], randomPayload: false, plain: false });
  return new Sender(port, port.tx, { flow, templates, burst: FRAMES_IN, rate: Infinity, stream: 0 });
}

function close(ports: readonly Port[]): void {
  for (const port of ports) port.close();
}

describe('refused by the port', () => {
  const directory = mkdtempSync(join(tmpdir(), 'refused-test-'));
  after(() => {
    rmSync(directory, { recursive: true });
  });

  for (const slots of [1, 2])
    it(`sim, ${slots} slots a frame`, () => {
      const [from, to] = openPorts([`${SOURCE},frags=${slots}`, 'sim:to@count=1,clock=virtual,rate=max']);
      try {
        const spoilt = spoil(to, slots);
        assert.deepEqual(bridge(from, to, spoilt), [to.stats()['sent'], slots * FRAMES_IN]);
        assert.equal(to.stats()['sentBytes'], LENGTH * to.stats()['sent']);
      } finally {
        close([from, to]);
      }
    });

  it('sim, out of where it came from', () => {
    const port = openPort(`${SOURCE},rate=max`);
    try {
      const spoilt = spoil(port, 1);
      assert.deepEqual(bridge(port, port, spoilt), [port.stats()['sent'], FRAMES_IN]);
    } finally {
      port.close();
    }
  });

  for (const slots of [1, 2])
    it(`pipe, ${slots} slots a frame`, () => {
      const name = `pipe:refused-${process.pid}`;
      const [from, to, peer] = openPorts([`${SOURCE},frags=${slots}`, `${name}{1`, `${name}}1`]);
      try {
        const spoilt = spoil(to, slots);
        const [rx] = peer.rx;
        let bytes = 0;
        const counted = bridge(from, to, spoilt, () => {
          peer.rxsync();
          while (rx.space > 0) {
            bytes += rx.len(rx.head);
            rx.advance(1);
          }
        });
        assert.deepEqual(counted, [bytes / LENGTH, slots * FRAMES_IN]);
      } finally {
        close([from, to, peer]);
      }
    });

  it('pcap', () => {
    const path = join(directory, 'out.pcap');
    const [from, to] = openPorts([SOURCE, `pcap:@out=${path}`]);
    try {
      const [forwarded] = bridge(from, to, spoil(to, 1));
      assert.equal(readFileSync(path).length, 24 + forwarded * (16 + LENGTH));
    } finally {
      close([from, to]);
    }
  });

  it('pong counts what it sent back', () => {
    const name = `pipe:refused-${process.pid}`;
    const ports = openPorts([`${name}{2`, `${name}}2`]);
    const [asker, answerer] = ports;
    try {
      const sender = senderOn(asker);
      assert.equal(sender.send(now(), FRAMES_IN), FRAMES_IN);
      const spoilt = spoil(answerer, 1);
      const reflector = new Reflector(answerer);
      while (reflector.turn(UNLIMITED) > 0);
      const { frames, bytes, unsent, refused } = reflector.report();
      assert.deepEqual([frames, unsent, refused], [FRAMES_IN - spoilt(), 0, spoilt()]);
      asker.rxsync();
      const [rx] = asker.rx;
      let answers = 0;
      while (rx.space > 0) {
        if (rx.len(rx.head) === LENGTH) answers++;
        rx.advance(1);
      }
      assert.deepEqual([answers, bytes], [frames, frames * LENGTH]);
    } finally {
      close(ports);
    }
  });

  it('frames that were refused before are another’s', () => {
    const [from, to] = openPorts([SOURCE, 'sim:to@count=1,clock=virtual,rate=max']);
    try {
      to.tx[0].setLenFlags(to.tx[0].head, 2049);
      to.tx[0].advance(1);
      to.txsync();
      assert.deepEqual(to.refused?.(), { frames: 1, bytes: 2049 });
      bridge(from, to, spoil(to, 1));
    } finally {
      close([from, to]);
    }
  });

  it(
    'xdp: frames of several buffers where the interface takes one',
    { skip: skipWithoutLab(), timeout: 60_000 },
    async () => {
      const lab = new Lab();
      try {
        const [far, near] = [lab.namespace('f'), lab.namespace('n')];
        lab.veth(far, { name: 'far' }, near, { name: 'eth1' });
        const sink = openPort(`xdp:far@netns=${far.name}`);
        const [from, to] = openPorts([
          `sim:src@count=${FRAMES_IN},size=${LENGTH + 4}*4+4500,clock=virtual`,
          `xdp:eth1@netns=${near.name}`,
        ]);
        try {
          const joined = new Bridge(nicSide(from), nicSide(to), { oneWay: true });
          while (!(from.ended() && from.rx[0].space === 0)) joined.turn();
          while (!joined.flush());
          joined.countUnsent();
          const [counters] = joined.counters;
          assert.deepEqual([counters[FRAMES], counters[REFUSED], notForwarded(counters)], [80, 20, 20]);
          assert.equal(counters[BYTES], 80 * LENGTH);
          assert.equal(to.stats()['tx_refused'], 20);
          const [rx] = sink.rx;
          for (let arrived = 0; arrived < 80; await new Promise((resolve) => setImmediate(resolve))) {
            sink.rxsync();
            while (rx.space > 0) {
              if (rx.len(rx.head) === LENGTH) arrived++;
              rx.advance(1);
            }
          }
        } finally {
          close([from, to, sink]);
        }
      } finally {
        lab.close();
      }
    },
  );
});

const nothing = (): void => undefined;
const SILENT = { running: nothing, say: nothing, report: nothing };

describe('a port that fails midway', () => {
  it('pkt-gen: what is in the tx rings leaves all the same, where it can, and is counted as sent', () => {
    const port = openPort('sim:a@rate=100M,slots=256');
    try {
      const failure = new PortError('renamed', port.name);
      const stats = port.stats.bind(port);
      const control = new Control();
      const engine = new TxEngine(senderOn(port), UNLIMITED);
      port.stats = () => {
        port.stats = stats;
        assert.ok(port.txPending() > 0);
        throw failure;
      };
      control.askReport();
      const ended = runEngine(engine, port, control, SILENT, { wait: 'busy', ns: 0 });
      const { reason, report } = ended.ended;
      assert.deepEqual([ended.failure, reason, report.sent!.unsent], [{ error: failure }, 'failed', 0]);
      assert.equal(report.sent!.frames, stats()['sent']);
      assert.ok(report.sent!.frames > 0);
    } finally {
      port.close();
    }
  });

  for (const failing of [0, 1] as const)
    it(`the ${failing === 0 ? 'first' : 'second'}: what was on its way to the other leaves, the rest is counted as not sent`, () => {
      const names = ['a', 'b'].map((name) => `sim:${name}@count=${FRAMES_IN},clock=virtual,rate=1G`);
      const ports = openPorts(names);
      try {
        const broken = ports[failing];
        const well = ports[1 - failing];
        const txsync = broken.txsync.bind(broken);
        const failure = new PortError('gone', broken.name);
        let both = false;
        broken.txsync = () => {
          if (!both) txsync();
          both ||= ports.every(({ tx: [ring] }) => ring.space < ring.numSlots - 1);
          if (both) throw failure;
        };
        const bridge = new Bridge(nicSide(ports[0]), nicSide(ports[1]), { burst: 16 });
        const options = { wait: 'busy', ns: 0, stats: () => undefined } as const;
        const ended = bridgeUntilOver(bridge, new Control(), SILENT, options);
        assert.deepEqual(ended, { ended: 'failed', failure: { error: failure } });
        const toWell = bridge.counters[failing];
        const toBroken = bridge.counters[1 - failing];
        assert.equal(well.txPending(), 0);
        assert.deepEqual([toWell[FRAMES], notForwarded(toWell)], [well.stats()['sent'], 0]);
        assert.equal(toBroken[FRAMES], broken.stats()['sent']);
        assert.ok(toWell[FRAMES] > 0 && toBroken[UNSENT] > 0);
      } finally {
        close(ports);
      }
    });
});
