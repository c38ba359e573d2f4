import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import fc from 'fast-check';
import { runReport } from '../../../lib/cli/measure/cli-report.js';
import { formatChange, formatNumber, formatP, formatShare } from '../../../lib/text/format.js';
import { appendResults, readResults } from '../../../lib/measure/results/results.js';
import type { Result } from '../../../lib/measure/results/result.js';
import { linearAxis, logAxis, niceSteps, percentileAxis, ratioAxis } from '../../../lib/measure/report/scale.js';
import { demoResults } from '../../support/demo.js';

const folder = mkdtempSync(join(tmpdir(), 'report-'));
after(() => {
  rmSync(folder, { recursive: true });
});
const before = join(folder, 'before.jsonl');
const results = join(folder, 'after.jsonl');
appendResults(before, demoResults(1));
appendResults(results, demoResults(2, 0.97));

function run(...args: string[]): { code: number; out: string; err: string } {
  let [out, err] = ['', ''];
  const code = runReport(args, { out: (text) => (out += text), err: (text) => (err += text) });
  return { code, out, err };
}

/** The cells of each table row of a page, without markup. */
function rowsOf(page: string): string[][] {
  const plain = (text: string): string =>
    text
      .replaceAll(/<[^>]*>/g, '')
      .replaceAll('&gt;', '>')
      .replaceAll('&amp;', '&');
  return [...page.matchAll(/<tr>(.*?)<\/tr>/gs)].map(([, row]) =>
    [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, cell]) => plain(cell)),
  );
}

