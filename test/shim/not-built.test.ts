// What is said where the addon has not been built: the command that builds it there.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { cpSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { fileURLToPath } from 'node:url';

const LIB = fileURLToPath(new URL('../../lib/', import.meta.url));

describe('an addon that is not built', () => {
  const root = mkdtempSync(join(tmpdir(), 'not-built-'));
  after(() => {
    rmSync(root, { recursive: true });
  });

  /** What the library says when it is loaded from a copy of the package in `folder`. */
  function said(folder: string): string {
    mkdirSync(folder, { recursive: true });
    cpSync(LIB, join(folder, 'dist', 'lib'), { recursive: true });
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }');
    const { status, stderr } = spawnSync(process.execPath, [join(folder, 'dist', 'lib', 'index.js')], {
      encoding: 'utf8',
    });
    assert.equal(status, 1);
    return stderr;
  }

  it('in a checkout: npm install', () => {
    assert.match(said(join(root, 'checkout')), /netmap_bridge\.node is not built; run: npm install\n/);
  });

  it('in a project that depends on it: npm rebuild, for npm install finds all in place', () => {
    const folder = join(root, 'project', 'node_modules', 'netmap-bridge');
    assert.match(said(folder), /is not built; run: npm rebuild netmap-bridge\n/);
  });
});
