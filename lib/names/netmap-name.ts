/**
 * `netmap:IF…` and `valeS:P…`: ports of the kernel's netmap. The forms are those of netmap(4) and of netmap's own
 * library (libnetmap.h, nmport_open); interface names may also contain hyphens here.
 */
import { parseCountWithin } from '../text/units.js';
import { field, integer, readPairs, unknown, writePairs, type Draft, type Options } from './port-options.js';
import { pipeId } from './pipe-name.js';
import { interfaceName, type Slice } from './slice.js';

/** Which rings of a port are opened. `one-…` opens the ring pair `ring` alone. */
export type NetmapMode = 'nic' | 'host' | 'one-host' | 'nic-host' | 'one-nic' | 'pipe-master' | 'pipe-slave';

/** Numbers of rings (1..65535) and of slots a ring (1..65536) to ask the kernel for; NICs ignore them, VALE ports and pipes do not. */
export interface NetmapConf {
  /** Ring pairs. */
  readonly rings?: number;
  /** Tx rings; goes before `rings`. */
  readonly txRings?: number;
  /** Rx rings; goes before `rings`. */
  readonly rxRings?: number;
  /** Host ring pairs. */
  readonly hostRings?: number;
  /** Host tx rings; goes before `hostRings`. */
  readonly hostTxRings?: number;
  /** Host rx rings; goes before `hostRings`. */
  readonly hostRxRings?: number;
  /** Slots in each ring. */
  readonly slots?: number;
  /** Slots in each tx ring; goes before `slots`. */
  readonly txSlots?: number;
  /** Slots in each rx ring; goes before `slots`. */
  readonly rxSlots?: number;
}

/** Memory of the user's own, in a file, for rings and buffers. Numbers left out are the kernel's choice. */
export interface NetmapExtmem {
  /** The file to map. */
  readonly file: string;
  /** Objects in the pool of netmap_if. */
  readonly ifNum?: number;
  /** Bytes of each netmap_if object. */
  readonly ifSize?: number;
  /** Objects in the pool of rings. */
  readonly ringNum?: number;
  /** Bytes of each ring object. */
  readonly ringSize?: number;
  /** Buffers. */
  readonly bufNum?: number;
  /** Bytes of each buffer. */
  readonly bufSize?: number;
}

/** Where frames begin in their buffers. */
export interface NetmapOffset {
  /** First and greatest offset in bytes, 0..65535. */
  readonly initial: number;
  /** Bits of a slot's `ptr` that hold the offset, 1..64; left out, the kernel chooses. */
  readonly bits?: number;
}

/** A port of the kernel's netmap. */
export interface NetmapSpec {
  readonly kind: 'netmap';
  /** The port name as it was written. */
  readonly text: string;
  /** The bare name that the kernel takes (`nr_name`): `ix0`, `ix0{1`, `vale0:a`. */
  readonly name: string;
  /**
   * The rings to open. For the two pipe modes the kernel knows the end by `name` alone and refuses nr_mode 5 and 6
   * (deprecated in netmap.h, API 14): register with ALL_NIC, or ONE_NIC when `ring` is there.
   */
  readonly mode: NetmapMode;
  /** The ring pair of `one-nic`, `one-host` or, when there, of a pipe end; 0..4094. */
  readonly ring?: number;
  /** The pipe's id, 1..15 letters, digits or underscores, for the two pipe modes (it is part of `name` too). */
  readonly pipe?: string;
  /** Whether the port is one of a VALE switch. */
  readonly vale: boolean;
  /** `/x`: nobody else may open it. */
  readonly exclusive: boolean;
  /** `/R`: rx rings only. */
  readonly rxOnly: boolean;
  /** `/T`: tx rings only. */
  readonly txOnly: boolean;
  /** `/t`: a monitor of what is sent. */
  readonly monitorTx: boolean;
  /** `/r`: a monitor of what arrives. */
  readonly monitorRx: boolean;
  /** `/z`: the monitor takes the frames themselves, not copies. */
  readonly zcopyMonitor: boolean;
  /** `@id`: memory region, 1..65535. */
  readonly memId?: number;
  /** `@share=PORT`: the netmap port whose memory region to use. */
  readonly share?: string;
  /** `@conf:…`: geometry to ask for. */
  readonly conf?: NetmapConf;
  /** `@extmem:…`: memory of the user's own. */
  readonly extmem?: NetmapExtmem;
  /** `@offset:…`: where frames begin in their buffers. */
  readonly offset?: NetmapOffset;
}