describe('measure report --html', () => {
  const { code, out: page } = run('--html', '-', '--before', before, '--title', 'A < B & C', results);

  it('is one page without script, network or leftovers', () => {
    assert.equal(code, 0);
    assert.doesNotMatch(
      page,
      /<script|https?:\/\/(?!www\.w3\.org\/2000\/svg)|@import|url\(|<img|NaN|undefined|Infinity|\[object/,
    );
    assert.match(page, /<title>A &lt; B &amp; C<\/title>/);
    assert.match(page, /prefers-color-scheme:dark/);
    assert.match(page, /@media print/);
  });

  it('has a plot, at two widths, and tables for every kind of result', () => {
    const ids = [...page.matchAll(/<section id="([^"]+)"/g)].map(([, id]) => id);
    assert.deepEqual(ids, [
      'compare',
      'mpps',
      'line-rate',
      'latency',
      'loss',
      'burst',
      'matrix-mpps',
      'samples-gbps',
      'surroundings',
    ]);
    assert.equal(new Set(ids).size, ids.length);
    assert.equal(page.match(/<svg /g)?.length, 2 * 8);
    for (const section of page.split('<section ').slice(1, -1)) assert.match(section, /<table>/);
  });

  it('names every table, and the region that scrolls it', () => {
    const tables = [...page.matchAll(/<div class="scroll" role="region" aria-label="([^"]+)" tabindex="0"><table[^>]*><caption>([^<]+)<\/caption>/g)]; // prettier-ignore
    assert.equal(tables.length, page.match(/<div class="scroll"/g)?.length);
    for (const [, region, caption] of tables) assert.equal(region, caption);
    assert.ok(tables.some(([, region]) => /^Throughput by frame size, forward: \d+ rows$/.test(region)));
  });

  it('says in the text alternative of a plot what it shows', () => {
    const [, mpps] = /<section id="mpps".*?aria-label="([^"]+)"/s.exec(page)!;
    const { metrics } = readResults(results).lines[0].result;
    assert.match(mpps, /^Mpps by frame size: Mpps over frame size in bytes, with FCS\. /);
    assert.match(mpps, /forwarded[^:;]*: [\d.]+ at 64 to [\d.]+ at 1518; /);
    assert.match(mpps, /line rate, 10 Gbit\/s[^:]*: 14\.88 at 64 to 0\.8127 at 1518/);
    assert.ok(metrics.mpps <= 14.881);
  });

  it('draws no curve above the line rate between two sizes that were measured', () => {
    const file = join(folder, 'sizes.jsonl');
    // Line rate at 10 Gbit/s: 10,000 / (8 (size + 20)) Mpps.
    const atLine = [64, 1518].map((size): Result => {
      const metrics = { mpps: 10_000 / (8 * (size + 20)) };
      return { v: 1, kind: 'forward', cell: { size }, repeat: 0, metrics, link_gbps: 10, time: '2026-01-31T12:00:00Z' };
    });
    appendResults(file, atLine);
    const [, section] = /<section id="mpps"(.*?)<\/section>/s.exec(run('--html', '-', file).out)!;
    const [curve, limit] = [/class="line s0"[^>]* d="([^"]+L[^"]+)"/, /class="limit" d="([^"]+)"/].map((pattern) =>
      [...pattern.exec(section)![1].matchAll(/[ML]([\d.]+) ([\d.]+)/g)].map(([, x, y]) => [Number(x), Number(y)]),
    );
    assert.ok(curve.length > 10);
    for (const [x, y] of curve) {
      const after = limit.findIndex(([at]) => at >= x - 1e-9);
      const [[x0, y0], [x1, y1]] = [limit[Math.max(0, after - 1)], limit[after]];
      const line = x1 === x0 ? y1 : y0 + ((y1 - y0) * (x - x0)) / (x1 - x0);
      // y grows downwards, in steps of 0.1 px; pieces of the line rate are 1/64 of its way.
      assert.ok(y >= line - 1, `${x}: ${y} is above ${line}`);
    }
  });

  it('has text that stands out from what is behind it by 4.5 to 1, in both colour schemes (WCAG 2.1 AA, 1.4.3)', () => {
    const luminance = (colour: string): number => {
      const whole = colour.length === 4 ? colour.replace(/[\da-f]/g, '$&$&') : colour;
      const [r, g, b] = [1, 3, 5].map((at) => {
        const share = parseInt(whole.slice(at, at + 2), 16) / 255;
        return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const schemes = [...page.matchAll(/:root\{(?:color-scheme:light dark;)?(--paper:[^}]+)\}/g)].map(([, rules]) =>
      Object.fromEntries(rules.split(';').map((rule) => rule.split(':') as [string, string])),
    );
    assert.equal(schemes.length, 2);
    for (const scheme of schemes) {
      for (const [text, behind, least] of [
        ...['--text', '--muted', '--accent'].flatMap(
          (one) =>
            [
              [one, '--paper', 4.5],
              [one, '--page', 4.5],
            ] as const,
        ),
      ] as const) {
        const [dark, light] = [scheme[text], scheme[behind]].map(luminance).sort((a, b) => a - b);
        const ratio = (light + 0.05) / (dark + 0.05);
        assert.ok(ratio >= least, `${text} on ${behind}: ${ratio.toFixed(2)}`);
      }
    }
  });

  it('gives shares of the line rate', () => {
    // 14.8810 Mpps is the line rate at 64 bytes; the row of line 1 shows its Mpps as a share of that.
    const [mpps] = readResults(results).lines.map(({ result }) => result.metrics.mpps);
    const row = rowsOf(page).find((cells) => cells.at(-1) === 'after.jsonl:1' && cells[3] === '14.881')!;
    assert.ok(Math.abs(Number(row[4]) - (100 * mpps) / 14.880952) < 0.01, row.join(' '));
  });

  it('counts the line rate of both directions where the rates are sums of both', () => {
    const file = join(folder, 'both.jsonl');
    const at = (oneWay: boolean, mpps: number): Result => ({
      ...demoResults(1)[0],
      cell: { size: 64, oneWay },
      metrics: { mpps },
    });
    appendResults(file, [at(false, 14.880952), at(true, 14.880952)]);
    const page = run('--html', '-', file).out;
    assert.match(page, /In every row: size=64 repeat=0</);
    assert.deepEqual(rowsOf(page).slice(-2), [
      ['false', '29.762', '50', 'both.jsonl:1'],
      ['true', '14.881', '100', 'both.jsonl:2'],
    ]);
    assert.match(page, /line rate, 10 Gbit\/s both ways/);
    assert.match(page, /line rate, 10 Gbit\/s</);
  });

  it('names both lines behind a comparison, and tells what has too few repeats for an interval', () => {
    const compared = rowsOf(page).filter((cells) => cells.at(-1)?.includes('→'));
    assert.equal(compared[0].at(-1), 'before.jsonl:1-8 → after.jsonl:1-8');
    assert.match(compared[0].join(' '), /✗ worse/);
    assert.match(page, /the table alone has the cell/);
  });

  it('tells what it was measured on', () => {
    assert.match(page, /AMD EPYC 7443P/);
    assert.match(page, /driver ixgbe; 10 Gbit\/s; MTU 1500; rings: rx 2048, tx 2048 slots; offloads: tso off/);
  });
});

