/** `sim:NAME@rate=10G,size=64,…`: the simulated port. */
import {
  FCS_BYTES,
  parseCount,
  parseRate,
  parseShare,
  parseSizeMix,
  parseTime,
  rateText,
  shareText,
  sizeMixText,
  timeText,
  type WeightedSize,
} from '../text/units.js';
import {
  field,
  integer,
  optionsText,
  orOff,
  readPairs,
  splitOptions,
  unit,
  withDefaults,
  word,
  type Options,
} from './port-options.js';
import { poolName } from './pipe-name.js';
import { UsageError } from '../text/errors.js';
import type { Slice } from './slice.js';

/** A simulated port. */
export interface SimSpec {
  readonly kind: 'sim';
  /** The port name as it was written. */
  readonly text: string;
  /** Name of the port within the process. */
  readonly name: string;
  /** Speed of the link in bits per second, 1 or more; Infinity (`max`) is as fast as the machine goes. Default 1e10. */
  readonly rate: number;
  /** Offered load as a fraction of the link's line rate, 0..1. Default 1. */
  readonly load: number;
  /** Sizes of the arriving frames in bytes with FCS, and their weights. Default 64. */
  readonly size: readonly WeightedSize[];
  /** Slots in each ring, 2..65536. Default 1024. */
  readonly slots: number;
  /** Ring pairs, 1..64. Default 1. */
  readonly rings: number;
  /** Interrupt moderation: nanoseconds between the moments at which arrived frames become visible; 0 = at once. Default 0. */
  readonly itr: number;
  /** Nanoseconds between the moments at which sent slots come back; 0 = at once. Default 0. */
  readonly txtimer: number;
  /** Slots each arriving frame takes, 1..64; 0 = as many as its size needs. Default 0. */
  readonly frags: number;
  /** Every N-th rx slot comes back with length zero; 0 = none. Default 0. */
  readonly skip: number;
  /** Rx slots refilled per sync at most; 0 = no limit. Default 0. */
  readonly budget: number;
  /** Probability, 0..1, that an arriving frame is lost before it reaches the ring. Default 0. */
  readonly drop: number;
  /** Frames that leave before the port wedges: it takes no more back from tx until it is opened anew; 0 = never. Default 0. */
  readonly wedge: number;
  /** Link state over time: nanoseconds up, then nanoseconds down, repeated. Default: always up. */
  readonly flap?: { readonly up: number; readonly down: number };
  /** `real`: the machine's time; `virtual`: `step` nanoseconds pass per sync. Default `real`. */
  readonly clock: 'real' | 'virtual';
  /** Nanoseconds that pass per sync on the virtual clock. Default 1000. */
  readonly step: number;
  /** Frames that arrive before the source ends; 0 = endless. Default 0. */
  readonly count: number;
  /** Whether departing frames are checked for loss, duplication, reordering and corruption. Default true (`check=on`). */
  readonly check: boolean;
  /** Size of each buffer in bytes, a multiple of 64, 64..65472 (a slot's `len` has 16 bits). Default 2048. */
  readonly buf: number;
  /** Seed of the generator behind `drop`, 0..4294967295. Default 1. */
  readonly seed: number;
}

/** Netmap's limit of slots a frame (netmap.h, API 14). */
const MAX_FRAGS = 64;

const count = unit(parseCount);
/** With every slot skipped, no frame would ever arrive. */
function parseSkip(text: string): number {
  const every = parseCount(text);
  if (every === 1) throw new UsageError(`every slot would be without a frame; expected off, or 2 or more`);
  return every;
}
const time = unit(parseTime, timeText);
const share = unit(parseShare, shareText);

/** A time above zero. */
function span(value: Slice): number {
  const ns = value.read(parseTime);
  return ns > 0 ? ns : value.fail(`a time above 0 is expected here, for example 1ms`);
}

