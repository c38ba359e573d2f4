import type { Figure } from './figure.js';
import { countText } from '../../text/format.js';
import type { Report } from './report.js';
import type { Table } from './report-table.js';
import type { InterfaceSettings, Surroundings } from '../results/surroundings.js';
import { CHART_STYLE, escape } from './svg.js';

/** Widths in px that plots are drawn for; the page shows the one that suits the window. */
const WIDE = 880;
const NARROW = 352;

const STYLE = `
:root{color-scheme:light dark;--paper:#fff;--page:#f4f6f9;--text:#1c2330;--muted:#5a6474;--rule:#dde2ea;--accent:#0060a0;--more:#9aa5b5}
@media screen and (prefers-color-scheme:dark){:root{--paper:#161b22;--page:#0d1117;--text:#e8ecf2;--muted:#a3adbb;--rule:#313946;--accent:#7cc4f5;--more:#5c6778}}
*{box-sizing:border-box}
body{margin:0;background:var(--page);color:var(--text);font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Liberation Sans",sans-serif}
main,header,nav,footer{max-width:960px;margin:0 auto;padding:0 40px}
header{padding-top:48px}
h1{font-size:2rem;line-height:1.2;letter-spacing:-.015em;margin:0 0 4px}
h2{font-size:1.3rem;line-height:1.3;letter-spacing:-.01em;margin:0 0 6px}
h3{font-size:1rem;margin:24px 0 8px}
p{margin:0 0 16px}
.muted,figcaption{color:var(--muted)}
figcaption{font-size:.875rem;margin-bottom:18px;max-width:72ch}
nav ul{display:flex;flex-wrap:wrap;gap:4px 20px;list-style:none;margin:20px 0 0;padding:0;font-size:.9375rem}
a{color:var(--accent);text-underline-offset:3px;text-decoration-thickness:1px}
section{background:var(--paper);border:1px solid var(--rule);border-radius:10px;padding:28px 39px 20px;margin:24px -40px}
figure{margin:0}
svg.chart{display:block;width:100%;height:auto}
.narrow{display:none;max-width:560px;margin:0 auto}
.scroll{overflow:auto;max-height:440px;margin:20px 0 8px;background:linear-gradient(to right,var(--paper),var(--paper)) 0 0/24px 100% no-repeat local,linear-gradient(to left,var(--paper),var(--paper)) 100% 0/24px 100% no-repeat local,linear-gradient(to right,var(--more),transparent) 0 0/12px 100% no-repeat scroll,linear-gradient(to left,var(--more),transparent) 100% 0/12px 100% no-repeat scroll}
.scroll:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
caption{text-align:left;color:var(--muted);padding:0 0 4px}
table{border-collapse:collapse;font-size:.8125rem;line-height:1.4;font-variant-numeric:tabular-nums;min-width:50%}
th,td{padding:6px 16px 6px 0;text-align:left;vertical-align:top;white-space:nowrap;border-bottom:1px solid var(--rule)}
thead th{color:var(--muted);font-weight:600;border-bottom-color:var(--muted);vertical-align:bottom;position:sticky;top:0;background:var(--paper)}
.common{font-size:.8125rem;color:var(--muted);margin:16px 0 0;overflow-wrap:anywhere}.common+.scroll{margin-top:8px}
thead th{white-space:normal}.n{text-align:right}.long{white-space:normal;min-width:16rem}
.source{font-family:ui-monospace,"SF Mono",Menlo,Consolas,"Liberation Mono",monospace;font-size:.75rem;color:var(--muted);padding-right:0}
dl{display:grid;grid-template-columns:max-content 1fr;gap:4px 24px;margin:0 0 16px;font-size:.9375rem}
dt{color:var(--muted)}hr{border:0;border-top:1px solid var(--rule)}
dd{margin:0;overflow-wrap:anywhere}
footer{padding-top:8px;padding-bottom:48px;font-size:.8125rem;color:var(--muted)}
@media (max-width:1040px){section{margin-left:0;margin-right:0}main,header,nav,footer{padding-left:24px;padding-right:24px}section{padding:24px 23px 16px}}
@media (max-width:760px){
main,header,nav,footer{padding-left:12px;padding-right:12px}header{padding-top:24px}h1{font-size:1.5rem}section{padding:18px 11px 12px;margin:16px 0}
.wide{display:none}.narrow{display:block}dl{grid-template-columns:1fr;gap:0}dd{margin-bottom:8px}
}
@media print{
@page{margin:14mm}:root{color-scheme:light;--page:#fff}body{font-size:10.5pt}svg.chart{print-color-adjust:exact;-webkit-print-color-adjust:exact}
main,header,footer{max-width:none;padding-left:0;padding-right:0}header{padding-top:0}nav{display:none}
section{border:0;border-radius:0;border-top:1px solid var(--rule);margin:0;padding:16px 0 8px}figure svg,h2,h3,tr,figcaption{break-inside:avoid}figcaption{max-width:none}h2,h3,figcaption,.common{break-after:avoid}
.wide{display:block}.narrow{display:none}.scroll{overflow:visible;max-height:none}table{font-size:8pt}thead th{position:static}
th,td{padding:3px 10px 3px 0}td{white-space:normal}.n{white-space:nowrap}td:not(.n):first-child{min-width:11em}.long{min-width:10em}.source{font-size:7pt;overflow-wrap:break-word}
.many{font-size:6.5pt}.many th,.many td{padding-right:6px}.many .source{font-size:6pt;overflow-wrap:anywhere;min-width:7em}
dl{grid-template-columns:max-content 1fr;gap:2px 24px}dd{margin:0}hr{margin:8px 0}
}`;