describe('measure report in other forms', () => {
  it('writes Markdown tables with a source for each row', () => {
    const { code, out } = run('--markdown', results);
    assert.equal(code, 0);
    assert.match(out, /^# Measurements\n/);
    assert.match(out, /\| 64 \| 1024 \| 0 \| [\d.]+ \| [\d.]+ \| after\.jsonl:1 \|/);
    for (const table of out
      .trim()
      .split('\n\n')
      .filter((part) => part.startsWith('|'))) {
      const columns = table.split('\n').map((row) => row.match(/(?<!\\)\|/g)!.length);
      assert.equal(new Set(columns).size, 1, table);
    }
  });

  it('writes each plot as an SVG file with its own styles, and Markdown refers to them', () => {
    const svgs = join(folder, 'svgs');
    const { code, out } = run('--svg', svgs, '--markdown', results);
    assert.equal(code, 0);
    assert.deepEqual(readdirSync(svgs), [
      'burst.svg',
      'latency.svg',
      'line-rate.svg',
      'loss.svg',
      'matrix-mpps.svg',
      'mpps.svg',
      'samples-gbps.svg',
    ]);
    for (const name of readdirSync(svgs)) {
      const svg = readFileSync(join(svgs, name), 'utf8');
      assert.match(svg, /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<svg xmlns=/);
      assert.match(svg, /<style><!\[CDATA\[/);
      assert.doesNotMatch(svg, /NaN|undefined|Infinity/);
      assert.ok(out.includes(`](${join(svgs, name)})`));
    }
  });

  it('shows the field reports, with all lines that have no plot of their own', () => {
    const { out } = run('--markdown', 'test/data/r3-12.1.jsonl', 'test/data/r5-16us.jsonl');
    assert.match(out, /## Readings within each run: throughput/);
    assert.match(out, /## Further results: forward/);
    assert.match(out, /r5-16us\.jsonl:6 \|/);
  });

  it('shows any valid result, and never a broken number', () => {
    const metric = fc.constantFrom('mpps', 'gbps', 'loss', 'ndr_mpps', 'burst_frames', 'odd');
    // Down to 10^-6 of a unit: less than one frame a second of Mpps is no measurement.
    const value = fc.oneof(fc.constant(0), fc.double({ min: 1e-6, max: 1e9, noNaN: true }));
    const share = fc.integer({ min: 0, max: 1000 }).map((thousandths) => thousandths / 1000);
    const some = fc.record({
      kind: fc.constantFrom<Result['kind']>('forward', 'throughput', 'loss', 'burst', 'matrix', 'samples'),
      cell: fc.record({ size: fc.integer({ min: 64, max: 9000 }), load: share }, { requiredKeys: [] }),
      metrics: fc.dictionary(metric, value),
      samples: fc.dictionary(metric, fc.array(value)),
      repeat: fc.nat(3),
    });
    fc.assert(
      fc.property(fc.array(some, { minLength: 1, maxLength: 6 }), (parts) => {
        const file = join(folder, 'any.jsonl');
        rmSync(file, { force: true });
        const lines = parts.map((part): Result => ({ v: 1, ...part, time: '2026-01-31T12:00:00Z' }));
        writeFileSync(file, lines.map((line) => `${JSON.stringify(line)}\n`).join(''));
        const { code, out } = run('--html', '-', '--before', file, file);
        assert.equal(code, 0);
        assert.equal(/.{60}(?:NaN|undefined|Infinity)/.exec(out)?.[0], undefined);
        for (let i = 1; i <= lines.length; i++) assert.ok(out.includes(`any.jsonl:${i}<`), `line ${i} is on the page`);
      }),
      { numRuns: 100, endOnFailure: true },
    );
  });

  it('names what was written wrong, and the remedy', () => {
    assert.equal(run('-h').code, 0);
    const empty = join(folder, 'empty.jsonl');
    writeFileSync(empty, '');
    for (const [args, message] of [
      [[], /no result file given/],
      [[results], /no form of report given; add --html FILE, --markdown or --svg FOLDER/],
      [['--markdown', empty], /empty\.jsonl: no result in there/],
      [['--html', join(folder, 'no', 'x.html'), results], /x\.html: there is no folder .*no; make it/],
      [['--html', folder, results], /: a folder; name a file in it/],
      [['--svg', results, results], /there is a file of that name; name a folder/],
      [['--markdown', '--before', 'none', results], /none: no such file; name a result file/],
    ] as const)
      assert.throws(() => run(...args), { name: 'UsageError', message });
  });
});

describe('tables of a report', () => {
  const ports = { a: 'sim:a@slots=4096,buf=2112', b: 'sim:b@slots=4096,buf=2112', oneWay: true };
  const forward = (size: number, mpps: number): Result => ({
    ...demoResults(1)[0],
    cell: { size, ...ports },
    metrics: { mpps, lost_frames: 0 },
  });
  const page = (name: string, ...lines: Result[]): string => {
    const file = join(folder, name);
    rmSync(file, { force: true });
    appendResults(file, lines);
    return run('--markdown', file).out;
  };

  it('say once above them what is the same in every row: settings, and what came out', () => {
    const out = page('same.jsonl', forward(64, 7), forward(128, 6));
    assert.match(
      out,
      /\n\nIn every row: a=sim:a@slots=4096,buf=2112 b=sim:b@slots=4096,buf=2112 oneWay=true repeat=0 lost_frames=0\n\n\| size \| mpps \| source \|\n.*\n\| 64 \| 7 \| same\.jsonl:1 \|\n\| 128 \| 6 \| same\.jsonl:2 \|\n/,
    );
    assert.equal(out.match(/slots=4096/g)?.length, 2 * 2);
  });

  it('keep one setting, and what came out, where there is one row', () => {
    assert.match(
      page('one.jsonl', forward(64, 7)),
      /In every row: a=\S+ b=\S+ oneWay=true repeat=0\n\n\| size \| mpps \| lost_frames \| source \|\n.*\n\| 64 \| 7 \| 0 \| one\.jsonl:1 \|/,
    );
  });

  it('name files in full where their last parts are the same', () => {
    const [one, two] = ['x', 'y'].map((sub) => join(folder, sub));
    for (const sub of [one, two]) {
      mkdirSync(sub);
      appendResults(join(sub, 'same.jsonl'), [forward(64, 7)]);
    }
    const { out } = run('--markdown', join(one, 'same.jsonl'), join(two, 'same.jsonl'));
    for (const sub of [one, two]) assert.ok(out.includes(`| ${join(sub, 'same.jsonl')}:1 |`), out);
  });

  it('leave what all plots of a figure share out of their names', () => {
    const file = join(folder, 'same.jsonl');
    const { out } = run('--html', '-', file);
    assert.doesNotMatch(out, /<text[^>]*>forwarded, /);
    assert.match(out, /<text[^>]*>forwarded</);
  });
});

describe('a report of many runs', () => {
  const [base] = demoResults(1);
  const page = (name: string, ...lines: Result[]): string => {
    const file = join(folder, name);
    appendResults(file, lines);
    return run('--html', '-', file).out;
  };

  it('says once what all were measured on, and then what differs', () => {
    const at = (mtu: number): Result => ({
      ...base,
      cell: { size: 64, mtu },
      surroundings: { ...base.surroundings!, interfaces: { ix0: { driver: 'ixgbe', mtu } } },
    });
    const out = page('mtu.jsonl', at(1500), at(9000), at(1500));
    const section = out.slice(out.indexOf('<section id="surroundings">'));
    assert.equal(section.match(/AMD EPYC 7443P/g)?.length, 1);
    assert.match(section, /<dt>holds for<\/dt><dd>all results<\/dd><\/dl><hr>/);
    assert.match(section, /MTU 1500<\/dd><dt>holds for<\/dt><dd>mtu\.jsonl:1,3<\/dd>/);
    assert.match(section, /MTU 9000<\/dd><dt>holds for<\/dt><dd>mtu\.jsonl:2<\/dd>/);
  });

  const read = (repeat: number, more: object): Result => ({
    ...base,
    kind: 'samples',
    cell: { tso: 'on', ...more },
    repeat,
    metrics: { gbps: 9 },
    samples: { gbps: [8, 9, 10] },
  });

  it('draws the readings of a cell as one series, a line a run', () => {
    const out = page(
      'runs.jsonl',
      ...[0, 1, 2].flatMap((repeat) => [read(repeat, { mtu: 1500 }), read(repeat, { mtu: 9000 })]),
    );
    const svg = out.slice(out.indexOf('<section id="samples-gbps">'), out.indexOf('<div class="narrow">'));
    const names = [...svg.matchAll(/<text[^>]*>(mtu=\d+)<\/text>/g)].map(([, name]) => name);
    assert.deepEqual(names, ['mtu=1500', 'mtu=9000']);
    const paths = [...svg.matchAll(/<path class="line[^>]* d="(M[^"]*L[^"]*)"/g)].map(([, path]) =>
      path.replaceAll(/[^ML]/g, ''),
    );
    assert.deepEqual(paths, ['MLLMLLMLL', 'MLLMLLMLL']);
  });

  it('draws none where there are more cells than lines can be told apart, and says so', () => {
    const cells = Array.from({ length: 13 }, (_, mtu) => read(0, { mtu }));
    const section = page('cells.jsonl', ...cells).split('<section id="samples-gbps">')[1];
    assert.match(section, /13 cells are too many for a plot\./);
    assert.doesNotMatch(section, /<svg/);
    assert.equal(section.match(/cells\.jsonl:\d+</g)?.length, 13);
  });
});

describe('measure report --before', () => {
  const [base] = demoResults(1);
  const [small, large] = [1024, 2048].map((slots) => {
    const file = join(folder, `slots-${slots}.jsonl`);
    appendResults(file, [{ ...base, cell: { size: 64, a: `sim:a@slots=${slots}` } }]);
    return file;
  });

  it('says when no cell is in both files, in what they differ, and compares them all the same with --ignore', () => {
    const apart = run('--html', '-', '--before', small, large);
    assert.equal(
      apart.err,
      `--before ${small}: nothing to compare: no cell is in both files; they differ in a: --ignore a compares them all the same\n`,
    );
    assert.doesNotMatch(apart.out, /id="compare"/);
    const { out, err } = run('--html', '-', '--before', small, '--ignore', 'a', large);
    assert.equal(err, '');
    assert.match(out, /slots-1024\.jsonl:1 → slots-2048\.jsonl:1/);
  });
});

describe('measure report of a matrix', () => {
  const of = (slots: number): string => {
    const file = join(folder, `matrix-${slots}.jsonl`);
    const matrix = { name: 'rings', digest: String(slots), seed: 1, ran: [`sim:a@slots=${slots}`] };
    const metrics = { cpu_user_share: 1, v: slots };
    const time = '2026-01-31T12:00:00Z';
    const units = { v: { unit: 'W', better: 'lower' as const } };
    appendResults(file, [{ v: 1, kind: 'matrix', cell: { burst: 64 }, repeat: 0, metrics, units, matrix, time }]);
    return file;
  };

  it('draws the metric that the matrix names, and says that matrices differ', () => {
    const { out } = run('--html', '-', '--before', of(4096), of(512));
    assert.match(out, /id="matrix-v"/);
    assert.doesNotMatch(out, /id="matrix-cpu/);
    assert.match(out, /the matrices differ \(rings\): only before ran sim:a@slots=4096, only after sim:a@slots=512/);
  });
});

describe('measure report says what it wrote', () => {
  it('the file, the results read, lines that were skipped', () => {
    const page = join(folder, 'told.html');
    const cut = join(folder, 'cut.jsonl');
    writeFileSync(cut, `${readFileSync(results, 'utf8')}{"v":1,"ki`);
    const many = readResults(results).lines.length;
    assert.equal(run('--html', page, results).err, `${page}: a page of 7 plots from ${many} results\n`);
    assert.match(
      run('--html', page, '--before', before, cut).err,
      new RegExp(
        `:${many + 1}: the last line is damaged .*\n.*told\\.html: a page of 8 plots from ${many} results and ${many} earlier ones; 1 damaged line skipped\n$`,
      ),
    );
    assert.equal(
      run('--svg', join(folder, 'told'), results).err,
      `${join(folder, 'told')}: 7 plots from ${many} results\n`,
    );
    assert.equal(run('--html', '-', results).err, '');
  });
});

describe('axes', () => {
  it('step by 1, 2 or 5', () => {
    assert.deepEqual(niceSteps(0, 14.88, 5), [0, 5, 10, 15]);
    assert.deepEqual(niceSteps(0, 100, 5), [0, 20, 40, 60, 80, 100]);
    assert.deepEqual(niceSteps(-7, 12, 5), [-10, -5, 0, 5, 10, 15]);
  });

  it('put every value of their range between 0 and 1', () => {
    fc.assert(
      fc.property(
        fc.double({ min: 1e-6, max: 1e9, noNaN: true }),
        fc.double({ min: 1.001, max: 1e6, noNaN: true }),
        (low, factor) => {
          for (const axis of [linearAxis('', low, low * factor), logAxis('', low, low * factor)]) {
            for (const value of [low, low * factor])
              assert.ok(axis.place(value) >= -1e-9 && axis.place(value) <= 1 + 1e-9);
            assert.ok(axis.ticks.length >= 2 && axis.ticks.length <= 20);
          }
        },
      ),
    );
  });

  it('give each nine the same room, and no loss a place of its own', () => {
    const percent = percentileAxis('', 4);
    [0, 90, 99, 99.9, 99.99].forEach((at, i) => {
      assert.ok(Math.abs(percent.place(at) - i / 4) < 1e-9);
    });
    const ratio = ratioAxis('', 0.001, formatShare);
    assert.deepEqual([ratio.place(0), ratio.place(1)], [0, 1]);
    assert.ok(Math.abs(ratio.place(0.001) - 0.15) < 1e-9);
  });
});

describe('numbers', () => {
  it('read as people write them', () => {
    assert.deepEqual([7.19712, 14_880_952, 0, -0.5, 2e-5, 1024].map((value) => formatNumber(value)), ['7.197', '14,880,000', '0', '−0.5', '2e−5', '1024']); // prettier-ignore
    assert.deepEqual([-0.1875, -0.99552, -1, 0.0004, 12, Infinity].map(formatChange), ['−18.8 %', '−99.55 %', '−100 %', '0.0 %', '+1200 %', '+∞ %']); // prettier-ignore
    assert.deepEqual([0.00001, 0.0079].map(formatP), ['< 0.0001', '0.0079']);
  });
});
