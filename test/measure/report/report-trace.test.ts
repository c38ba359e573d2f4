import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { runReport } from '../../../lib/cli/measure/cli-report.js';
import { formatChange, formatNumber } from '../../../lib/text/format.js';
import { Histogram } from '../../../lib/stats/histogram.js';
import { appendResults, readResults } from '../../../lib/measure/results/results.js';
import type { Result } from '../../../lib/measure/results/result.js';
import { formatTime } from '../../../lib/text/units.js';
import { demoResults } from '../../support/demo.js';

const folder = mkdtempSync(join(tmpdir(), 'trace-'));
after(() => {
  rmSync(folder, { recursive: true });
});
for (const [name, seed, scale] of [
  ['before', 1, 1],
  ['after', 2, 0.97],
] as const)
  // prettier-ignore
  appendResults(join(folder, `${name}.jsonl`), demoResults(seed, scale));

/** Every result by its place, as a page names it. */
const results = new Map<string, Result>(
  ['before', 'after'].flatMap((name) =>
    readResults(join(folder, `${name}.jsonl`)).lines.map(
      ({ line, result }) => [`${name}.jsonl:${line}`, result] as const,
    ),
  ),
);
let page = '';
runReport(['--html', '-', '--before', join(folder, 'before.jsonl'), join(folder, 'after.jsonl')], {
  out: (text) => (page += text),
  err: (text) => assert.fail(text),
});

const plain = (html: string): string =>
  html.replaceAll(/<[^>]*>/g, '').replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&amp;', '&'); // prettier-ignore
const sections = new Map(
  [...page.matchAll(/<section id="([^"]+)">(.*?)<\/section>/gs)].map(([, id, html]) => [id, html] as const),
);

interface Row {
  /** Text by heading; what is the same in every row included. */
  cells: Map<string, string>;
  source: string;
}

function rowsOf(section: string): Row[] {
  const tables = [...section.matchAll(/(?:<p class="common">In every row: ([^<]*)<\/p>)?<div class="scroll"[^>]*><table>(.*?)<\/table>/gs)]; // prettier-ignore
  return tables.flatMap(([, common = '', table]) => {
    const shared = common === '' ? [] : plain(common).split(/ (?=[^ =]+=)/).map((pair) => pair.split('=', 2)); // prettier-ignore
    const heads = [...table.matchAll(/<th[^>]*>(.*?)<\/th>/gs)].map(([, text]) => plain(text));
    return [...table.matchAll(/<tr>(<td.*?)<\/tr>/gs)].map(([, row]) => {
      const texts = [...row.matchAll(/<td[^>]*>(.*?)<\/td>/gs)].map(([, text]) => plain(text));
      assert.equal(texts.length, heads.length);
      const cells = new Map([...shared, ...heads.slice(0, -1).map((head, i) => [head, texts[i]])] as [
        string,
        string,
      ][]);
      return { cells, source: texts.at(-1)! };
    });
  });
}

/** "a.jsonl:1-3,7" is lines 1, 2, 3 and 7 of a.jsonl. */
function linesOf(source: string): Result[] {
  const [file, ranges] = source.split(':');
  return ranges.split(',').flatMap((range) => {
    const [from, to = from] = range.split('-').map(Number);
    return Array.from({ length: to - from + 1 }, (_, i) => {
      const result = results.get(`${file}:${from + i}`);
      assert.ok(result, `${source} is in the file`);
      return result;
    });
  });
}

function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const half = sorted.length / 2;
  return Number.isInteger(half) ? (sorted[half - 1] + sorted[half]) / 2 : sorted[Math.floor(half)];
}

/** The bucket of a percentile, counted from the pairs of the file, and whether a time is in it. */
function isPercentile(
  time: number,
  percent: number,
  { count, buckets, max }: NonNullable<Result['histogram']>,
): boolean {
  let left = Math.ceil((percent / 100) * count - 1e-6);
  for (const [lower, times] of buckets) {
    left -= times;
    if (left > 0) continue;
    const width = lower < 256 ? 1 : 2 ** Math.floor(Math.log2(lower)) / 128;
    return time >= lower && time <= Math.min(max, lower + width);
  }
  return false;
}

/** What must stand under a heading for a result; undefined when the heading is none that a line explains. */
function expected(head: string, result: Result): string | undefined {
  const { cell, metrics, histogram, samples } = result;
  const name = head.replace(/ \([^)]*\)$/, '');
  if (head === 'repeat') return String(result.repeat);
  if (Object.hasOwn(cell, head)) return String(cell[head]);
  if (Object.hasOwn(metrics, name)) return formatNumber(metrics[name], Number.isInteger(metrics[name]) ? 9 : 5);
  // 84 bytes of 64 and what every frame costs beside: 10^10 / 672 frames a second.
  const line = (result.link_gbps! * 1e3) / (8 * ((cell.size as number) + 20));
  if (name === 'line rate') return formatNumber(line, 5);
  const metric = /^(\w+) % of line rate$/.exec(head)?.[1];
  if (metric !== undefined) return metric in metrics ? formatNumber((100 * metrics[metric]) / line, 4) : '';
  const sampled = /^readings of (\w+)/.exec(head)?.[1];
  if (sampled !== undefined) return samples![sampled].map((value) => formatNumber(value, 5)).join(' ');
  if (histogram === undefined) return undefined;
  if (head === 'frames') return formatNumber(histogram.count, 9);
  if (head === 'min' || head === 'max') return formatTime(histogram[head]);
  const percent = /^p([\d.]+)$/.exec(head)?.[1];
  if (percent === undefined) return undefined;
  const time = Histogram.fromJSON(histogram).percentile(Number(percent));
  return isPercentile(time, Number(percent), histogram) ? formatTime(time) : 'not this percentile';
}