/** A heading may break behind an underscore. */
const breaking = (text: string): string => escape(text).replaceAll('_', '_<wbr>');

function table(of: string, { title, common, head, numeric, rows }: Table): string {
  const name = escape(`${of}${title === undefined ? '' : `, ${title}`}: ${countText(rows.length, 'row')}`);
  const last = head.length - 1;
  const style = (column: number, text: string): string => {
    if (column === last) return ' class="source"';
    return numeric[column] ? ' class="n"' : text.length > 30 ? ' class="long"' : '';
  };
  const heads = head.map(
    (text, column) => `<th scope="col"${numeric[column] ? ' class="n"' : ''}>${breaking(text)}</th>`,
  );
  const body = rows.map(
    (row) => `<tr>${row.map((text, i) => `<td${style(i, text)}>${escape(text)}</td>`).join('')}</tr>`,
  );
  const above = [
    title === undefined ? '' : `<h3>${escape(title)}</h3>`,
    common === undefined ? '' : `<p class="common">In every row: ${escape(common)}</p>`,
  ];
  return `${above.join('')}<div class="scroll" role="region" aria-label="${name}" tabindex="0"><table${head.length > 12 ? ' class="many"' : ''}><caption>${name}</caption><thead><tr>${heads.join('')}</tr></thead><tbody>${body.join('\n')}</tbody></table></div>`;
}

function figure({ id, title, caption, draw, tables }: Figure): string {
  const plots = draw ? `<div class="wide">${draw(WIDE)}</div><div class="narrow">${draw(NARROW)}</div>` : '';
  return `<section id="${id}"><figure><h2>${escape(title)}</h2><figcaption>${escape(caption)}</figcaption>${plots}${tables.map((numbers) => table(title, numbers)).join('')}</figure></section>`;
}

