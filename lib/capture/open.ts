import { CaptureError } from './error.js';
import { FILE_HEADER, MAGIC_NS, MAGIC_US, PcapReader } from './pcap.js';
import { PcapngReader, SECTION_HEADER } from './pcapng.js';
import { u32, type CaptureReader } from './reader.js';
import { ByteSource } from './source.js';

/** Files that are no capture as they stand, by their first bytes, and what makes one of them. */
const OTHER_FORMATS: [magic: number[], name: string, remedy: (path: string) => string][] = [
  [[0x1f, 0x8b], 'compressed with gzip', (path) => `unpack it first: gunzip < ${path} > FILE.pcap`],
  [[0x28, 0xb5, 0x2f, 0xfd], 'compressed with zstd', (path) => `unpack it first: zstd -d < ${path} > FILE.pcap`],
  [[0x04, 0x22, 0x4d, 0x18], 'compressed with lz4', (path) => `unpack it first: lz4 -d < ${path} > FILE.pcap`],
  [[0xfd, 0x37, 0x7a, 0x58, 0x5a], 'compressed with xz', (path) => `unpack it first: xz -d < ${path} > FILE.pcap`],
  [
    [0x34, 0xcd, 0xb2, 0xa1],
    'a modified pcap file (magic a1b2cd34)',
    (path) => `convert it first: editcap -F pcap ${path} FILE.pcap`,
  ],
  [
    [0xa1, 0xb2, 0xcd, 0x34],
    'a modified pcap file (magic a1b2cd34)',
    (path) => `convert it first: editcap -F pcap ${path} FILE.pcap`,
  ],
];

/** How long to sleep between looks at a FIFO whose writer has not sent the header yet, in ms. */
const PAUSE = 10;
const sleeper = new Int32Array(new SharedArrayBuffer(4));

/** Runs `ready` until it is true or the source has ended: the header of a FIFO may come in pieces. */
function wait(source: ByteSource, ready: () => boolean): void {
  while (!ready() && !source.ended) Atomics.wait(sleeper, 0, 0, PAUSE);
}

/**
 * Opens a pcap or pcapng file, or a FIFO that brings one, and reads its header. On a FIFO it waits for that.
 * Throws CaptureError where the file cannot be opened, is of another format, carries another link type than Ethernet,
 * or breaks off before it has described an interface.
 */
export function openCapture(path: string): CaptureReader {
  const source = new ByteSource(path);
  try {
    return readHeader(source);
  } catch (error) {
    source.close();
    throw error;
  }
}

function cutShort(source: ByteSource, what: string): CaptureError {
  return new CaptureError(
    source.failure ?? `${source.path}: truncated at byte ${source.available} (end of file): ${what}`,
  );
}

function readHeader(source: ByteSource): CaptureReader {
  const { bytes, path } = source;
  wait(source, () => source.have(4));
  for (const [magic, name, remedy] of OTHER_FORMATS) {
    if (source.available >= magic.length && magic.every((byte, i) => bytes[i] === byte)) {
      throw new CaptureError(`${path}: ${name}; ${remedy(path)}`);
    }
  }
  if (source.available < 4) throw cutShort(source, 'no capture file is that short');
  const magic = u32(bytes, 0, true);
  const swapped = u32(bytes, 0, false);
  if (magic === SECTION_HEADER) {
    const reader = new PcapngReader(source);
    wait(source, () => reader.readInterfaces());
    return reader;
  }
  const bigEndian = magic === MAGIC_US || magic === MAGIC_NS;
  if (!bigEndian && swapped !== MAGIC_US && swapped !== MAGIC_NS) {
    throw new CaptureError(
      `${path}: neither pcap nor pcapng: it begins with ${magic.toString(16).padStart(8, '0')}; ` +
        `if it is another capture format, convert it: editcap -F pcapng ${path} FILE.pcapng`,
    );
  }
  wait(source, () => source.have(FILE_HEADER));
  if (source.available < FILE_HEADER) throw cutShort(source, `the file header has ${source.available} of its 24 bytes`);
  return new PcapReader(source, bigEndian);
}
