import { CaptureError } from './capture-error.js';
import { FILE_HEADER, MAGIC_NS, MAGIC_US, PcapReader } from './pcap.js';
import { PcapngReader, SECTION_HEADER } from './pcapng.js';
import { u32, type CaptureReader } from './reader.js';
import { ByteSource } from './source.js';
import { packedWith, unpackFirst, UNPACKERS, type Packed } from './unpack.js';
import { refuseVariantMagic } from './variants.js';

/** A pcap or pcapng file, or a FIFO that brings one, whose header is still to be read. */
export class Opening {
  readonly #source: ByteSource;
  #pcapng: PcapngReader | undefined;
  /** Whether it has been looked at whether the file is compressed. */
  #unpacked = false;
  /** What reader() gave. */
  known: CaptureReader | undefined;

  /**
   * Throws CaptureError where the file cannot be opened.
   * @param path of a file or FIFO, or `-` for standard input
   * @param follow to wait for more at the end of the file
   */
  constructor(path: string, follow = false) {
    this.#source = new ByteSource(path, follow);
  }

  /** One of which all that is there has been looked at: a file that cannot be bridged is refused at once. */
  static checked(path: string, follow = false): Opening {
    const opening = new Opening(path, follow);
    opening.reader();
    return opening;
  }

  /** Whether it comes from a FIFO or socket: what has been read of it is gone. */
  get isFifo(): boolean {
    return this.#source.isFifo;
  }

  get path(): string {
    return this.#source.path;
  }

  /**
   * Reads the header, in pieces as a FIFO brings it. Returns undefined until it is there; of a file it always is.
   * Throws CaptureError, and has closed the file, where that is of another format, carries another link type than
   * Ethernet, or breaks off before it has described an interface.
   */
  reader(): CaptureReader | undefined {
    try {
      this.known ??= this.#readHeader();
      return this.known;
    } catch (error) {
      this.close();
      throw error;
    }
  }

  close(): void {
    if (this.known !== undefined) this.known.close();
    else this.#source.close();
  }

  /** Whether `length` bytes are there; false until they have come or there is an end. */
  #settled(length: number): boolean {
    return this.#source.have(length) || this.#source.ended;
  }

  #readHeader(): CaptureReader | undefined {
    const source = this.#source;
    if (this.#pcapng === undefined) {
      if (!this.#settled(4)) return undefined;
      if (!this.#unpacked) {
        this.#unpacked = true;
        const format = packedWith(source.bytes.subarray(source.pos, source.end));
        if (format !== undefined && UNPACKERS[format] !== undefined) unpackSource(source, format);
        if (!this.#settled(4)) return undefined;
      }
      const magic = checkedMagic(source);
      if (magic !== SECTION_HEADER) {
        if (!this.#settled(FILE_HEADER)) return undefined;
        if (source.available < FILE_HEADER)
          throw cutShort(source, `the file header has ${source.available} of its 24 bytes`);
        return new PcapReader(source, magic === MAGIC_US || magic === MAGIC_NS);
      }
      this.#pcapng = new PcapngReader(source);
    }
    return this.#pcapng.readInterfaces() || source.ended ? this.#pcapng : undefined;
  }
}

function unpackSource(source: ByteSource, format: Packed): void {
  if (source.live && !source.isFifo) {
    throw new CaptureError(
      `${source.path}: compressed with ${format}, and such a file cannot be followed; leave @follow out`,
    );
  }
  source.unpack(format);
}

function cutShort(source: ByteSource, what: string): CaptureError {
  return new CaptureError(
    source.failure ?? `${source.path}: truncated at byte ${source.available} (end of file): ${what}`,
  );
}

/** The first four bytes as a big-endian number: one of those that pcap and pcapng files begin with. */
function checkedMagic(source: ByteSource): number {
  const { bytes, path } = source;
  const format = packedWith(bytes.subarray(0, source.available));
  if (format !== undefined) throw new CaptureError(`${path}: ${unpackFirst(path, format)}`);
  if (source.available < 4) throw cutShort(source, 'no capture file is that short');
  const magic = u32(bytes, 0, true);
  const swapped = u32(bytes, 0, false);
  refuseVariantMagic(path, magic, swapped);
  if (![SECTION_HEADER, MAGIC_US, MAGIC_NS].includes(magic) && swapped !== MAGIC_US && swapped !== MAGIC_NS) {
    throw new CaptureError(
      `${path}: neither pcap nor pcapng: it begins with ${magic.toString(16).padStart(8, '0')}; ` +
        `if it is another capture format, convert it: editcap -F pcapng ${path} FILE.pcapng`,
    );
  }
  return magic;
}
