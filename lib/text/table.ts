/**
 * A plain-text table: headings (one or more words, broken at `\n`), then the rows; widths fit the contents.
 * @param right which columns are set flush right
 */
export function table(
  heads: readonly string[],
  rows: readonly (readonly string[])[],
  right: (column: number) => boolean,
): string {
  const words = heads.map((head) => head.split('\n'));
  const height = Math.max(...words.map((lines) => lines.length));
  const headRows = Array.from({ length: height }, (_, i) =>
    words.map((lines) => lines[i - height + lines.length] ?? ''),
  );
  const all = [...headRows, ...rows];
  const widths = heads.map((_, column) => Math.max(...all.map((row) => row[column].length)));
  const cell = (text: string, i: number): string => (right(i) ? text.padStart(widths[i]) : text.padEnd(widths[i]));
  return all.map((row) => row.map(cell).join('  ').trimEnd()).join('\n');
}
