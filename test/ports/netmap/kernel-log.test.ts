// What the kernel's log said of a request that netmap refused.
import assert from 'node:assert/strict';
import { accessSync, closeSync, constants, openSync, writeSync } from 'node:fs';
import { describe, it } from 'node:test';
import { KernelLog } from '../../../lib/ports/netmap/kernel-log.js';

const LOG = '/dev/kmsg';

function writable(): boolean {
  try {
    accessSync(LOG, constants.R_OK | constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

describe('the kernel’s log', () => {
  it(
    'tells what netmap has said since the last call, without what others said',
    { skip: !writable() && 'needs root' },
    () => {
      const fd = openSync(LOG, 'w');
      // As the module writes: time, process, function, sentence; a record is there once its line has ended.
      const says = (what: string): number => writeSync(fd, `${what}\n`);
      says('096.371514 [3050] netmap_interp_ringid      before it was opened');
      const log = new KernelLog();
      try {
        assert.equal(log.said(), '');
        says('096.371514 [3050] netmap_interp_ringid      invalid ring id 3');
        says('eth9: link is up');
        says('096.371600 [3050] netmap_interp_ringid      invalid ring id 3');
        says('096.371700 [ 812] netmap_obj_malloc         no more netmap_ring objects');
        says('096.371800 [ 812] netmap_mem2_rings_create  a third sentence');
        assert.equal(log.said(), 'invalid ring id 3; no more netmap_ring objects', 'each once, two at most');
        assert.equal(log.said(), '');
      } finally {
        log.close();
        closeSync(fd);
      }
    },
  );

  it('says nothing where it cannot be read', () => {
    const log = new KernelLog('/nonexistent/kmsg');
    assert.equal(log.said(), '');
    log.close();
  });
});
