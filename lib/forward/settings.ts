import { inspect } from 'node:util';
import { UsageError } from '../text/errors.js';
import { BURST, CPU, FRAMES, isWithin, rangeText, type Range } from '../text/units.js';
import { DEFAULT_BURST } from './bridge.js';
import { WAIT_MODES, type WaitMode } from './wait.js';
import { ON_ERROR, type OnError } from '../programs/failure.js';

/** What a bridge is told: one record, from a command line or a program to the forwarding thread, which gets it as it is. */
export interface BridgeSettings {
  /** Slots moved per pair of rings and turn, 1 or more. Default 1024. */
  burst: number;
  /** Copy although buffers could be exchanged. */
  copy: boolean;
  /** Only from the first port to the second. */
  oneWay: boolean;
  /** With one port: send what it receives back out of it, instead of bridging it to its host stack. */
  loop: boolean;
  /** Promiscuous mode for interfaces. Default true. */
  promisc: boolean;
  /** Seconds to wait for links to come up. Default (undefined): 4 for ports that have a link. */
  linkWait: number | undefined;
  /** `busy` (default) spins on the syncs; `poll` sleeps when there is nothing to do. */
  wait: WaitMode;
  /** Frames, both directions together, after which the bridge ends; 0 (default): none. */
  frames: number;
  /** Seconds after which the bridge ends; 0 (default): none. */
  seconds: number;
  /** CPU the forwarding thread runs on; -1 (default): any. */
  cpu: number;
  /** Programs that judge every frame, one behind the other: ready ones or files; see docs/programs.md. Default none. */
  programs: readonly string[];
  /** What becomes of a frame at which a program throws. Default `stop`: the run ends. */
  onError: OnError;
  /** Port that programs may send frames to; undefined (default): none. */
  third: string | undefined;
}

/** What of it is said; the rest is at its default. */
export type SomeSettings = { readonly [Name in keyof BridgeSettings]?: BridgeSettings[Name] | undefined };

export const DEFAULTS: Readonly<BridgeSettings> = {
  burst: DEFAULT_BURST,
  copy: false,
  oneWay: false,
  loop: false,
  promisc: true,
  linkWait: undefined,
  wait: 'busy',
  frames: 0,
  seconds: 0,
  cpu: -1,
  programs: [],
  onError: 'stop',
  third: undefined,
};

const NAMES = Object.keys(DEFAULTS) as (keyof BridgeSettings)[];
const RANGES: Partial<Record<keyof BridgeSettings, Range>> = { burst: BURST, frames: FRAMES, cpu: CPU };

const WORDS: Partial<Record<keyof BridgeSettings, readonly string[]>> = { wait: WAIT_MODES, onError: ON_ERROR };

/** What is wrong with a setting, in words; the default of a number may lie outside its range and stand for "none". */
function expected(name: keyof BridgeSettings, value: unknown): string | undefined {
  const range = RANGES[name];
  if (value === DEFAULTS[name]) return undefined;
  if (range !== undefined) return isWithin(range, value) ? undefined : `a whole number, ${rangeText(range)}`;
  const words = WORDS[name];
  if (words !== undefined) return words.includes(value as string) ? undefined : `one of ${words.join(', ')}`;
  if (name !== 'seconds' && name !== 'linkWait') return undefined;
  return Number.isFinite(value) && (value as number) >= 0 ? undefined : 'a finite number, 0 up';
}

/**
 * The whole record for what is said of it.
 * @throws UsageError that names the setting, for programs: command lines check what they read
 */
export function settingsOf(some: SomeSettings): BridgeSettings {
  const settings = Object.fromEntries(
    NAMES.map((name) => [name, some[name] === undefined ? DEFAULTS[name] : some[name]]),
  );
  for (const name of NAMES) {
    const right = expected(name, settings[name]);
    if (right !== undefined) throw new UsageError(`${name}: expected ${right}, not ${inspect(settings[name])}`);
  }
  return settings as unknown as BridgeSettings;
}