const ringNumber = (value: Slice) => value.read((text) => parseCountWithin(text, 0, 4094, 'ring')); // NETMAP_RING_MASK is 0xfff
const RINGS = integer(1, 65535);
const SLOTS = integer(1, 65536);
const OBJECTS = integer(1, 0xffffffff);

const CONF: Options<NetmapConf> = new Map([
  field('rings', 'rings', '2', undefined, RINGS),
  field('tx-rings', 'txRings', '2', undefined, RINGS),
  field('rx-rings', 'rxRings', '2', undefined, RINGS),
  field('host-rings', 'hostRings', '1', undefined, RINGS),
  field('host-tx-rings', 'hostTxRings', '1', undefined, RINGS),
  field('host-rx-rings', 'hostRxRings', '1', undefined, RINGS),
  field('slots', 'slots', '1024', undefined, SLOTS),
  field('tx-slots', 'txSlots', '1024', undefined, SLOTS),
  field('rx-slots', 'rxSlots', '1024', undefined, SLOTS),
]);

const EXTMEM: Options<NetmapExtmem> = new Map([
  field('file', 'file', '/dev/hugepages/netmap', '', { read: (value) => value.text, write: (file) => file }),
  field('if-num', 'ifNum', '2', undefined, OBJECTS),
  field('if-size', 'ifSize', '1024', undefined, OBJECTS),
  field('ring-num', 'ringNum', '8', undefined, OBJECTS),
  field('ring-size', 'ringSize', '36864', undefined, OBJECTS),
  field('buf-num', 'bufNum', '8192', undefined, OBJECTS),
  field('buf-size', 'bufSize', '2048', undefined, OBJECTS),
]);

const OFFSET: Options<NetmapOffset> = new Map([
  field('initial', 'initial', '64', -1, integer(0, 65535)),
  field('bits', 'bits', '16', undefined, integer(1, 64)),
]);

type Flag = 'exclusive' | 'rxOnly' | 'txOnly' | 'monitorTx' | 'monitorRx' | 'zcopyMonitor';
const FLAGS: ReadonlyMap<string, Flag> = new Map([
  ['x', 'exclusive'],
  ['R', 'rxOnly'],
  ['T', 'txOnly'],
  ['z', 'zcopyMonitor'],
  ['t', 'monitorTx'],
  ['r', 'monitorRx'],
]);
const FLAG_HELP =
  'x (exclusive), R (rx rings only), T (tx rings only), t or r (monitor tx or rx) or z (zero-copy monitor)';

const OPTION_NAMES = ['share', 'conf', 'extmem', 'offset'] as const;

/** A body `key=value,…` behind `@conf:`; a first value alone belongs to `first`, and `key=VALUE` becomes one of `options`. */
function readBody<S>(
  option: Slice,
  name: string,
  first: string | undefined,
  options: Options<S>,
  spec: Draft<S>,
): void {
  const example = [...options.values()][0].example;
  const separator = option.text.at(name.length);
  if (separator === undefined)
    option.fail(`option '${name}' needs a value; expected for example ${name}:${example}`, name.length);
  if (separator === '=' && first === undefined) {
    option.fail(`option '${name}' takes a list behind ':'; expected for example ${name}:${example}`, name.length);
  }
  let list = option.cut(name.length + 1).split(',');
  const head = list[0];
  if (first !== undefined && head.text !== '' && !options.has(/^[^=]*/.exec(head.text)![0].replaceAll('_', '-'))) {
    options.get(first)!.read(spec, head, head);
    list = list.slice(1);
    for (const pair of list) {
      if (pair.text.startsWith(`${first}=`)) pair.fail(`option '${first}' is given twice; expected it once`);
    }
  }
  readPairs(list, name, options, spec);
  if (first !== undefined && options.get(first)!.write(spec) === undefined) {
    option.fail(`option '${name}' needs '${first}'; expected for example ${name}:${example}`, name.length + 1);
  }
}

