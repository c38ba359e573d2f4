import assert from 'node:assert/strict';
import { FIRST_BUFFER } from '../../lib/rings/abi.js';
import type { Port } from '../../lib/ports/port.js';

/**
 * Checks that no buffer is owned twice and none is lost: all slots of all rings of the ports, together with the
 * buffers that ports hold beside their rings, name distinct buffers of their region. The ports must be open.
 *
 * @param ports all ports of the regions audited
 * @param held  buffers held outside the rings, by region id
 * @param whole whether the rings and `held` must own every buffer of the region
 */
export function auditBuffers(
  ports: readonly Port[],
  { held = {}, whole = true }: { held?: Record<string, Iterable<number>>; whole?: boolean } = {},
): void {
  for (const region of new Set(ports.map((port) => port.region.id))) {
    const rings = ports
      .filter((port) => port.region.id === region)
      .flatMap((port) => [...port.tx, ...port.rx, ...port.hostTx, ...port.hostRx]);
    const owner = new Map<number, string>();
    const own = (buffer: number, who: string): void => {
      assert.equal(
        owner.get(buffer),
        undefined,
        `buffer ${buffer} of ${region} is owned twice, the second time by ${who}`,
      );
      owner.set(buffer, who);
    };
    for (const buffer of held[region] ?? []) own(buffer, 'a port');
    let limit = 0;
    for (const [at, ring] of rings.entries()) {
      limit = ring.bufLimit;
      for (let i = 0; i < ring.numSlots; i++) {
        const buffer = ring.bufIdx(i);
        const slot = `slot ${i} of ${ring.direction} ring ${ring.id} (ring ${at} of ${region})`;
        assert.ok(buffer >= FIRST_BUFFER && buffer < limit, `${slot} names buffer ${buffer}, and there are ${limit}`);
        own(buffer, slot);
      }
    }
    if (whole && rings.length > 0) assert.equal(owner.size, limit - FIRST_BUFFER, `buffers of ${region} in use`);
  }
}
