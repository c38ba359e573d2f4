// measure's CSV: every value under its heading, whatever a row has or lacks.
import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { it } from 'node:test';
import { Emitter } from '../../../lib/cli/measure/emitter.js';
import { readResults } from '../../../lib/measure/results/results.js';

it('rows that have fewer metrics leave them empty, rows that have others get a heading of their own', () => {
  let text = '';
  const io = { out: (part: string) => (text += part), err: () => undefined } as unknown as ConstructorParameters<
    typeof Emitter
  >[1];
  const emitter = new Emitter({ format: 'csv', out: undefined, rate: Infinity }, io, []);
  const row = (size: number, metrics: Record<string, number>): void => {
    emitter.add({ kind: 'burst', cell: { size, a: 'sim:a' }, metrics }, [], '');
  };
  row(64, { burst_frames: 7, buffer_us: 2 });
  row(128, { burst_frames: 8 });
  row(256, { buffer_us: 3, burst_frames: 9 });
  row(512, { burst_frames: 10, corrected_buffer_us: 4 });
  assert.deepEqual(text.trimEnd().split('\n'), [
    'size,burst_frames,buffer_us',
    '64,7,2',
    '128,8,',
    '256,9,3',
    'size,burst_frames,corrected_buffer_us',
    '512,10,4',
  ]);
});

it('results that are added to a file are further repeats of its cells; too few for a comparison are told', () => {
  const folder = mkdtempSync(join(tmpdir(), 'repeats-'));
  try {
    const out = join(folder, 'r.jsonl');
    const said: string[] = [];
    const io = { out: () => undefined, err: (text: string) => said.push(text) };
    for (let run = 0; run < 5; run++) {
      const emitter = new Emitter({ format: 'json', out, rate: 1e10 }, io, []);
      emitter.tellRepeats('burst');
      for (const size of [64, 128])
        emitter.add({ kind: 'burst', cell: { size }, metrics: { burst_frames: 7 } }, [], '');
    }
    assert.deepEqual(
      readResults(out).lines.map(({ result }) => result.repeat),
      [0, 0, 1, 1, 2, 2, 3, 3, 4, 4],
    );
    // Two cells need five repeats; the fifth run needs no telling.
    const told = said.filter((text) => text.includes('repeats'));
    const line = (repeats: number): string =>
      `${out}: measure compare judges 2 cells at 5 % from 5 repeats of each on, before and after; here are ${repeats} with this run\n`;
    assert.deepEqual(told, [2, 3, 4].map(line));
  } finally {
    rmSync(folder, { recursive: true });
  }
});
