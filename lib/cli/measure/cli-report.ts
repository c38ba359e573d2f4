import { join } from 'node:path';
import { CommandLine, optionsHelp, type OptionTable } from '../options.js';
import { UsageError } from '../../text/errors.js';
import { helped, parseNames, type Output } from './measure-cli.js';
import { compare } from '../../measure/compare/compare.js';
import { nothingText } from '../../measure/compare/compare-text.js';
import { makeFolder, writeText } from '../../measure/results/files.js';
import { countText } from '../../text/format.js';
import { htmlReport } from '../../measure/report/html.js';
import { markdownReport, standaloneSvg } from '../../measure/report/markdown.js';
import { makeReport } from '../../measure/report/report.js';
import { readResults } from '../../measure/results/results.js';
import type { ResultLine } from '../../measure/results/result.js';

const OPTIONS = {
  html: { value: 'FILE', help: 'One page that needs nothing else: no script, no network; "-" is standard output.' },
  markdown: { help: 'Tables as Markdown on standard output.' },
  svg: { value: 'FOLDER', help: 'One SVG file a plot; with --markdown, the tables refer to them.' },
  before: { value: 'FILE', help: 'Compare the results with those of FILE.' },
  ignore: { value: 'NAMES', help: 'With --before: settings by which cells are not told apart (measure compare -h).' },
  title: { value: 'TEXT', help: 'Heading. Default: Measurements.' },
  help: { short: 'h', help: 'This text.' },
} as const satisfies OptionTable;

const HELP = `Usage: measure report [options] RESULTS…

Draws what result files hold: throughput by frame size against line rate, latency percentiles, loss, matrix, readings,
and, with --before, how they compare. Every number names the file and line that it comes from.

${optionsHelp(OPTIONS)}

Exit code: 0 done, 2 wrong usage.
`;

/** Width of plots in files of their own, in px. */
const SVG_WIDTH = 880;

/** `measure report`. Returns the exit code. @throws UsageError */
export function runReport(args: readonly string[], io: Output): number {
  const line = new CommandLine(OPTIONS, args);
  if (helped(line, io, HELP)) return 0;
  const files = line.positionals;
  if (files.length === 0) throw new UsageError('no result file given; name one or more');
  const [html, svg, before] = [line.read('html', String), line.read('svg', String), line.read('before', String)];
  const ignore = line.read('ignore', parseNames) ?? [];
  if (before === undefined && ignore.length > 0) throw new UsageError('--ignore goes with --before FILE');
  const title = line.read('title', String) ?? 'Measurements';
  if (html === undefined && svg === undefined && !line.has('markdown'))
    throw new UsageError('no form of report given; add --html FILE, --markdown or --svg FOLDER');
  let skipped = 0;
  const read = (file: string): ResultLine[] => {
    const { lines, notices } = readResults(file);
    for (const notice of notices) io.err(`${notice}\n`);
    skipped += notices.length;
    return lines;
  };
  const lines = files.flatMap(read);
  if (lines.length === 0) throw new UsageError(`${files.join(', ')}: no result in there; name a file that has some`);
  const earlier = before === undefined ? undefined : read(before);
  const comparison = earlier && compare(earlier, lines, { ignore });
  if (comparison?.comparisons.length === 0) io.err(`--before ${before}: ${nothingText(comparison)}\n`);
  const report = makeReport(lines, comparison);
  const figures = report.figures.flatMap(({ id, draw }) => (draw ? [{ id, draw }] : []));
  const svgFile = (id: string): string => join(svg ?? '', `${id}.svg`);
  // What is written to standard output says so itself.
  const written: string[] = [];
  if (svg !== undefined) {
    makeFolder(svg);
    for (const { id, draw } of figures) writeText(svgFile(id), standaloneSvg(draw(SVG_WIDTH)));
    written.push(`${svg}: ${countText(figures.length, 'plot')}`);
  }
  if (line.has('markdown')) io.out(markdownReport(report, title, svg === undefined ? undefined : svgFile));
  if (html === '-') io.out(htmlReport(report, title));
  else if (html !== undefined) {
    writeText(html, htmlReport(report, title));
    written.push(`${html}: a page of ${countText(figures.length, 'plot')}`);
  }
  const from = earlier === undefined ? '' : ` and ${countText(earlier.length, 'earlier one')}`;
  const left = skipped === 0 ? '' : `; ${countText(skipped, 'damaged line')} skipped`;
  for (const what of written) io.err(`${what} from ${countText(lines.length, 'result')}${from}${left}\n`);
  return 0;
}
