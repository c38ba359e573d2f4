/**
 * Port names: one grammar for every kind of port.
 *
 *     port    = netmap | vale | xdp | sim | pipe | pcap | interface
 *     netmap  = "netmap:" IF [ "^" | "^" k | "*" | "+" | "-" k | ("{" | "}") pipe [ "-" k ] ] { "/" flags | "@" id } { "@" option }
 *     vale    = "vale" [switch] ":" port …                  and on as for netmap; "netmap:" may stand in front
 *     option  = "share=" port | "conf:" pairs | "extmem:" pairs | "offset:" pairs
 *     xdp     = "xdp:" IF [ "-" queue [ ":" queue ] ] [ "@" pairs ]
 *     sim     = "sim:" name [ "@" pairs ]
 *     pipe    = "pipe:" name ("{" | "}") pipe [ "@" pairs ]
 *     pcap    = "pcap:" [ file ] [ "@" pairs ]              at least one file; a file of pairs is out=file, "-" is
 *                                                           standard input or output
 *     pairs   = key [ "=" value ] { ("," | "@") key [ "=" value ] }
 *
 * A bare interface leaves the choice of the driver to the program; `^`, `*`, `{`, `}` and `/` behind it mean netmap.
 */
import { formatNetmap, parseNetmap, type NetmapSpec } from './netmap-name.js';
import { unknown } from './port-options.js';
import { formatPcap, parsePcap, type PcapSpec } from './pcap-name.js';
import { formatPipe, parsePipe, type PipeSpec } from './pipe-name.js';
import { formatSim, parseSim, type SimSpec } from './sim-name.js';
import { interfaceName, Slice } from './slice.js';
import { formatXdp, parseXdp, type XdpSpec } from './xdp-name.js';

export type { NetmapConf, NetmapExtmem, NetmapMode, NetmapOffset, NetmapSpec } from './netmap-name.js';
export { writesStdout, type PcapSpec } from './pcap-name.js';
export type { PipeSpec } from './pipe-name.js';
export type { SimSpec } from './sim-name.js';
export type { Queues, XdpSpec } from './xdp-name.js';

/** A bare interface: the driver is chosen when it is opened. */
export interface AutoSpec {
  readonly kind: 'auto';
  /** The port name as it was written. */
  readonly text: string;
  /** The interface, 1..15 characters. */
  readonly ifname: string;
}

/** What a port name says. */
export type PortSpec = NetmapSpec | XdpSpec | SimSpec | PipeSpec | PcapSpec | AutoSpec;

const DRIVERS = ['netmap', 'vale', 'xdp', 'sim', 'pipe', 'pcap'] as const;

/** Names that other tools give to what is here. */
const ALIASES: ReadonlyMap<string, string> = new Map([
  ['af_xdp', 'xdp'],
  ['afxdp', 'xdp'],
  ['file', 'pcap'],
  ['nm', 'netmap'],
  ['pcapng', 'pcap'],
]);

function unknownDriver(driver: Slice): never {
  const alias = ALIASES.get(driver.text.toLowerCase());
  if (alias === undefined) return driver.fail(unknown(driver, 'driver', DRIVERS));
  return driver.fail(`unknown driver ${driver.quoted}; did you mean '${alias}'? expected one of ${DRIVERS.join(', ')}`);
}

/** A name without a driver in front. */
function parseBare(name: Slice): NetmapSpec | AutoSpec {
  if (name.text === '')
    name.fail(`it is empty; expected an interface such as eth0, or one of ${DRIVERS.join(', ')} with ':'`);
  if (/\.pcap(ng)?$/.test(name.text)) name.fail(`${name.quoted} looks like a capture file; expected pcap:${name.text}`);
  if (/^[^@]*[\^*{}/]/.test(name.text) || /^[^@]*\+($|@)/.test(name.text) || /^vale\d*$/.test(name.text))
    return parseNetmap(name);
  const at = name.text.indexOf('@');
  if (at > 0) name.fail(`options need a driver in front; expected one of ${DRIVERS.join(', ')} with ':'`, at);
  return { kind: 'auto', text: name.source, ifname: interfaceName(name) };
}

/**
 * Reads a port name.
 * @throws UsageError whose message shows the text with a caret under the offending character, and says what was expected
 */
export function parsePortSpec(text: string): PortSpec {
  const whole = new Slice(text);
  const colon = /^[^@{}^*/]*?:/.exec(text)?.[0].length ?? 0;
  if (colon === 0) return parseBare(whole);
  const driver = whole.cut(0, colon - 1);
  const body = whole.cut(colon);
  switch (driver.text) {
    case 'netmap':
      return parseNetmap(whole);
    case 'xdp':
      return parseXdp(body);
    case 'sim':
      return parseSim(body);
    case 'pipe':
      return parsePipe(body);
    case 'pcap':
      return parsePcap(body);
    default:
      return driver.text.startsWith('vale') ? parseNetmap(whole) : unknownDriver(driver);
  }
}

/** The port name in canonical form; {@link parsePortSpec} reads it back as the same spec. */
export function formatPortSpec(spec: PortSpec): string {
  switch (spec.kind) {
    case 'netmap':
      return formatNetmap(spec);
    case 'xdp':
      return formatXdp(spec);
    case 'sim':
      return formatSim(spec);
    case 'pipe':
      return formatPipe(spec);
    case 'pcap':
      return formatPcap(spec);
    case 'auto':
      return spec.ifname;
  }
}
