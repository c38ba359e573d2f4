// When signals are one wish to stop, and when the second one ends the process at once.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { describe, it } from 'node:test';

const signals = new URL('../../lib/cli/signals.js', import.meta.url).href;

/** A process that says `stop` when it is asked to, and goes on for `ms` after that. */
function slowToStop(ms: number) {
  const script = `
    import { Stop } from ${JSON.stringify(signals)};
    const life = setInterval(() => undefined, 1000);
    new Stop().onWish(() => { console.log('stop'); setTimeout(() => clearInterval(life), ${ms}); });
    console.log('ready');`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', script], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  child.stdout.setEncoding('utf8');
  return child;
}

describe('signals', () => {
  it('several within a second are one wish', async () => {
    const child = slowToStop(300);
    let out = '';
    child.stdout.on('data', (text: string) => (out += text));
    await once(child.stdout, 'data');
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGINT'] as const) child.kill(signal);
    assert.deepEqual(await once(child, 'close'), [0, null]);
    assert.equal(out, 'ready\nstop\n');
  });

  it('one more than a second later ends the process at once, with 128 + its number', async () => {
    const child = slowToStop(60_000);
    await once(child.stdout, 'data');
    child.kill('SIGINT');
    await once(child.stdout, 'data');
    // The time that must pass is what is tested.
    setTimeout(() => child.kill('SIGTERM'), 1100);
    assert.deepEqual(await once(child, 'close'), [128 + 15, null]);
  });
});