describe('every number of a page is that of the lines it names', () => {
  it('tables: settings, metrics, shares of line rate, percentiles, readings; every line has its row', () => {
    const seen = new Set<string>();
    const heads = new Set<string>();
    for (const [id, section] of sections) {
      if (id === 'compare' || id === 'surroundings') continue;
      for (const { cells, source } of rowsOf(section)) {
        const result = results.get(source);
        assert.ok(result, `${source} is a line of the file`);
        seen.add(source);
        for (const [head, text] of cells) {
          heads.add(head);
          assert.equal(text, expected(head, result) ?? (text === '' ? '' : undefined), `${id}, ${source}: ${head}`);
        }
        for (const [axis, value] of Object.entries(result.cell)) assert.equal(cells.get(axis), String(value));
      }
    }
    assert.deepEqual([...seen].sort(), [...results.keys()].filter((place) => place.startsWith('after')).sort());
    for (const head of ['p99.99', 'max', 'mpps % of line rate', 'readings of gbps (Gbit/s)'])
      assert.ok(heads.has(head), head);
  });

  it('heat map: each cell is the median of the lines in its tooltip, and every line is in one cell', () => {
    const section = sections.get('matrix-mpps')!;
    const wide = section.slice(0, section.indexOf('<div class="narrow">'));
    const cells = [
      ...wide.matchAll(/<g><title>([\d.]+) Mpps \(([^)]+)\)<\/title><rect class="heat[^>]*><text[^>]*>([^<]+)</g),
    ];
    assert.equal(cells.length, 4 * 2 * 3);
    const lines = cells.flatMap(([, exact, source, shown]) => {
      const group = linesOf(source);
      assert.equal(new Set(group.map(({ cell }) => JSON.stringify(cell))).size, 1, source);
      const value = median(group.map(({ metrics }) => metrics.mpps));
      assert.deepEqual([exact, shown], [formatNumber(value), formatNumber(value, 3)], source);
      return group;
    });
    const matrix = [...results].filter(([place, { kind }]) => place.startsWith('after') && kind === 'matrix');
    assert.deepEqual(new Set(lines), new Set(matrix.map(([, result]) => result)));
    assert.equal(lines.length, matrix.length);
  });

  for (const [id, unit, value] of [
    ['mpps', 'Mpps', ({ metrics }) => ('mpps' in metrics ? metrics.mpps : metrics.ndr_mpps)],
    ['loss', 'loss ratio', ({ metrics }) => metrics.loss],
    ['burst', 'frames', ({ metrics }) => metrics.burst_frames],
  ] as [string, string, (result: Result) => number][]) {
    it(`${id}: each point is the median of the lines in its tooltip`, () => {
      const titles = [
        ...sections.get(id)!.matchAll(new RegExp(`<title>[^:<]+: ([^<]+) ${unit} \\(([^)]+)\\)</title>`, 'g')),
      ];
      assert.ok(titles.length >= 7);
      for (const [title, shown, source] of titles) {
        const group = linesOf(source);
        const candidates = [value, ({ metrics }: Result) => metrics.pdr_mpps].map((of) =>
          formatNumber(median(group.map(of))),
        );
        assert.ok(candidates.includes(shown), title);
      }
    });
  }

  it('comparison: medians, change and interval follow from the lines, and the plot says what the table says', () => {
    const section = sections.get('compare')!;
    const rows = rowsOf(section).filter(({ cells }) => cells.get('before (n)')?.endsWith('(8)'));
    assert.equal(rows.length, 7 * 2 + 4 * 2 * 3);
    const drawn = new Set([...section.matchAll(/<title>([^<]+ → [^<]+)<\/title>/g)].map(([, source]) => source));
    // As many as fit on a page of paper.
    assert.equal(drawn.size, 30);
    for (const { cells, source } of rows) {
      const [before, after] = source.split(' → ').map((side) => linesOf(side).map(({ metrics }) => metrics.mpps));
      assert.equal(cells.get('before (n)'), `${formatNumber(median(before))} (8)`);
      assert.equal(cells.get('after (n)'), `${formatNumber(median(after))} (8)`);
      const ratios = before.flatMap((x) => after.map((y) => y / x)).sort((a, b) => a - b);
      assert.equal(cells.get('change'), formatChange(median(ratios) - 1), source);
      // Of 8 and 8 values U = 13 is significant at 5 %, 14 is not (Siegel and Castellan): 14 pairs are outside at each end.
      const interval = [ratios[13], ratios[50]].map((ratio) => formatChange(ratio - 1)).join(' to ');
      assert.equal(cells.get('95 % interval'), interval, source);
      if (!drawn.has(source)) continue;
      assert.ok(section.includes(`>${cells.get('change')}  ${cells.get('verdict')}</text>`), source);
    }
  });
});
