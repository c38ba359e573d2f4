/** When frames flowed; CLOCK_MONOTONIC, ns, so that the spans of a run's threads can be put together. */
export interface Span {
  /** The first and the latest batch. */
  readonly firstNs: number;
  readonly latestNs: number;
  /** Frames of the first batch: rates are of those that came after it. */
  readonly firstFrames: number;
}

/** Notes when frames flowed. In an array, so that times allocate nothing. */
export class SpanClock {
  /** first, latest, frames of the first; -1: none yet */
  readonly #state = Float64Array.of(-1, -1, 0);

  /** `frames` frames, some at least, at time `t`, ns. */
  moved(frames: number, t: number): void {
    const state = this.#state;
    if (state[0] < 0) {
      state[0] = t;
      state[2] = frames;
    }
    state[1] = t;
  }

  get span(): Span | undefined {
    const [firstNs, latestNs, firstFrames] = this.#state;
    return firstNs < 0 ? undefined : { firstNs, latestNs, firstFrames };
  }
}

/** The span of all. */
export function mergeSpans(spans: readonly Span[]): Span | undefined {
  if (spans.length === 0) return undefined;
  return spans.reduce((one, other) => ({
    firstNs: Math.min(one.firstNs, other.firstNs),
    latestNs: Math.max(one.latestNs, other.latestNs),
    firstFrames: (one.firstNs <= other.firstNs ? one : other).firstFrames,
  }));
}
