import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, it } from 'node:test';
import { constants, inflateSync } from 'node:zlib';
import { runReport } from '../../../lib/cli/measure/cli-report.js';
import { appendResults } from '../../../lib/measure/results/results.js';
import { demoResults } from '../../support/demo.js';
import { isInPath, skipWithout } from '../../support/needs.js';

const browser = ['chromium', 'chromium-browser', 'google-chrome'].find(isInPath) ?? 'chromium';
const skip = skipWithout(browser);

const folder = mkdtempSync(join(tmpdir(), 'page-'));
after(() => {
  rmSync(folder, { recursive: true, force: true });
});

/** Looks at the page from within: the page itself has no script, so this is added to a copy of it. */
const PROBE = `<script>
const visible = [...document.querySelectorAll('svg.chart')].filter((svg) => svg.getBoundingClientRect().width > 0);
const colour = (text) => text.match(/[\\d.]+/g).slice(0, 3).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
const light = (text) => colour(text).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const problems = [];
for (const svg of visible) {
  const id = svg.closest('section').id, frame = svg.getBoundingClientRect();
  const paper = getComputedStyle(svg.querySelector('.bg')).fill;
  const texts = [...svg.querySelectorAll('text')].map((t) => ({ t, text: t.textContent, box: t.getBoundingClientRect() }));
  for (const [i, a] of texts.entries()) {
    if (a.box.left < frame.left - 1 || a.box.right > frame.right + 1) problems.push(id + ': "' + a.text + '" leaves the plot');
    if (!a.t.classList.contains('over') && contrast(getComputedStyle(a.t).fill, paper) < 4.5 && !a.t.closest('g')) problems.push(id + ': "' + a.text + '" is too faint');
    for (const b of texts.slice(i + 1)) {
      const dx = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
      const dy = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
      if (dx > 0.5 && dy > 2) problems.push(id + ': "' + a.text + '" and "' + b.text + '" overlap');
    }
  }
}
const probe = { plots: visible.map((svg) => svg.closest('section').id), problems, dark: light(getComputedStyle(document.body).backgroundColor) < 0.2,
  width: innerWidth, content: document.documentElement.scrollWidth };
parent.postMessage(JSON.stringify(probe), '*');
</script>`;

/** A window is at least 500 px wide; a frame in it is as narrow as wanted. */
const host = (url: string, width: number): string => `<!doctype html><link rel="icon" href="data:,"><body><script>
onmessage = ({ data }) => document.body.append(Object.assign(document.createElement('pre'), { id: 'probe', textContent: data }));
</script><iframe src="${url}" style="border:0;width:${width}px;height:800px"></iframe></body>`;

interface Probe {
  plots: string[];
  problems: string[];
  dark: boolean;
  width: number;
  content: number;
}

function chromium(scheme: 'light' | 'dark', ...args: string[]): { stdout: string; stderr: string } {
  const profile = mkdtempSync(join(folder, 'profile-'));
  const flags =
    '--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking --disable-component-update --disable-sync';
  const run = spawnSync(
    browser,
    [
      ...flags.split(' '),
      `--user-data-dir=${profile}`,
      `--blink-settings=preferredColorScheme=${scheme === 'dark' ? 0 : 1}`,
      ...args,
    ],
    { encoding: 'utf8', maxBuffer: 64e6, timeout: 120_000, killSignal: 'SIGKILL' },
  );
  assert.equal(run.status, 0, run.stderr);
  return run;
}

function open(page: string, width: number, scheme: 'light' | 'dark'): { dom: string; console: string[] } {
  const looks = [`--window-size=${width + 100},900`, '--enable-logging=stderr', '--virtual-time-budget=2000'];
  const { stdout, stderr } = chromium(scheme, ...looks, '--dump-dom', `file://${page}`);
  return { dom: stdout, console: stderr.split('\n').filter((text) => text.includes(':CONSOLE')) };
}

/** Colours that areas and text of a PDF are filled with, as #rrggbb: `r g b rg` in its compressed streams (ISO 32000-1, 8.6.8). */
function filled(pdf: Buffer): Set<string> {
  const colours = new Set<string>();
  const hex = (value: string): string => Math.round(Number(value) * 255).toString(16).padStart(2, '0'); // prettier-ignore
  for (let at = pdf.indexOf('stream\n'); at >= 0; at = pdf.indexOf('stream\n', at + 1)) {
    const dictionary = pdf.subarray(Math.max(0, at - 200), at).toString('latin1');
    if (!/\/FlateDecode[^<]*>>\s*$/.test(dictionary)) continue;
    const text = inflateSync(pdf.subarray(at + 7), { finishFlush: constants.Z_SYNC_FLUSH }).toString('latin1');
    for (const [, ...rgb] of text.matchAll(/([\d.]+) ([\d.]+) ([\d.]+) rg\b/g))
      colours.add(`#${rgb.map(hex).join('')}`);
  }
  return colours;
}

describe('the report in a browser', { skip }, () => {
  const [before, results, page] = ['before.jsonl', 'after.jsonl', 'page.html'].map((name) => join(folder, name));
  appendResults(before, demoResults(1));
  appendResults(results, demoResults(2, 0.97));
  const quiet = { out: () => undefined, err: () => undefined };
  assert.equal(runReport(['--html', page, '--before', before, results], quiet), 0);

  it('says nothing on the console, and would be heard if it did', () => {
    assert.deepEqual(open(page, 1400, 'light').console, []);
    const loud = join(folder, 'loud.html');
    writeFileSync(loud, `${readFileSync(page, 'utf8')}<script>console.error('heard')</script>`);
    assert.equal(open(loud, 1400, 'light').console.length, 1);
  });

  it('prints light on white with its colours, also where the screen is dark', () => {
    const pdf = join(folder, 'page.pdf');
    chromium('dark', `--print-to-pdf=${pdf}`, `file://${page}`);
    const colours = filled(readFileSync(pdf));
    // Okabe and Ito's blue, which shades the heat map, and the text; of the dark scheme neither paper nor text.
    for (const colour of ['#0072b2', '#1c2330', '#ffffff']) assert.ok(colours.has(colour), [...colours].join(' '));
    for (const colour of ['#161b22', '#0d1117', '#e8ecf2']) assert.ok(!colours.has(colour), [...colours].join(' '));
  });

  for (const width of [400, 1400]) {
    for (const scheme of ['light', 'dark'] as const) {
      it(`shows every plot at ${width} px in ${scheme}: nothing overlaps, is cut off or too faint`, () => {
        const probed = join(folder, `probe-${width}-${scheme}.html`);
        writeFileSync(probed, readFileSync(page, 'utf8') + PROBE);
        const framed = join(folder, `frame-${width}-${scheme}.html`);
        writeFileSync(framed, host(`file://${probed}`, width));
        const { dom, console: said } = open(framed, width, scheme);
        assert.deepEqual(said, []);
        const text = /<pre id="probe">(.*?)<\/pre>/s.exec(dom)?.[1] ?? '';
        const probe = JSON.parse(
          text.replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&amp;', '&'),
        ) as Probe;
        assert.deepEqual(probe.plots, [
          'compare',
          'mpps',
          'line-rate',
          'latency',
          'loss',
          'burst',
          'matrix-mpps',
          'samples-gbps',
        ]);
        assert.deepEqual(probe.problems, []);
        assert.equal(probe.dark, scheme === 'dark');
        assert.equal(probe.width, width);
        assert.ok(probe.content <= width, `the page is ${probe.content} px wide`);
      });
    }
  }
});
