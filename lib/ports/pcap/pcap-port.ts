import type { Amount } from '../../rings/amount.js';
import { RING_TAIL } from '../../rings/abi.js';
import { asPort } from '../../capture/capture-error.js';
import { Opening } from '../../capture/open-capture.js';
import { CaptureWriter } from '../../capture/writer.js';
import type { Memory } from '../../rings/memory.js';
import type { Port, Prepare } from '../port.js';
import { formatOf, type PcapSpec } from '../../names/pcap-name.js';
import type { Region } from '../../rings/region.js';
import type { Ring } from '../../rings/ring.js';
import { CaptureRx } from './pcap-rx.js';
import { Stamps } from './pcap-stamps.js';
import { CaptureTx } from './pcap-tx.js';

/** A frame takes at most 64 slots, so that many large ones fit; a ring's buffers are 2 MiB. */
const SLOTS = 1024;
const BUF_SIZE = 2048;
/** How long to sleep where a FIFO has brought nothing, or has no room. */
const NAP_NS = 1_000_000;

/**
 * `pcap:IN`, `pcap:@out=OUT`, `pcap:IN@out=OUT`: the rx ring brings the frames of one capture file, the tx ring's go
 * to another. A file that is not there has no ring: what only reads takes no frames, what only writes brings none.
 * Files may be FIFOs, which are never waited for: one that is read need not have a writer yet, and one that is written
 * counts as a link that is up once somebody reads it.
 *
 * Slots hold no FCS, so one that the capture kept is left out. A frame of a capture keeps its time where it is written
 * by a port of the same memory that only captures share (see pcap-stamps.ts); any other has the time of writing.
 *
 * @throws PortError when the file to read cannot be opened or is no Ethernet capture
 */
export const preparePcap: Prepare<PcapSpec> = (spec, options) => {
  const { read, write } = spec;
  // Before any port creates its file: that it is one of those being read is noticed only while they are open.
  const opening = read === undefined ? undefined : asPort(spec.text, () => Opening.checked(read, spec.follow));
  return {
    needs: {
      plan: { tx: write === undefined ? [] : [SLOTS], rx: read === undefined ? [] : [SLOTS] },
      bufSize: BUF_SIZE,
    },
    open(memory) {
      if (memory === undefined) throw new TypeError(`${spec.text}: opened without the memory it needs`);
      const writer =
        write === undefined
          ? undefined
          : asPort(spec.text, () => new CaptureWriter(write, { format: spec.format ?? formatOf(write) }));
      return new PcapPort(spec, options.copy ?? false, memory, opening, writer);
    },
    abandon: () => opening?.close(),
  };
};

class PcapPort implements Port {
  readonly name: string;
  readonly driver = 'pcap';
  readonly region: Region;
  readonly tx: readonly Ring[];
  readonly rx: readonly Ring[];
  readonly hostTx = [];
  readonly hostRx = [];
  readonly fds = [];
  readonly napNs = NAP_NS;
  readonly hasLink: boolean;
  readonly #from: CaptureRx | undefined;
  readonly #to: CaptureTx | undefined;
  readonly #memory: Memory;
  readonly #stamps: Stamps;
  #open = true;

