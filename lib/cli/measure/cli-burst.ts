import { UsageError } from '../../text/errors.js';
import { formatTime, parsePercent, within } from '../../text/units.js';
import { mean } from '../../stats/rank.js';
import { benchRemarks } from '../../measure/trial/bench.js';
import { shortOffer } from '../../measure/trial/offer.js';
import { findBurst } from '../../measure/search/burst-search.js';
import { findThroughput } from '../../measure/search/throughput.js';
import type { Metric } from '../../measure/results/result.js';
import { experiment } from './experiment.js';
import { BENCH_OPTIONS } from './open-bench.js';
import { parseLength, TRIALS } from './setup-options.js';

/** `measure burst`. */
export const runBurst = experiment({
  kind: 'burst',
  help: [
    `Usage: measure burst [options]

Back-to-back frames (RFC 2544 section 26.4, RFC 9004): the longest burst at line rate that loses nothing, for each frame
size and each direction. From it follows for how long the buffers last.`,
  ],
  options: {
    ...BENCH_OPTIONS,
    seconds: { value: 'TIME', help: 'The longest burst lasts so long at line rate, such as 2 or 500ms. Default: 2.' },
    trials: {
      value: 'N',
      help: 'Times the search is made; average, least and most are shown. Default: 5. RFC 2544 asks for 50.',
    },
    width: {
      value: 'PERCENT',
      help: 'Width of the last interval, as a share of its upper end; 1 frame at least. Default: 0.1%.',
    },
    corrected: {
      help: 'Search the throughput too, and correct the buffer time by what leaves during the burst (RFC 9004).',
    },
  },
  heads: () => [
    'average\nframes',
    'least',
    'most',
    'standard\ndeviation',
    'lasts at\nline rate',
    'corrected\nbuffer time',
  ],
  plan(line) {
    const seconds = line.read('seconds', parseLength) ?? 2;
    const repeats = line.read('trials', within(TRIALS)) ?? 5;
    const width = line.read('width', parseWidth) ?? 0.001;
    const searches = repeats === 1 ? '1 search' : `${repeats} searches`;
    return {
      about: (ways) => `${ways}, bursts up to ${seconds} s at line rate, ${searches} a size`,
      async *measure({ bench, size, name, ran, progress, remark, stop }) {
        let short: string | undefined;
        const longest: number[] = [];
        let whole = true;
        for (let i = 0; i < repeats; i++) {
          const onBurst = (frames: number): void => {
            progress(`${size} bytes, search ${i + 1} of ${repeats}: a burst of ${frames} frames`);
          };
          const found = await findBurst(bench, size, { seconds, width, onBurst, stop });
          if (found === undefined) break;
          longest.push(found.longest);
          whole &&= found.shortestLossy === undefined;
          ran(found.benchTrials);
          // What a burst that came too slowly lost, it would have lost at line rate, too: only those that lost nothing count.
          if (found.atLongest !== undefined) short ??= shortOffer(bench.maxLoad(size), found.atLongest);
        }
        if (longest.length === 0) return;
        const average = mean(longest);
        const squares = longest.map((frames) => (frames - average) ** 2).reduce((sum, square) => sum + square);
        const metrics = {
          burst_frames: average,
          least_frames: Math.min(...longest),
          most_frames: Math.max(...longest),
          deviation_frames: Math.sqrt(squares / Math.max(1, longest.length - 1)),
        };
        // A burst that was not at line rate has no time that buffers last.
        const buffer: { buffer_us?: number; corrected_buffer_us?: number } = {};
        if (short === undefined) buffer.buffer_us = (1e6 * average * bench.directions) / bench.maxLoad(size);
        if (buffer.buffer_us !== undefined && line.has('corrected') && !whole) {
          progress(`${size} bytes: the throughput`);
          const { ndr, search } = await findThroughput(bench, size, { seconds, trials: 1, width: 0.005, stop });
          if (search.complete)
            buffer.corrected_buffer_us = buffer.buffer_us * (1 - ndr.conditionalThroughput / bench.maxLoad(size));
        }
        if (short !== undefined) remark(`: ${short}, so ${SLOW}.`);
        const averageText = `${whole ? '≥ ' : ''}${Math.round(average)}`;
        const lasts = microseconds(buffer.buffer_us);
        yield {
          metrics: { ...metrics, ...buffer },
          units: Object.fromEntries(Object.keys(buffer).map((metric) => [metric, BUFFER_UNITS[metric]])),
          notes: [whole ? 'the longest burst tried lost nothing' : undefined, short && `${short}: ${SLOW}`],
          texts: [
            averageText,
            String(metrics.least_frames),
            String(metrics.most_frames),
            metrics.deviation_frames.toFixed(1),
            lasts,
            microseconds(buffer.corrected_buffer_us),
          ],
          said: `${name}: longest burst ${averageText} frames, ${short ?? lasts}`,
        };
      },
      end: benchRemarks,
    };
  },
});

const SLOW = 'the burst was not at line rate and says nothing of how long buffers last';

/** A buffer that lasts longer is better, whereas most times are not. */
const BUFFER_UNITS: Record<string, Metric> = {
  buffer_us: { unit: 'µs', label: 'burst without loss', better: 'higher' },
  corrected_buffer_us: { unit: 'µs', better: 'higher' },
};

function microseconds(us: number | undefined): string {
  return us === undefined ? '–' : formatTime(us * 1e3);
}

function parseWidth(text: string): number {
  const width = parsePercent(text);
  if (width < 1) return width;
  throw new UsageError(`'${text}': expected less than 100%, such as 0.1%`);
}
