import type { Table } from './report-table.js';

/** One plot with the tables that it is drawn from; the last column of a table names file and line of each row. */
export interface Figure {
  /** Letters, digits and hyphens; unique within the report. */
  id: string;
  title: string;
  /** How to read it, and what is assumed. */
  caption: string;
  /** Draws for a width in px. Absent where a table says it better. */
  draw?: (width: number) => string;
  tables: Table[];
}
