import { summary, surroundingsTables } from './html.js';
import type { Report } from './report.js';
import type { Table } from './report-table.js';
import { CHART_STYLE } from './svg.js';

const cell = (text: string): string => text.replaceAll('|', '\\|').replaceAll('<', '&lt;');

function table({ head, numeric, rows }: Pick<Table, 'head' | 'numeric' | 'rows'>): string {
  const line = (cells: readonly string[]): string => `| ${cells.map(cell).join(' | ')} |`;
  const rule = `| ${numeric.map((number) => (number ? '---:' : '---')).join(' | ')} |`;
  return [line(head), rule, ...rows.map(line)].join('\n');
}

/** The report as GitHub-flavoured Markdown: every table, and the plots by the names that `svgFile` gives them, if any. */
export function markdownReport(report: Report, title: string, svgFile?: (id: string) => string): string {
  const parts = [`# ${title}`, summary(report)];
  for (const figure of report.figures) {
    parts.push(`## ${figure.title}`, cell(figure.caption));
    if (figure.draw && svgFile) parts.push(`![${figure.title}](${svgFile(figure.id)})`);
    for (const numbers of figure.tables) {
      if (numbers.title !== undefined) parts.push(`### ${numbers.title}`);
      if (numbers.common !== undefined) parts.push(cell(`In every row: ${numbers.common}`));
      parts.push(table(numbers));
    }
  }
  if (report.surroundings.length > 0) parts.push('## Surroundings');
  for (const rows of surroundingsTables(report)) parts.push(table({ head: ['', ''], numeric: [false, false], rows }));
  return `${parts.join('\n\n')}\n`;
}

/** A chart of the page as a file of its own, with the styles that it needs. */
export function standaloneSvg(chart: string): string {
  return `<?xml version="1.0" encoding="UTF-8"?>\n${chart.replace('>', `><style><![CDATA[${CHART_STYLE}]]></style>`)}\n`;
}
