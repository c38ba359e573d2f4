/** A column of a table for people: its heading and where its text goes. */
export interface Column {
  head: string;
  align: 'left' | 'right';
}

/** Lines of a plain-text table: headings (one or more words, broken at `\n`), then the rows; widths fit the contents. */
export function table(columns: readonly Column[], rows: readonly (readonly string[])[]): string[] {
  const heads = columns.map(({ head }) => head.split('\n'));
  const height = Math.max(...heads.map((lines) => lines.length));
  const headRows = Array.from({ length: height }, (_, i) =>
    heads.map((lines) => lines[i - height + lines.length] ?? ''),
  );
  const width = columns.map((_, i) => Math.max(...[...headRows, ...rows].map((row) => row[i].length)));
  const line = (row: readonly string[]): string =>
    row
      .map((text, i) => (columns[i].align === 'left' ? text.padEnd(width[i]) : text.padStart(width[i])))
      .join('  ')
      .trimEnd();
  return [...headRows.map(line), ...rows.map(line)];
}
