/** `pcap:IN@out=OUT`: capture files. */
import { unknown } from './port-options.js';
import type { Slice } from './slice.js';

/** Capture files as a port: at least one of `read` and `write` is there. */
export interface PcapSpec {
  readonly kind: 'pcap';
  /** The port name as it was written. */
  readonly text: string;
  /** File whose frames arrive on the rx rings (pcap or pcapng). Does not contain `@out=`. */
  readonly read?: string;
  /** File that what is sent goes to. Does not contain `@out=`. */
  readonly write?: string;
}

const OUT = '@out=';

/** Reads what follows `pcap:`. A file name may contain `@` and `,`: only `@out=` ends it. */
export function parsePcap(body: Slice): PcapSpec {
  const zero = body.text.indexOf('\0');
  if (zero >= 0) body.fail('a file name cannot contain a zero byte', zero);
  const out = body.text.indexOf(OUT);
  const read = out < 0 ? body : body.cut(0, out);
  if (read.text.startsWith('@')) {
    const key = read.cut(1, /[=,]|$/.exec(read.text)!.index);
    key.fail(
      `${unknown(key, 'option', ['out'], ' of a pcap port')} (a file name that begins with @ is written ./@name)`,
    );
  }
  if (out < 0) {
    if (read.text === '') read.fail('a file is missing; expected pcap:IN, pcap:@out=OUT or pcap:IN@out=OUT');
    return { kind: 'pcap', text: body.source, read: read.text };
  }
  const write = body.cut(out + OUT.length);
  if (write.text === '') write.fail("option 'out' needs a value; expected for example out=out.pcap");
  const again = write.text.indexOf(OUT);
  if (again >= 0) write.fail("option 'out' is given twice; expected it once", again + 1);
  return { kind: 'pcap', text: body.source, ...(read.text === '' ? {} : { read: read.text }), write: write.text };
}

/** The canonical form. */
export function formatPcap(spec: PcapSpec): string {
  return `pcap:${spec.read ?? ''}${spec.write === undefined ? '' : OUT + spec.write}`;
}