function readOption(option: Slice, spec: Draft<NetmapSpec>): void {
  const key = option.cut(0, /[:=]|$/.exec(option.text)!.index);
  const name = OPTION_NAMES.find((known) => known === key.text);
  if (name === undefined)
    return key.fail(unknown(key, 'option', [...OPTION_NAMES, 'a memory id'], ' of a netmap port'));
  if (spec[name] !== undefined) key.fail(`option ${key.quoted} is given twice; expected it once`);
  switch (name) {
    case 'share': {
      if (option.text[name.length] !== '=') {
        option.fail("option 'share' needs a port; expected for example share=netmap:ix0", name.length);
      }
      const port = option.cut(name.length + 1);
      parseNetmap(port);
      spec.share = port.text;
      break;
    }
    case 'conf':
      readBody(option, name, undefined, CONF, (spec.conf = {}));
      break;
    case 'extmem':
      readBody(option, name, 'file', EXTMEM, (spec.extmem = { file: '' }));
      break;
    case 'offset':
      readBody(option, name, 'initial', OFFSET, (spec.offset = { initial: -1 }));
      break;
  }
}

function readFlags(flags: Slice, spec: Draft<NetmapSpec>): void {
  if (flags.text === '') flags.fail(`flags are missing behind '/'; expected ${FLAG_HELP}`);
  for (let i = 0; i < flags.text.length; i++) {
    const one = flags.cut(i, i + 1);
    const name = FLAGS.get(one.text);
    if (name === undefined) return one.fail(`unknown flag ${one.quoted}; expected ${FLAG_HELP}`);
    spec[name] = true;
  }
  if (spec.rxOnly && spec.txOnly)
    flags.fail('flags R and T together leave no ring open; expected one of them, or none for both sides');
  if (spec.zcopyMonitor && !spec.monitorTx && !spec.monitorRx) {
    flags.fail('flag z needs a side to monitor; expected t, r or both beside it', flags.text.indexOf('z'));
  }
}

/** Reads what stands behind the name: `^`, `^k`, `*`, `+`, `-k`. */
function readRings(rings: Slice, spec: Draft<NetmapSpec>): void {
  const sign = rings.text.at(0);
  const number = rings.cut(1);
  if (sign === undefined) return;
  if (spec.pipe !== undefined && sign !== '-') rings.fail(`a pipe has no host rings; expected -k, '/', '@' or the end`);
  if (sign === '*' || sign === '+') {
    if (number.text !== '') number.fail(`nothing can follow '${sign}' but '/' with flags or '@' with options`);
    spec.mode = 'nic-host';
  } else if (sign === '^' && number.text === '') {
    spec.mode = 'host';
  } else {
    spec.ring = ringNumber(number);
    if (spec.pipe === undefined) spec.mode = sign === '^' ? 'one-host' : 'one-nic';
  }
}

