/** `npm run test:netmap -- --netmap DIR`: our programs and upstream's on a real netmap kernel, in a virtual machine. */
import { existsSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { table } from '../../lib/text/table.js';
import { buildGuest, runInGuest } from './boot.js';
import { CHECKS, COUNTED, type Row } from './checks.js';

const USAGE = `usage: npm run test:netmap -- --netmap DIR [--guest DIR] [GROUP…]

Builds a virtual machine with netmap's kernel module and upstream's programs (once; Debian 12 on amd64, as root the first
time, 1 GB), boots it, and tries there, beside upstream's: ${[...CHECKS.keys()].join(', ')}.

  --netmap DIR   netmap's sources: git clone https://github.com/luigirizzo/netmap DIR
  --guest DIR    where the machine is made. Default /var/tmp/netmap-guest`;

/** ms for the checks of one boot: without KVM everything takes ten times as long. */
const LIMIT_MS = 45 * 60_000;

function options(): { netmap?: string | undefined; guest: string; groups: string[] } {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { netmap: { type: 'string' }, guest: { type: 'string', default: '/var/tmp/netmap-guest' } },
  });
  const unknown = positionals.filter((name) => !CHECKS.has(name));
  if (unknown.length > 0) throw new Error(`no group is named ${unknown.join(', ')}`);
  return { ...values, groups: positionals.length > 0 ? positionals : [...CHECKS.keys()] };
}

async function main(): Promise<number> {
  const { netmap, guest, groups } = options();
  if (netmap === undefined || !existsSync(netmap)) {
    console.error(
      `test:netmap: skipped, since there are no netmap sources${netmap === undefined ? '' : ` in ${netmap}`}\n\n${USAGE}`,
    );
    return netmap === undefined ? 0 : 2;
  }
  console.log(buildGuest(netmap, guest));
  const rows: Row[] = [];
  const attempt = async (names: string[], counted: boolean): Promise<void> => {
    if (names.length === 0) return;
    try {
      await runInGuest(
        guest,
        [process.execPath, 'dist/test/netmap-guest/inside.js', ...names],
        { limitMs: LIMIT_MS, counted },
        (line) => {
          const row = JSON.parse(line) as Row;
          console.error(`${row.ok ? 'ok' : 'NOT OK'}  ${row.what}: ${row.ours}`);
          rows.push(row);
        },
      );
    } catch (error) {
      rows.push({ what: names.join(', '), ours: (error as Error).message, ok: false });
    }
  };
  await attempt(
    groups.filter((name) => name !== COUNTED),
    false,
  );
  await attempt(
    groups.filter((name) => name === COUNTED),
    true,
  );
  const cells = rows.map(({ what, ours, upstreams, ok }) => [what, ours, upstreams ?? '', ok ? 'ok' : 'NOT OK']);
  console.log(table(['tried', 'ours', "upstream's", ''], cells, () => false));
  return rows.every(({ ok }) => ok) ? 0 : 1;
}

main().then(
  (status) => (process.exitCode = status),
  (error: unknown) => {
    console.error(`test:netmap: ${(error as Error).message}\n\n${USAGE}`);
    process.exitCode = 2;
  },
);