/** What is known of an interface, in words: `driver ixgbe`, `rings rx 2048, tx 1024 slots`… */
function settings({ driver, mtu, gbps, rings, offloads, moderation, error }: InterfaceSettings): string {
  const named = (values: Record<string, number | boolean>): string =>
    Object.entries(values)
      .map(([name, value]) => `${name} ${typeof value === 'boolean' ? (value ? 'on' : 'off') : value}`)
      .join(', ');
  const parts = [
    driver === undefined ? '' : `driver ${driver}`,
    gbps === undefined ? '' : `${gbps} Gbit/s`,
    mtu === undefined ? '' : `MTU ${mtu}`,
    rings ? `rings: rx ${rings.rx}, tx ${rings.tx} slots` : '',
    offloads ? `offloads: ${named(offloads)}` : '',
    moderation ? `moderation: ${named(moderation)}` : '',
    error ?? '',
  ];
  return parts.filter(Boolean).join('; ');
}

/** Surroundings as names and values. */
function surroundingsRows(about: Surroundings): [string, string][] {
  const rows: [string, string | undefined][] = [
    ['host', about.host],
    ['system', [about.system, about.kernel, about.arch].filter(Boolean).join(' ')],
    ['CPU', `${about.cpu}, ${about.cores} logical processors`],
    ['frequency governor', about.governor ?? 'the system does not tell'],
    ['software', `${about.software}, Node.js ${about.node}`],
    ...Object.entries(about.interfaces ?? {}).map(([name, known]): [string, string] => [name, settings(known)]),
  ];
  return rows.filter((row): row is [string, string] => row[1] !== undefined);
}

/** Rows that hold for all results first, then what differs, each with the lines that it holds for. */
export function surroundingsTables({ surroundings }: Report): [string, string][][] {
  const places = surroundings.map(({ about, where }) => ({ rows: surroundingsRows(about), where }));
  const [first, ...others] = places;
  if (others.length === 0) return places.map(({ rows, where }) => [...rows, ['holds for', where]]);
  const same = ([name, value]: [string, string]): boolean =>
    others.every(({ rows }) => rows.some(([other, its]) => other === name && its === value));
  const common = first.rows.filter(same);
  const named = new Set(common.map(([name]) => name));
  return [
    [...common, ['holds for', 'all results']] as [string, string][],
    ...places.map(({ rows, where }): [string, string][] => [
      ...rows.filter(([name]) => !named.has(name)),
      ['holds for', where],
    ]),
  ].filter((rows) => rows.length > 1);
}

function surroundings(report: Report): string {
  if (report.surroundings.length === 0) return '';
  const lists = surroundingsTables(report).map((rows) => {
    return `<dl>${rows.map(([name, value]) => `<dt>${escape(name)}</dt><dd>${escape(value)}</dd>`).join('')}</dl>`;
  });
  return `<section id="surroundings"><h2>Surroundings</h2>${lists.join('<hr>')}</section>`;
}

/** When, from how many results, of which files: one line. */
export function summary({ count, files, before, from, to }: Report): string {
  const day = (time: string): string => `${time.slice(0, 10)} ${time.slice(11, 16)}`;
  const span = day(from) === day(to) ? day(from) : `${day(from)} to ${day(to)}`;
  const earlier = before.length === 0 ? '' : `; compared with ${before.join(', ')}`;
  return `${countText(count, 'result')} from ${files.join(', ')}; measured ${span} UTC${earlier}.`;
}

/** The report as one HTML page that needs nothing else: no script, no network. */
export function htmlReport(report: Report, title: string): string {
  const links = [
    ...report.figures,
    ...(report.surroundings.length > 0 ? [{ id: 'surroundings', title: 'Surroundings' }] : []),
  ];
  return `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
<link rel="icon" href="data:,"><title>${escape(title)}</title><style>${STYLE}${CHART_STYLE}</style></head><body>
<header><h1>${escape(title)}</h1><p class="muted">${escape(summary(report))}</p></header>
<nav aria-label="Contents"><ul>${links.map((link) => `<li><a href="#${link.id}">${escape(link.title)}</a></li>`).join('')}</ul></nav>
<main>
${report.figures.map(figure).join('\n')}
${surroundings(report)}
</main>
<footer>Frame sizes include the 4-byte FCS. The source column names file and line of the result behind each row; a dot's tooltip names the lines behind it.</footer>
</body></html>
`;
}