  constructor(
    spec: PcapSpec,
    copied: boolean,
    memory: Memory,
    opening: Opening | undefined,
    writer: CaptureWriter | undefined,
  ) {
    this.name = spec.text;
    const rings = memory.carve({ tx: writer ? [SLOTS] : [], rx: opening ? [SLOTS] : [] });
    const stamps = (this.#stamps = Stamps.of(memory));
    stamps.join(opening !== undefined, writer);
    this.#memory = memory;
    this.region = memory.region;
    this.tx = rings.tx;
    this.rx = rings.rx;
    this.#from = opening && new CaptureRx(opening, rings.rx[0], stamps, spec.short, copied);
    this.#to = writer && new CaptureTx(writer, rings.tx[0], stamps);
    this.hasLink = writer?.isFifo ?? false;
  }

  get notes(): readonly string[] {
    const notes: string[] = [];
    if (this.#from) {
      const { opening, reader } = this.#from;
      notes.push(`reads ${opening.path}: ${reader?.format ?? 'frames flow once something is written to it'}`);
      const uncopied = reader?.uncopied;
      if (uncopied !== undefined && this.#stamps.onlyCaptures) notes.push(`what is not copied from it: ${uncopied}`);
    }
    if (this.#to) {
      const { isFifo, format, path, resolution } = this.#to.writer;
      const settled = format === 'pcapng' || this.#stamps.settled;
      const unit = !settled ? 'ns or µs as what is read' : resolution === 'ns' ? 'ns' : 'µs';
      const fifo = isFifo ? '; a FIFO, whose link is up once somebody reads it' : '';
      notes.push(`writes ${path}: ${format}, little-endian, ${unit}${fifo}`);
    }
    return notes;
  }

  txsync(): void {
    if (this.#open && this.#to) asPort(this.name, () => this.#to?.sync());
  }

  rxsync(): void {
    if (this.#open && this.#from) asPort(this.name, () => this.#from?.sync());
  }

  linkUp(): boolean {
    return !this.hasLink || (this.#to?.writer.connected ?? true);
  }

  ended(): boolean {
    return this.#from?.ended ?? true;
  }

  problem(): string | undefined {
    return this.#from?.reader?.problem;
  }

  txPending(): number {
    return this.#open && this.#to ? this.#to.pending : 0;
  }

  refused(): Amount {
    return this.#to?.refused ?? { frames: 0, bytes: 0 };
  }

  unsent(): Amount {
    return this.#to?.unsent ?? { frames: 0, bytes: 0 };
  }

  /**
   * Of the file read: `framesRead` (put into the rx ring), and the frames left out: `shortCaptured` (the capture holds
   * only their beginning), `tooLong` (more than 64 slots), `empty` (no bytes), `otherLinkType_N` (no Ethernet frames).
   * Of those read, the ones captured short that were delivered: `shortKept` as they are, to a capture, `shortPadded`
   * with zeros in place of the rest, `shortCut` as if they ended there; and those with more bytes in the file than they
   * had: `excessKept`, to a capture, and `excessCut`, without those bytes. `badBuffers`: rx slots that came back
   * with a buffer outside the memory. Of the file written: `framesWritten`, and the frames left out: `unwritten` (the
   * file could not be written), `txCorrupt` (a slot named bytes outside the memory), `txTooLong` (more than 64 slots);
   * `clampedTimes`: written with another time because pcap holds 1970 to 2106 only. `reinits`: rings put back because
   * the user's head or cur was outside.
   */
  stats(): Record<string, number> {
    const from = this.#from;
    const to = this.#to;
    const foreign = [...(from?.reader?.foreign ?? [])];
    return {
      ...(from && {
        framesRead: from.frames,
        shortCaptured: from.shortCaptured,
        shortKept: from.shortSent.keep,
        shortPadded: from.shortSent.pad,
        shortCut: from.shortSent.cut,
        excessKept: from.excess.keep,
        excessCut: from.excess.cut,
        ...Object.fromEntries(foreign.map(([linkType, frames]) => [`otherLinkType_${linkType}`, frames])),
        tooLong: from.tooLong,
        empty: from.empty,
        badBuffers: from.badBuffers,
      }),
      ...(to && {
        framesWritten: to.writer.frames - to.writer.lost.frames - to.writer.buffered.frames,
        unwritten: to.writer.lost.frames,
        txCorrupt: to.corrupt,
        txTooLong: to.tooLong,
        clampedTimes: to.writer.clampedTimes,
      }),
      reinits: (from?.kring.reinits ?? 0) + (to?.kring.reinits ?? 0),
    };
  }

  /** Throws PortError if what had not been flushed cannot be written; everything is let go all the same. */
  close(): void {
    if (!this.#open) return;
    this.#open = false;
    for (const ring of [...this.tx, ...this.rx]) ring.i32[ring.base + RING_TAIL] = ring.head;
    this.#from?.opening.close();
    this.#memory.release();
    asPort(this.name, () => this.#to?.writer.close());
  }
}
