/** Ready programs by name, as a command line gives them: `filter:udp and port 53`, `vlan:add=5`, `respond:ip=…,mac=…`. */
import {
  field,
  flag,
  integer,
  readPairs,
  unit,
  unknown,
  type Draft,
  type Options,
  type Value,
} from '../names/port-options.js';
import { Slice } from '../names/slice.js';
import { ipBytes, macBytes } from '../text/address.js';
import { parseRate, parseShare, rateText, shareText } from '../text/units.js';
import { filter } from './filter/filter.js';
import { flows } from './flows.js';
import { limit, type Limit } from './limit.js';
import type { ProgramFactory } from './program.js';
import { respond, type Responder } from './respond.js';
import { rewrite, type Rewrite } from './rewrite.js';
import { sample } from './sample.js';
import { vlan } from './vlan.js';

/** An address; what reads it gives undefined where the text is none. */
function address(read: (text: string) => number[] | undefined, example: string): Value<readonly number[]> {
  return {
    read: (value) =>
      read(value.text) ?? value.fail(`${value.quoted} is not an address; expected for example ${example}`),
    write: (bytes) => bytes.join('.'),
  };
}
const MAC = address(macBytes, '02:00:00:00:00:01');
const IP = address(ipBytes, '10.0.0.1 or fd00::1');
const IPV4 = address((text) => (text.includes(':') ? undefined : ipBytes(text)), '10.0.0.1');
const PORT = integer(0, 65535);

const REWRITE: Options<Rewrite> = new Map([
  field('smac', 'sourceMac', '02:00:00:00:00:01', undefined, MAC),
  field('dmac', 'targetMac', '02:00:00:00:00:02', undefined, MAC),
  field('src', 'source', '10.0.0.1', undefined, IP),
  field('dst', 'target', '10.0.0.2', undefined, IP),
  field('sport', 'sourcePort', '1024', undefined, PORT),
  field('dport', 'targetPort', '53', undefined, PORT),
]);

const RESPOND: Options<Partial<Responder>> = new Map([
  field('ip', 'ip', '10.0.0.1', undefined, IPV4),
  field('mac', 'mac', '02:00:00:00:00:01', undefined, MAC),
]);

const LIMIT: Options<Partial<Limit>> = new Map([
  field('rate', 'rate', '100M', undefined, unit(parseRate, rateText)),
  field('burst', 'burst', '64k', undefined, integer(64, 2 ** 30)),
]);

interface VlanWords {
  add?: number;
  set?: number;
  strip?: boolean;
}
const VLAN: Options<VlanWords> = new Map([
  field('add', 'add', '5', undefined, integer(0, 4095)),
  field('set', 'set', '5', undefined, integer(0, 4095)),
  flag('strip', 'strip', true, undefined),
]);

interface SampleWords {
  every?: number;
  share?: number;
  seed?: number;
}
const SAMPLE: Options<SampleWords> = new Map([
  field('every', 'every', '100', undefined, integer(1, 2 ** 31)),
  field('share', 'share', '1%', undefined, unit(parseShare, shareText)),
  field('seed', 'seed', '7', undefined, integer(0, 0xffffffff)),
]);

const FLOWS: Options<{ most?: number }> = new Map([field('most', 'most', '65536', undefined, integer(1, 2 ** 20))]);

/** Reads `key=value,…`. */
function options<S extends object>(body: Slice, where: string, table: Options<S>): Draft<S> {
  const spec = {} as Draft<S>;
  if (body.text !== '') readPairs(body.split(','), where, table, spec);
  return spec;
}

const PROGRAMS: ReadonlyMap<string, (body: Slice) => ProgramFactory> = new Map([
  ['filter', (body: Slice) => filter(body.text)],
  [
    'vlan',
    (body: Slice) => {
      const { add, set, strip } = options(body, 'a vlan program', VLAN);
      if ([add, set, strip].filter((given) => given !== undefined).length !== 1)
        body.fail('expected one of add=N, set=N or strip');
      return vlan(add !== undefined ? { add } : set !== undefined ? { set } : { strip: true });
    },
  ],
  ['rewrite', (body: Slice) => rewrite(options(body, 'a rewrite program', REWRITE))],
  [
    'limit',
    (body: Slice) => {
      const { rate, burst = 65536 } = options(body, 'a limit program', LIMIT);
      return rate === undefined
        ? body.fail('the rate is missing; expected for example rate=100M')
        : limit({ rate, burst });
    },
  ],
  [
    'sample',
    (body: Slice) => {
      const { every, share, seed = 1 } = options(body, 'a sample program', SAMPLE);
      if ((every === undefined) === (share === undefined)) body.fail('expected one of every=N or share=1%');
      return sample(every !== undefined ? { every } : { share: share!, seed });
    },
  ],
  ['flows', (body: Slice) => flows(options(body, 'a flows program', FLOWS).most)],
  [
    'respond',
    (body: Slice) => {
      const { ip, mac } = options(body, 'a respond program', RESPOND);
      if (ip === undefined || mac === undefined)
        return body.fail('expected ip and mac, for example ip=10.0.0.1,mac=02:00:00:00:00:01');
      return respond({ ip, mac });
    },
  ],
]);

/** The ready program that `text` names. @throws UsageError with a caret under what is wrong */
export function readyProgram(text: string): ProgramFactory {
  const whole = new Slice(text, 0, text, 'program');
  const colon = text.indexOf(':');
  const name = whole.cut(0, colon < 0 ? undefined : colon);
  const make = PROGRAMS.get(name.text);
  if (make === undefined) return name.fail(unknown(name, 'program', [...PROGRAMS.keys()]));
  return make(colon < 0 ? whole.cut(text.length) : whole.cut(colon + 1));
}
