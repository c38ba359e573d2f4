/** `pcap:IN@out=OUT`: capture files. */
import { field, flag, optionsText, readPairs, unit, word, type Draft, type Options } from './port-options.js';
import type { Slice } from './slice.js';

/** Capture files as a port: at least one of `read` and `write` is there. */
export interface PcapSpec {
  readonly kind: 'pcap';
  /** The port name as it was written. */
  readonly text: string;
  /** File whose frames arrive on the rx rings (pcap or pcapng), `-` for standard input. */
  readonly read?: string;
  /** File that what is sent goes to, `-` for standard output. */
  readonly write?: string;
  /** Format of the file written; default: as its name ends, see {@link formatOf}. */
  readonly format?: 'pcap' | 'pcapng';
  /**
   * What becomes of frames that were captured short: they are left out, filled up with zeros, or sent as if they ended
   * there. Default: from capture to capture they are kept as they are, elsewhere left out.
   */
  readonly short?: 'drop' | 'pad' | 'cut';
  /** The file read is being written: its end is waited at. */
  readonly follow?: boolean;
}

/** The format of a capture file, by its name. */
export function formatOf(path: string): 'pcap' | 'pcapng' {
  return /\.pcapng$/i.test(path) ? 'pcapng' : 'pcap';
}

/** Ways to name the program's standard output. */
const STDOUT = ['-', '/dev/stdout', '/dev/fd/1', '/proc/self/fd/1'];

/** Whether a port writes its frames to standard output. */
export function writesStdout({ write }: PcapSpec): boolean {
  return write !== undefined && STDOUT.includes(write);
}

const OPTIONS: Options<PcapSpec> = new Map([
  field('short', 'short', 'pad', undefined, word('drop', 'pad', 'cut')),
  flag('follow', 'follow', true, undefined),
  field('out', 'write', 'out.pcap', undefined, unit(String)),
  field('format', 'format', 'pcapng', undefined, word('pcap', 'pcapng')),
]);

/** Where an option begins. A file name may contain `@` and `,`: only a known option ends it. */
const OPTION = /[@,](?=(?:short|follow|out|format)(?:[=@,]|$))/g;

/** Compressed files are read and not written; a name that promises one would lie. */
const COMPRESSED = /\.(gz|zst|xz|bz2|lz4)$/i;

/** Reads what follows `pcap:`. */
export function parsePcap(body: Slice): PcapSpec {
  const zero = body.text.indexOf('\0');
  if (zero >= 0) body.fail('a file name cannot contain a zero byte', zero);
  const at = [...body.text.matchAll(OPTION)].find(([separator]) => separator === '@')?.index ?? -1;
  const read = at < 0 ? body : body.cut(0, at);
  const spec: Draft<PcapSpec> = { kind: 'pcap', text: body.source };
  if (read.text.startsWith('@')) {
    const pairs = read.cut(1).split('@,');
    readPairs(pairs, 'a pcap port (a file name that begins with @ is written ./@name)', OPTIONS, spec);
  }
  if (at >= 0) readPairs(pairsOf(body.cut(at)), 'a pcap port', OPTIONS, spec);
  if (read.text !== '') spec.read = read.text;
  checkFiles(spec, body);
  return spec;
}

/** The options of `@key=value,key=value…`, each up to where the next begins. */
function pairsOf(list: Slice): Slice[] {
  const starts = [...list.text.matchAll(OPTION)].map(({ index }) => index + 1);
  return starts.map((start, i) => list.cut(start, i + 1 < starts.length ? starts[i + 1] - 1 : undefined));
}

function checkFiles({ read, write, short, follow, format }: PcapSpec, body: Slice): void {
  if (read === undefined && write === undefined)
    body.fail('a file is missing; expected pcap:IN, pcap:@out=OUT or pcap:IN@out=OUT');
  if (read === undefined && (short !== undefined || follow !== undefined))
    body.fail('@short and @follow are about the file that is read, and none is named; expected pcap:IN@…');
  if (write === undefined && format !== undefined)
    body.fail('@format is about the file that is written, and none is named; expected @out=OUT');
  if (write !== undefined && COMPRESSED.test(write)) {
    const tool = /\.zst$/i.test(write) ? 'zstd' : 'gzip';
    body.fail(`captures are not compressed when they are written; write @out=- and pipe it: … | ${tool} > FILE`);
  }
}

/** The canonical form. */
export function formatPcap(spec: PcapSpec): string {
  return `pcap:${spec.read ?? ''}${optionsText(OPTIONS, spec)}`;
}