/** Reads the name and its rings: everything before flags and options. */
function readPort(port: Slice, spec: Draft<NetmapSpec>): void {
  // A hyphen is part of an interface name unless only digits follow it.
  const mark = /[*+^].*|-\d+$/s.exec(port.text)?.index ?? port.text.length;
  const base = port.cut(0, mark);
  const colon = base.text.indexOf(':');
  const brace = base.text.search(/[{}]/);
  const end = brace < 0 ? base.text.length : brace;
  spec.vale = colon >= 0;
  if (spec.vale) {
    const name = base.cut(0, colon);
    if (!name.text.startsWith('vale'))
      name.fail(`unknown driver ${name.quoted}; expected an interface or a VALE port such as vale0:a`);
    name.only('A-Za-z0-9_', "a VALE switch's name", 'letters, digits or underscore');
    if (name.text.length > 15) name.fail(`a VALE switch's name has at most 15 characters, not ${name.text.length}`, 15);
    // The kernel knows a port without a name too.
    const port = base.cut(colon + 1, Math.max(end, colon + 1));
    if (port.text !== '') interfaceName(port, "a VALE port's name");
  } else {
    const name = base.cut(0, end);
    if (/^vale\d*$/.test(name.text))
      name.fail(`the port of switch ${name.quoted} is missing; expected for example ${name.text}:a`, end);
    interfaceName(name);
  }
  if (brace >= 0) {
    spec.pipe = pipeId(base.cut(brace + 1));
    spec.mode = base.text[brace] === '{' ? 'pipe-master' : 'pipe-slave';
  }
  spec.name = base.text;
  readRings(port.cut(mark), spec);
}

/** Reads a netmap port, with or without `netmap:` in front. */
export function parseNetmap(whole: Slice): NetmapSpec {
  const body = whole.text.startsWith('netmap:') ? whole.cut(7) : whole;
  const spec: Draft<NetmapSpec> = {
    kind: 'netmap',
    text: body.source,
    name: '',
    mode: 'nic',
    vale: false,
    exclusive: false,
    rxOnly: false,
    txOnly: false,
    monitorTx: false,
    monitorRx: false,
    zcopyMonitor: false,
  };
  let at = body.text.search(/[/@]/);
  readPort(body.cut(0, at < 0 ? undefined : at), spec);
  let flagged = false;
  while (at >= 0) {
    const flags = body.text[at] === '/';
    // A file's path may contain slashes: behind an option only '@' begins something new.
    const rest = body.cut(at + 1);
    const number = /^\d+(?=[/@]|$)/.exec(rest.text)?.[0];
    const length = number?.length ?? (flags ? /^[^/@]*/s : /^[^@]*/s).exec(rest.text)![0].length;
    const part = rest.cut(0, length);
    if (flags) {
      if (flagged) part.fail("flags are given twice; expected '@' with options or the end", -1);
      readFlags(part, spec);
      flagged = true;
    } else if (number !== undefined) {
      if (spec.memId !== undefined) part.fail('a memory id is given twice; expected it once');
      spec.memId = part.read((text) => parseCountWithin(text, 1, 65535, 'memory id'));
    } else {
      readOption(part, spec);
    }
    if (spec.share !== undefined && spec.memId !== undefined) {
      part.fail(`share and the memory id @${spec.memId} exclude each other; expected one of them`);
    }
    at = at + 1 + length < body.text.length ? at + 1 + length : -1;
  }
  return spec;
}

function ringsText({ mode, ring }: NetmapSpec): string {
  if (mode === 'host') return '^';
  if (mode === 'nic-host') return '*';
  if (mode === 'one-host') return `^${ring ?? 0}`;
  return ring === undefined ? '' : `-${ring}`;
}

/** The canonical form. */
export function formatNetmap(spec: NetmapSpec): string {
  const flags = [...FLAGS].filter(([, name]) => spec[name]).map(([letter]) => letter);
  return [
    spec.vale ? '' : 'netmap:',
    spec.name,
    ringsText(spec),
    flags.length === 0 ? '' : `/${flags.join('')}`,
    spec.memId === undefined ? '' : `@${spec.memId}`,
    spec.share === undefined ? '' : `@share=${spec.share}`,
    spec.conf === undefined ? '' : `@conf:${writePairs(CONF, spec.conf).join(',')}`,
    spec.extmem === undefined ? '' : `@extmem:${writePairs(EXTMEM, spec.extmem).join(',')}`,
    spec.offset === undefined ? '' : `@offset:${writePairs(OFFSET, spec.offset).join(',')}`,
  ].join('');
}