const OPTIONS: Options<SimSpec> = new Map([
  field('rate', 'rate', '10G', 1e10, unit(parseRate, rateText)),
  field('load', 'load', '50%', 1, share),
  field('size', 'size', '64', [{ size: 64, weight: 1 }], unit(parseSizeMix, sizeMixText)),
  field('slots', 'slots', '2048', 1024, integer(2, 65536)),
  field('rings', 'rings', '2', 1, integer(1, 64)),
  field('itr', 'itr', '124us', 0, orOff(time)),
  field('txtimer', 'txtimer', '90us', 0, orOff(time)),
  field('frags', 'frags', '4', 0, orOff(integer(0, MAX_FRAGS))),
  field('skip', 'skip', '10', 0, orOff(unit(parseSkip))),
  field('budget', 'budget', '32', 0, orOff(count)),
  field('drop', 'drop', '1%', 0, orOff(share)),
  field('wedge', 'wedge', '10M', 0, orOff(count)),
  field('flap', 'flap', '1s/100ms', undefined, {
    read(value) {
      const slash = value.text.indexOf('/');
      if (slash < 0)
        value.fail("'/' is missing; expected time up / time down, for example flap=1s/100ms", value.text.length);
      return { up: span(value.cut(0, slash)), down: span(value.cut(slash + 1)) };
    },
    write: ({ up, down }) => `${timeText(up)}/${timeText(down)}`,
  }),
  field('clock', 'clock', 'virtual', 'real', word('real', 'virtual')),
  field('step', 'step', '1us', 1000, { read: span, write: timeText }),
  field('count', 'count', '1M', 0, count),
  field('check', 'check', 'off', true, {
    read: (value) => word('on', 'off').read(value) === 'on',
    write: (on) => (on ? 'on' : 'off'),
  }),
  field('buf', 'buf', '2048', 2048, {
    read(value) {
      const bytes = integer(64, 65472).read(value);
      return bytes % 64 === 0
        ? bytes
        : value.fail('a buffer size is a multiple of 64 bytes; expected for example 2048');
    },
    write: String,
  }),
  field('seed', 'seed', '7', 1, integer(0, 0xffffffff)),
]);

/** Refuses sizes, fragments, buffers and slots that cannot go together. */
function checkFit(spec: SimSpec, list: readonly Slice[], body: Slice): void {
  const at = (...keys: string[]) => list.find(({ text }) => keys.some((key) => text.startsWith(`${key}=`))) ?? body;
  for (const { size } of spec.size) {
    const bytes = size - FCS_BYTES;
    const needed = Math.ceil(bytes / spec.buf);
    const slots = spec.frags === 0 ? needed : spec.frags;
    if (needed > MAX_FRAGS) {
      at('size', 'buf').fail(
        `a frame of ${size} bytes takes ${needed} buffers of ${spec.buf} bytes; expected ${MAX_FRAGS} at most, so raise buf or lower size`,
      );
    }
    if (slots < needed) {
      at('frags').fail(
        `a frame of ${size} bytes takes ${needed} buffers of ${spec.buf} bytes; expected frags=${needed} or more`,
      );
    }
    if (slots > bytes)
      at('frags').fail(`a frame of ${size} bytes cannot fill ${slots} slots; expected frags=${bytes} or less`);
    // The most that a frame takes: one slot passed over before it, then one before every skip - 1 of its slots.
    const taken = slots + (spec.skip > 0 ? 1 + Math.floor((slots - 1) / (spec.skip - 1)) : 0);
    // One slot of a ring always stays with the other side.
    if (taken >= spec.slots) {
      at('slots', 'frags', 'size').fail(
        `a frame of ${taken} slots never fits a ring of ${spec.slots}; expected slots=${taken + 1} or more`,
      );
    }
  }
}

/** Reads what follows `sim:`. */
export function parseSim(body: Slice): SimSpec {
  const [name, list] = splitOptions(body);
  const spec = withDefaults(OPTIONS, { kind: 'sim', text: body.source, name: poolName(name, 'sim:a') });
  readPairs(list, 'a sim port', OPTIONS, spec);
  checkFit(spec, list, body);
  return spec;
}

/** The canonical form. */
export function formatSim(spec: SimSpec): string {
  return `sim:${spec.name}${optionsText(OPTIONS, spec)}`;
}
