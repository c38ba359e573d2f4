/** Inside the machine: `inside.js GROUP…` tries the groups of checks; a row is one line of JSON. */
import { CHECKS, type Row } from './checks.js';

const show = (row: Row): boolean => process.stdout.write(`${JSON.stringify(row)}\n`);
for (const name of process.argv.slice(2))
  try {
    for await (const row of CHECKS.get(name)!()) show(row);
  } catch (error) {
    show({ what: name, ours: (error as Error).message, ok: false });
  }
