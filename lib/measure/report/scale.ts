import { formatNumber } from '../../text/format.js';

export interface Tick {
  at: number;
  text: string;
}

/** One axis of a chart: where a value stands between its two ends (0 to 1), and what is written along it. */
export interface Axis {
  label: string;
  place: (value: number) => number;
  ticks: Tick[];
}

/** Steps of 1, 2 or 5 times a power of ten that cover a range in about `count` ticks. */
export function niceSteps(low: number, high: number, count: number): number[] {
  const raw = (high - low) / count || 1;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw * 0.999)!;
  const steps: number[] = [];
  for (let i = Math.floor(low / step + 1e-9); i * step <= high + step * 0.999; i++)
    steps.push(Number((i * step).toPrecision(12)));
  return steps;
}

/** A linear axis that begins and ends at a tick. */
export function linearAxis(label: string, low: number, high: number, text = formatNumber, count = 5): Axis {
  // A range too small to be told apart in its own numbers would leave no room between ticks.
  const steps = niceSteps(low, Math.max(high, low + Math.max(1e-9, Math.abs(low) * 1e-9)), count);
  const [first, last] = [steps[0], steps.at(-1)!];
  return {
    label,
    place: (value) => (value - first) / (last - first),
    ticks: steps.map((at) => ({ at, text: text(at) })),
  };
}

/** A logarithmic axis over whole decades, with ticks at 2 and 5 between them when there are few. */
export function logAxis(label: string, low: number, high: number, text = formatNumber): Axis {
  const first = Math.floor(Math.log10(low) + 1e-9);
  const last = Math.max(first + 1, Math.ceil(Math.log10(high) - 1e-9));
  const factors = last - first <= 2 ? [1, 2, 5] : [1];
  const ticks: Tick[] = [];
  for (let decade = first; decade <= last; decade++) {
    for (const factor of decade === last ? [1] : factors) {
      const at = Number((factor * 10 ** decade).toPrecision(12));
      ticks.push({ at, text: text(at) });
    }
  }
  return { label, place: (value) => (Math.log10(value) - first) / (last - first), ticks };
}

/** A logarithmic axis through given values, each of them a tick; the ends stand a little inside. */
export function valuesAxis(label: string, values: readonly number[], text = formatNumber): Axis {
  const sorted = [...new Set(values)].sort((a, b) => a - b);
  const [low, high] = [Math.log(sorted[0]), Math.log(sorted.at(-1)!)];
  const span = high - low || 1;
  return {
    label,
    place: (value) => (high === low ? 0.5 : 0.03 + (0.94 * (Math.log(value) - low)) / span),
    ticks: sorted.map((at) => ({ at, text: text(at) })),
  };
}

/** A logarithmic axis for ratios from 1 down to `low`, with a place of its own for zero at the bottom. */
export function ratioAxis(label: string, low: number, text: (value: number) => string): Axis {
  const decades = Math.max(1, Math.ceil(-Math.log10(Math.max(1e-12, low)) - 1e-9));
  const ticks = [{ at: 0, text: text(0) }];
  for (let decade = -decades; decade <= 0; decade++) ticks.push({ at: 10 ** decade, text: text(10 ** decade) });
  return { label, place: (value) => (value <= 0 ? 0 : 1 + (0.85 * Math.log10(value)) / decades), ticks };
}

/** An axis of percentiles on which each further nine takes the same room: 90, 99, 99.9 %… `nines` of them at most. */
export function percentileAxis(label: string, nines: number): Axis {
  const ticks = [
    { at: 0, text: '0 %' },
    { at: 50, text: '50 %' },
  ];
  for (let i = 1; i <= nines; i++) {
    const at = Number((100 - 10 ** (2 - i)).toFixed(i));
    ticks.push({ at, text: `${at} %` });
  }
  return {
    label,
    place: (percent) => Math.min(1, -Math.log10(Math.max(10 ** -nines, 1 - percent / 100)) / nines),
    ticks,
  };
}
