import assert from 'node:assert/strict';
import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { arch, cpus, hostname, release, tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { UsageError } from '../../../lib/text/errors.js';
import { runForward } from '../../../lib/cli/measure/cli-forward.js';
import { Histogram } from '../../../lib/stats/histogram.js';
import { metricOf, primaryMetric } from '../../../lib/measure/results/metrics.js';
import { appendResults, readResults } from '../../../lib/measure/results/results.js';
import { type Cell, cellKey, type Result } from '../../../lib/measure/results/result.js';
import { describeSurroundings } from '../../../lib/measure/results/surroundings.js';

const folder = mkdtempSync(join(tmpdir(), 'results-'));
after(() => {
  rmSync(folder, { recursive: true });
});

let files = 0;
const fresh = (): string => join(folder, `${files++}.jsonl`);

const result = (more: Partial<Result> = {}): Result => ({
  v: 1,
  kind: 'forward',
  cell: { size: 64, slots: 2048 },
  repeat: 0,
  metrics: { mpps: 14.2, loss: 0.04 },
  time: '2026-01-31T12:00:00Z',
  ...more,
});

/** A file of two good lines around one given text. */
function sandwich(text: string): string {
  const file = fresh();
  writeFileSync(file, `${JSON.stringify(result())}\n${text}\n${JSON.stringify(result({ repeat: 1 }))}\n`);
  return file;
}

const refused = (text: string, message: RegExp): void => {
  assert.throws(
    () => readResults(sandwich(text)),
    (error: Error) => error instanceof UsageError && message.test(error.message),
  );
};

describe('result files', () => {
  it('give back what was appended, with line numbers', () => {
    const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((x) => x + 0);
    const scalar = fc.oneof(fc.string(), number, fc.boolean());
    const names = fc.string({ minLength: 1 }).filter((name) => name !== '__proto__');
    const some = fc.record({
      cell: fc.dictionary(names, scalar, { noNullPrototype: true }),
      metrics: fc.dictionary(names, number, { noNullPrototype: true }),
      samples: fc.dictionary(names, fc.array(number), { noNullPrototype: true }),
      note: fc.string(),
      repeat: fc.nat(),
    });
    fc.assert(
      fc.property(fc.array(fc.array(some, { maxLength: 3 }), { maxLength: 4 }), (batches) => {
        const file = fresh();
        appendResults(file, []);
        for (const batch of batches) assert.equal(appendResults(file, batch.map(result)), undefined);
        const { lines, notices } = readResults(file);
        assert.deepEqual(notices, []);
        assert.deepEqual(
          lines.map((line) => line.result),
          batches.flat().map(result),
        );
        assert.deepEqual(
          lines.map((line) => line.line),
          lines.map((_, index) => index + 1),
        );
      }),
      { numRuns: 40 },
    );
  });

  it('lose only their last line when cut off anywhere in it', () => {
    const whole = fresh();
    appendResults(whole, [result(), result({ repeat: 1, note: 'ä → b' })]);
    const bytes = readFileSync(whole);
    const first = bytes.indexOf(10) + 1;
    for (let size = first + 1; size < bytes.length - 1; size++) {
      const file = fresh();
      writeFileSync(file, bytes.subarray(0, size));
      const { lines, notices } = readResults(file);
      assert.equal(lines.length, 1);
      assert.equal(notices.length, 1);
      assert.match(notices[0], /:2: the last line is damaged .* and was skipped/);
    }
  });

  it('with NaN or Infinity, as others write them, are told as what they are, in the last line too', () => {
    for (const [word, place] of [
      ['NaN', 1],
      ['-Infinity', 2],
    ] as const) {
      const file = fresh();
      const lines = [result(), result()].map((one) => JSON.stringify(one));
      lines[place - 1] = lines[place - 1].replace(/"metrics":\{/, `"metrics":{"odd":${word},`);
      writeFileSync(file, `${lines.join('\n')}\n`);
      const message = new RegExp(
        `:${place}: ${word} is no number in JSON: leave out a metric that could not be measured$`,
      );
      assert.throws(() => readResults(file), { name: 'UsageError', message });
    }
    const words = fresh();
    appendResults(words, [result({ note: 'loss: NaN, here' })]);
    truncateSync(words, readFileSync(words).length - 20);
    assert.match(readResults(words).notices[0], /damaged/);
  });

  it('get rid of a cut-off line when written to again, and say so', () => {
    const file = fresh();
    appendResults(file, [result(), result({ repeat: 1 })]);
    truncateSync(file, readFileSync(file).length - 20);
    assert.match(appendResults(file, [result({ repeat: 2 })]) ?? '', /removed a damaged last line of \d+ bytes/);
    const { lines, notices } = readResults(file);
    assert.deepEqual([lines.map((line) => line.result.repeat), notices], [[0, 2], []]);
  });

  it('keep a whole last line that only lacks its newline', () => {
    const file = fresh();
    writeFileSync(file, JSON.stringify(result()));
    assert.equal(readResults(file).lines.length, 1);
    assert.equal(appendResults(file, [result({ repeat: 1 })]), undefined);
    assert.equal(readResults(file).lines.length, 2);
  });

  it('find a cut-off line longer than one read', () => {
    const file = fresh();
    appendResults(file, [result()]);
    appendFileSync(file, `{"note":"${'x'.repeat(200_000)}`);
    assert.match(appendResults(file, [result({ repeat: 1 })]) ?? '', /last line of 200009 bytes/);
    assert.equal(readResults(file).lines.length, 2);
  });

  it('are refused with the line number when damaged in the middle', () => {
    refused('{"v":1,"kind":"forw', /\.jsonl:2: damaged: not JSON/);
    refused('[]', /:2: not a result/);
    refused('{}', /:2: not a result: no "v": 1/);
  });

  it('are refused when written in a newer version', () => {
    refused(
      JSON.stringify({ ...result(), v: 2 }),
      /:2: written in version 2 of the result format; this version reads up to 1/,
    );
  });

  it('are refused when a field is not as documented', () => {
    const bad: [object, RegExp][] = [
      [{ kind: 'speed' }, /"kind" must be one of forward/],
      [{ cell: { a: [1] } }, /"cell" must be/],
      [{ cell: undefined }, /"cell" must be/],
      [{ repeat: -1 }, /"repeat" must be a whole number/],
      [{ metrics: { mpps: 'fast' } }, /"metrics" must be an object of finite numbers/],
      [{ units: { a: { unit: 'W', better: 'more' } } }, /"units" must be/],
      [{ samples: { a: [1, null] } }, /"samples" must be/],
      [{ sample_s: 0 }, /"sample_s" must be/],
      [{ histogram: { unit: 'ns' } }, /"histogram" must be/],
      [{ histogram: { ...new Histogram().toJSON(), count: 4 } }, /"histogram" must be/],
      [{ link_gbps: -10 }, /"link_gbps" must be/],
      [{ note: 3 }, /"note" must be a string/],
      [{ surroundings: [] }, /"surroundings" must be/],
      [{ time: 'yesterday' }, /"time" must be/],
    ];
    for (const [change, message] of bad) refused(JSON.stringify({ ...result(), ...change }), message);
  });

  it('may carry fields that are not known here', () => {
    assert.equal(readResults(sandwich(JSON.stringify({ ...result(), extra: [1] }))).lines.length, 3);
  });

  it('are the only files added to: no other is touched, also where its last line has no end', () => {
    const file = join(folder, 'other.txt');
    for (const text of ['notes', 'notes\nmore', '{"name":"a matrix"}\n', '{\n  "name": "a matrix"\n}', '\n', '{"v']) {
      writeFileSync(file, text);
      if (text === '{"v') {
        // Nothing but the beginning of a first result that was cut off.
        assert.match(appendResults(file, [result()]) ?? '', /removed a damaged last line of 3 bytes/);
        continue;
      }
      assert.throws(() => appendResults(file, [result()]), /other\.txt: not a result file; name a new file/);
      assert.equal(readFileSync(file, 'utf8'), text);
    }
    // Fields in another order are a result all the same.
    const { v, ...rest } = result();
    writeFileSync(file, `${JSON.stringify({ ...rest, v })}\n`);
    appendResults(file, [result({ repeat: 1 })]);
    assert.equal(readResults(file).lines.length, 2);
  });

  it('that cannot be opened are named with the remedy', () => {
    assert.throws(() => readResults(join(folder, 'none.jsonl')), /none\.jsonl: no such file; name a result file/);
    assert.throws(() => readResults(folder), /: a folder; name a result file/);
    assert.throws(() => appendResults(join(folder, 'no', 'x.jsonl'), [result()]), UsageError);
  });

  it('hold the examples of docs/results.md as documented', () => {
    const blocks = readFileSync('docs/results.md', 'utf8').match(/```\n\{.*\n```/g) ?? [];
    const [line, histogram] = blocks.map((block) => block.split('\n')[1]);
    const file = fresh();
    writeFileSync(file, `${line}\n`);
    assert.equal(readResults(file).lines[0].result.metrics.mpps, 14.2);
    const json = new Histogram();
    for (const ns of [90, 10_000, 70_000]) json.record(ns);
    assert.deepEqual(JSON.parse(histogram), json.toJSON());
  });
});

describe('cells', () => {
  it('are the same whatever the order of their axes', () => {
    assert.equal(cellKey({ size: 64, slots: 2 }), cellKey({ slots: 2, size: 64 }));
    assert.notEqual(cellKey({ size: 64 }), cellKey({ size: 128 }));
  });
});

describe('the cell of a forwarding trial', () => {
  const ports = ['-i', 'sim:a@clock=virtual,step=10us', '-i', 'sim:b@clock=virtual,step=10us'];
  const cellOf = async (...args: string[]): Promise<Cell> => {
    let out = '';
    const io = { out: (text: string) => (out += text), err: () => undefined };
    await runForward([...ports, '--size', '64', '--seconds', '0.001', '--json', ...args], io);
    return (JSON.parse(out) as Result).cell;
  };
  const usual = {
    size: 64,
    a: 'sim:a@clock=virtual,step=10us',
    b: 'sim:b@clock=virtual,step=10us',
    oneWay: false,
    burst: 1024,
  };

  it('has what is measured where that is not the default, and not how precisely', async () => {
    assert.deepEqual(await cellOf(), usual);
    assert.deepEqual(await cellOf('--wait', 'busy', '--load', '100%', '--cpu', '0'), usual);
    assert.deepEqual(await cellOf('--load', '5%'), { ...usual, load: 0.05 });
    assert.deepEqual(await cellOf('--copy'), { ...usual, copy: true });
    assert.deepEqual(await cellOf('--wait', 'poll'), { ...usual, wait: 'poll' });
    assert.equal((await cellOf('--rate', '1G')).a, 'sim:a@rate=1G,clock=virtual,step=10us');
  });

  it('is of a link with a unit: 10 bit/s are refused, 10bit/s are meant', async () => {
    for (const rate of ['10', '999.5'])
      await assert.rejects(cellOf('--rate', rate), {
        name: 'UsageError',
        message: `option --rate: '${rate}' has no unit, and ${rate} bit/s is no link's speed; write ${rate}G`,
      });
    assert.match(String((await cellOf('--rate', '1000')).a), /rate=1k/);
  });
});

describe('metrics', () => {
  it('are known by their own units, their name or its last word', () => {
    assert.deepEqual(metricOf('p99_ns'), { label: 'p99 ns', unit: 'ns', better: 'lower' });
    assert.equal(metricOf('ndr_mpps').label, 'NDR');
    assert.equal(metricOf('loss').scale, 'difference');
    assert.equal(metricOf('watt', { watt: { unit: 'W', better: 'lower' } }).unit, 'W');
    assert.deepEqual(metricOf('constructor', {}), { label: 'constructor', unit: '' });
  });

  it('judge a result by its kind, or else by the first that has a direction', () => {
    assert.equal(primaryMetric(result()), 'mpps');
    assert.equal(primaryMetric(result({ kind: 'latency', metrics: { p50_ns: 1, p99_ns: 2 } })), 'p99_ns');
    assert.equal(primaryMetric(result({ kind: 'matrix', metrics: { count: 1, boot_ms: 2 } })), 'boot_ms');
    assert.equal(primaryMetric(result({ metrics: { count: 1 } })), 'count');
    assert.equal(primaryMetric(result({ metrics: {} })), undefined);
  });

  it('of a matrix come before the CPU shares beside them, whether they can be judged or not', () => {
    const cpu = { cpu_user_share: 1, cpu_system_share: 0.1, cpu_irq_share: 0, cpu_softirq_share: 0 };
    const primary = (metrics: Record<string, number>): string | undefined =>
      primaryMetric(result({ kind: 'matrix', metrics }));
    assert.equal(primary({ ...cpu, v: 3 }), 'v');
    assert.equal(primary({ ...cpu, v: 3, boot_ms: 4 }), 'boot_ms');
    assert.equal(primary({ ...cpu, host_cpu_share: 0.2, cache_share: 0.1 }), 'cache_share');
    assert.equal(primary({ ...cpu, v: 3, mpps: 4 }), 'mpps');
    assert.equal(primary(cpu), 'cpu_user_share');
  });
});

describe('surroundings', () => {
  it('describe this machine and this software', () => {
    const found = describeSurroundings();
    assert.equal(found.host, hostname());
    assert.equal(found.kernel, release());
    assert.equal(found.arch, arch());
    assert.equal(found.cores, cpus().length);
    assert.equal(found.node, process.version);
    const { name, version } = JSON.parse(readFileSync('package.json', 'utf8')) as { name: string; version: string };
    assert.equal(found.software, `${name} ${version}`);
    assert.equal(found.interfaces, undefined);
  });

  it('carry what is known of each interface, or why it is not', () => {
    const { interfaces } = describeSurroundings(['ix0', 'ix1'], (name) => {
      if (name === 'ix1') throw new Error('ix1: no such interface');
      return { driver: 'ixgbe', rings: { rx: 2048, tx: 1024 } };
    });
    assert.deepEqual(interfaces, {
      ix0: { driver: 'ixgbe', rings: { rx: 2048, tx: 1024 } },
      ix1: { error: 'ix1: no such interface' },
    });
  });
});
