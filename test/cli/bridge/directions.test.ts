// What the two directions of a bridge are called.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { directionNames } from '../../../lib/cli/bridge/summary.js';
import type { DirectionInfo, Opened } from '../../../lib/forward/bridge-job.js';
import type { PortInfo } from '../../../lib/ports/port-info.js';

function port(name: string): PortInfo {
  const shape = { txRings: 1, rxRings: 1, txSlots: 256, rxSlots: 256, bufSize: 2048 };
  return { name, driver: 'netmap', region: 'netmap:1', ...shape, notes: [] };
}

function named(ports: string[], directions: DirectionInfo[]): string[] {
  const opened: Opened = { ports: ports.map(port), whyCopy: undefined, directions, programCounters: [] };
  return directions.map((direction) => directionNames(opened, direction).direction);
}

describe('the directions of a bridge', () => {
  const flow = (index: 0 | 1, from: number, to: number): DirectionInfo => ({ index, from, to, rings: [[0, 0]] });

  it('are told apart where one port is both ends: its interface and its host', () => {
    assert.deepEqual(named(['netmap:eth1*'], [flow(0, 0, 0), flow(1, 0, 0)]), [
      'netmap:eth1*→netmap:eth1* (host)',
      'netmap:eth1* (host)→netmap:eth1*',
    ]);
  });

  it('of two ports, and of one that is looped back, have the ports’ names', () => {
    assert.deepEqual(named(['netmap:a', 'netmap:b'], [flow(0, 0, 1), flow(1, 1, 0)]), [
      'netmap:a→netmap:b',
      'netmap:b→netmap:a',
    ]);
    assert.deepEqual(named(['netmap:a'], [flow(0, 0, 0)]), ['netmap:a→netmap:a']);
  });
});
