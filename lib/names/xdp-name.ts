/** `xdp:IF`, `xdp:IF-Q`, `xdp:IF-Q:R`: AF_XDP sockets on a Linux interface. */
import { parseCountWithin } from '../text/units.js';
import {
  field,
  flag,
  integer,
  optionsText,
  orOff,
  readPairs,
  splitOptions,
  withDefaults,
  word,
  type Options,
  type Value,
} from './port-options.js';
import { interfaceName, type Slice } from './slice.js';

/** Hardware queues of an interface: all of them, or `first` to `last`, both included, counted from 0. */
export type Queues = 'all' | { readonly first: number; readonly last: number };

/** A Linux interface through AF_XDP. */
export interface XdpSpec {
  readonly kind: 'xdp';
  /** The port name as it was written. */
  readonly text: string;
  /** The interface, 1..15 characters. */
  readonly ifname: string;
  /** The queues to open, one socket each, 0..4095. Default `all`. */
  readonly queues: Queues;
  /** Where the redirect program runs: in the driver, behind it, or the best the interface grants. Default `auto`. */
  readonly mode: 'native' | 'generic' | 'auto';
  /** Whether frames are copied between driver and UMEM; `auto` takes zero-copy where it is granted. Default `auto`. */
  readonly copy: 'zerocopy' | 'copy' | 'auto';
  /** Slots in each ring: a power of two, 16..65536. Default 2048. */
  readonly slots: number;
  /** Bytes of each UMEM frame. Default 2048. */
  readonly frame: 2048 | 4096;
  /** Frames a busy-poll turn may handle (SO_BUSY_POLL_BUDGET, 16 bits); 0 = no busy polling. Default 0. */
  readonly busyPoll: number;
  /** Network namespace, by its name under /run/netns, in which the interface is looked up. Default: the process's own. */
  readonly netns?: string;
}

const queue = (value: Slice) => value.read((text) => parseCountWithin(text, 0, 4095, 'queue'));

const QUEUES: Value<Queues> = {
  read(value) {
    if (value.text === 'all') return 'all';
    const colon = value.text.indexOf(':');
    if (colon < 0) {
      const only = queue(value);
      return { first: only, last: only };
    }
    const first = queue(value.cut(0, colon));
    const last = queue(value.cut(colon + 1));
    if (last < first) value.fail(`the last queue is below the first; expected ${first} or more`, colon + 1);
    return { first, last };
  },
  write(queues) {
    if (queues === 'all') return 'all';
    return queues.first === queues.last ? String(queues.first) : `${queues.first}:${queues.last}`;
  },
};

function powerOfTwo(value: Slice): number {
  const slots = integer(16, 65536).read(value);
  return Number.isInteger(Math.log2(slots))
    ? slots
    : value.fail(`AF_XDP rings have a power of two of slots, not ${slots}; expected for example 2048`);
}

function netnsName(value: Slice): string {
  const slash = value.text.search(/[/\0]/);
  if (slash >= 0)
    value.fail('a network namespace is given by its name, not a path; expected one that ip netns lists', slash);
  if (value.text === '.' || value.text === '..') value.fail(`${value.quoted} is not the name of a network namespace`);
  return value.text;
}

const OPTIONS: Options<XdpSpec> = new Map([
  field('queue', 'queues', '0:3', 'all', QUEUES),
  field('mode', 'mode', 'native', 'auto', word('native', 'generic', 'auto')),
  flag('zerocopy', 'copy', 'zerocopy', 'auto'),
  flag('copy', 'copy', 'copy', 'auto'),
  field('slots', 'slots', '2048', 2048, { read: powerOfTwo, write: String }),
  field('frame', 'frame', '4096', 2048, {
    read: (value) => (word('2048', '4096').read(value) === '2048' ? 2048 : 4096),
    write: String,
  }),
  field('busy-poll', 'busyPoll', '64', 0, orOff(integer(0, 65535))),
  field('netns', 'netns', 'lab', undefined, { read: netnsName, write: (name) => name }),
]);

/** A hyphen and digits at the end of a name pick queues. */
const QUEUE_SUFFIX = /-(\d[\d:]*)$/;

/** The other reading of `xdp:eth1-0`: an interface of that whole name. Undefined where the text has one reading only. */
export function wholeName({ text, ifname }: XdpSpec): string | undefined {
  const [whole] = text.slice('xdp:'.length).split('@', 1);
  return whole === ifname || whole.includes(':') ? undefined : whole;
}

/** What `xdp:eth1-0` means where no interface has that whole name. Undefined for a name without such an end. */
export function queueReading(ifname: string): { ifname: string; queue: string } | undefined {
  const suffix = QUEUE_SUFFIX.exec(ifname);
  return suffix === null ? undefined : { ifname: ifname.slice(0, suffix.index), queue: suffix[1] };
}

/** Reads what follows `xdp:`. With an option `queue` the name is taken whole, so `veth-1` stays reachable. */
export function parseXdp(body: Slice): XdpSpec {
  const [port, list] = splitOptions(body);
  const whole = list.some(({ text }) => text.startsWith('queue='));
  const suffix = whole ? null : QUEUE_SUFFIX.exec(port.text);
  const spec = withDefaults(OPTIONS, {
    kind: 'xdp',
    text: body.source,
    ifname: interfaceName(suffix === null ? port : port.cut(0, suffix.index)),
  });
  if (suffix !== null) spec.queues = QUEUES.read(port.cut(suffix.index + 1));
  readPairs(list, 'an xdp port', OPTIONS, spec);
  if (spec.copy === 'zerocopy' && spec.mode === 'generic') {
    list
      .find(({ text }) => text === 'zerocopy')
      ?.fail('zero-copy needs the driver; expected mode=native or no mode beside it');
  }
  return spec;
}

/** The canonical form. */
export function formatXdp(spec: XdpSpec): string {
  const pairs = optionsText(OPTIONS, spec);
  if (spec.queues === 'all' && QUEUE_SUFFIX.test(spec.ifname)) {
    return `xdp:${spec.ifname}@queue=all${pairs.replace('@', ',')}`;
  }
  return `xdp:${spec.ifname}${pairs}`;
}
