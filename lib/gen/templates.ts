import { FCS_BYTES } from '../text/units.js';
import { fold, sumBytes } from '../rings/checksum.js';
import { buildHeaders, checkSize, layoutOf, leastSizes, type Flow, type Layout } from './headers.js';
import { TAG_BYTES } from './tag.js';

/** Words that random payloads begin within; a power of two. */
const RANDOM_WORDS = 1 << 14;

/** What the frames of a run look like, in tables that the sending loop copies from. */
export interface Templates {
  readonly layout: Layout;
  /** Words of header a frame has: all but the last are copied, the last holds the UDP checksum in its lower half. */
  readonly headerWords: number;
  /** `headerWords` words for each distinct length. */
  readonly headers: Int32Array;
  /** For each distinct length: bytes without FCS, whether there is room for the tag, and what the checksums begin with. */
  readonly lengths: Int32Array;
  readonly tagged: Int32Array;
  readonly ipSums: Int32Array;
  readonly udpSums: Int32Array;
  /** Which of the lengths each frame has; repeats. */
  readonly cycle: Int32Array;
  /** Payload words by their place in the frame; random payloads take them from a random word on. */
  readonly payload: Int32Array;
  /** Sum of the 16-bit halves of all payload words before each. */
  readonly payloadSums: Float64Array;
  /** Where a random payload may begin, less 1; 0: payloads are not random. */
  readonly randomMask: number;
  /** Ranges: whether anything but sequence number, time and checksum differs between frames of one length. */
  readonly varying: boolean;
}

interface TemplateOptions {
  /** Frame sizes in bytes with FCS, in the order in which they repeat. */
  readonly sizes: readonly number[];
  /** Payloads differ from frame to frame instead of counting up. */
  readonly randomPayload: boolean;
  /** Leave out the tag. */
  readonly plain: boolean;
}

/** @throws UsageError when a size cannot carry the headers */
export function makeTemplates(flow: Flow, options: TemplateOptions): Templates {
  const layout = layoutOf(flow);
  const distinct = [...new Set(options.sizes)];
  const longest = Math.max(...distinct);
  for (const size of distinct) checkSize(flow, size);
  const headerWords = (layout.payload + 2) / 4;
  const lengths = Int32Array.from(distinct, (size) => size - FCS_BYTES);
  const least = options.plain ? Infinity : leastSizes(flow).tagged;
  const tagged = Int32Array.from(distinct, (size) => (size >= least ? 1 : 0));
  const payload = payloadWords(Math.ceil(longest / 4) + 1, options.randomPayload);
  const payloadBytes = new Uint8Array(payload.buffer);
  const ranges = [flow.source.address.low, flow.destination.address.low, flow.source.port, flow.destination.port];
  ranges.push(flow.sourceMac.low, flow.destinationMac.low);
  const varying = ranges.some(({ first, last }) => first !== last);

  const headers = new Int32Array(headerWords * distinct.length);
  const headerBytes = new Uint8Array(headers.buffer);
  const ipSums = new Int32Array(distinct.length);
  const udpSums = new Int32Array(distinct.length);
  lengths.forEach((length, k) => {
    const { bytes, ipSum, udpSum } = buildHeaders(flow, length);
    headerBytes.set(bytes, 4 * headerWords * k);
    ipSums[k] = ipSum;
    let sum = udpSum;
    if (!varying) {
      // What does not vary need not be added for every frame.
      sum = sumBytes(bytes, layout.source, 4, sum);
      sum = sumBytes(bytes, layout.destination, 4, sum);
      sum = sumBytes(bytes, layout.udp, 4, sum);
    }
    if (!options.randomPayload && length >= 4 * headerWords) {
      const from = layout.payload + (tagged[k] === 1 ? TAG_BYTES : 0);
      sum = sumBytes(payloadBytes, from, length - from, sum);
    }
    udpSums[k] = fold(sum);
  });
  return {
    ...{ layout, headerWords, headers, lengths, tagged, ipSums, udpSums, payload, varying },
    cycle: Int32Array.from(options.sizes, (size) => distinct.indexOf(size)),
    payloadSums: runningSums(payload),
    randomMask: options.randomPayload ? RANDOM_WORDS - 1 : 0,
  };
}

function payloadWords(frameWords: number, random: boolean): Int32Array {
  const words = new Int32Array(random ? RANDOM_WORDS + frameWords : frameWords);
  if (random) {
    // getRandomValues fills 65,536 bytes at most a call.
    for (let at = 0; at < words.length; at += 16384) crypto.getRandomValues(words.subarray(at, at + 16384));
  } else {
    const bytes = new Uint8Array(words.buffer);
    bytes.forEach((_, i) => (bytes[i] = i & 0xff));
  }
  return words;
}

function runningSums(words: Int32Array): Float64Array {
  const sums = new Float64Array(words.length + 1);
  words.forEach((word, i) => (sums[i + 1] = sums[i] + (word & 0xffff) + (word >>> 16)));
  return sums;
}
