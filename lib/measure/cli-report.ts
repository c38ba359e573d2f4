import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { UsageError } from '../errors.js';
import { terminal, withUsage, type Output } from './cli.js';
import { compare } from './compare.js';
import { htmlReport } from './html.js';
import { markdownReport, standaloneSvg } from './markdown.js';
import { makeReport } from './report.js';
import { readResults, type ResultLine } from './results.js';

const HELP = `usage: measure report [options] RESULTS...

Draws what result files hold: throughput by frame size against line rate, latency percentiles, loss, matrix, readings,
and, with --before, how they compare. Every number names the file and line that it comes from.

  --html FILE       one page that needs nothing else: no script, no network ("-" for standard output)
  --markdown        tables as Markdown on standard output
  --svg FOLDER      one SVG file a plot; with --markdown, the tables refer to them
  --before FILE     compare the results with those of FILE
  --title TEXT      heading (default: Measurements)
  -h, --help        print this

exit code: 0 done, 2 wrong usage
`;

/** Width of plots in files of their own, in px. */
const SVG_WIDTH = 880;

function write(file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (error) {
    throw new UsageError(`${file}: cannot write there: ${(error as Error).message}`);
  }
}

/** `measure report`. Returns the exit code. */
export function runReport(args: string[], io: Output = terminal): number {
  return withUsage('measure report', io, () => {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: {
        html: { type: 'string' },
        markdown: { type: 'boolean', default: false },
        svg: { type: 'string' },
        before: { type: 'string' },
        title: { type: 'string', default: 'Measurements' },
        help: { type: 'boolean', short: 'h', default: false },
      },
    });
    if (values.help) {
      io.out(HELP);
      return 0;
    }
    if (positionals.length === 0) throw new UsageError('no result file given: name one or more');
    const { html, markdown, svg, title } = values;
    if (html === undefined && svg === undefined && !markdown) {
      throw new UsageError('no form of report given: add --html FILE, --markdown or --svg FOLDER');
    }
    const read = (file: string): ResultLine[] => {
      const { lines, notices } = readResults(file);
      for (const notice of notices) io.err(`${notice}\n`);
      return lines;
    };
    const lines = positionals.flatMap(read);
    if (lines.length === 0) throw new UsageError(`${positionals.join(', ')}: no result in there`);
    const report = makeReport(lines, values.before === undefined ? undefined : compare(read(values.before), lines));
    const svgFile = (id: string): string => join(svg ?? '', `${id}.svg`);
    if (svg !== undefined) {
      try {
        mkdirSync(svg, { recursive: true });
      } catch (error) {
        throw new UsageError(`--svg ${svg}: cannot make that folder: ${(error as Error).message}`);
      }
      for (const { id, draw } of report.figures) if (draw) write(svgFile(id), standaloneSvg(draw(SVG_WIDTH)));
    }
    if (markdown) io.out(markdownReport(report, title, svg === undefined ? undefined : svgFile));
    if (html === '-') io.out(htmlReport(report, title));
    else if (html !== undefined) write(html, htmlReport(report, title));
    return 0;
  });
}
