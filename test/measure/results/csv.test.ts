// measure's CSV: every value under its heading, whatever a row has or lacks.
import assert from 'node:assert/strict';
import { it } from 'node:test';
import { Emitter } from '../../../lib/cli/measure/emitter.js';

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
