import { closeSync, openSync, writeSync } from 'node:fs';
import { PortError } from '../../text/errors.js';
import { Carver } from '../../rings/memory.js';
import { native, type Mapped } from '../../shim/native.js';
import { Region } from '../../rings/region.js';
import { Ring } from '../../rings/ring.js';
import type { PipeSpec } from '../../names/pipe-name.js';
import { systemError, type PipeFiles } from './pipe-files.js';
import * as layout from './pipe-layout.js';

/** The memories this thread has mapped, by path: all ports on one see the same buffers under one region id. */
const mapped = new Map<string, PipeMemory>();

/** The shared memory of all pipes of one name, mapped once a thread. Opening, claiming and tidying need the guard. */
export class PipeMemory {
  readonly region: Region;
  readonly geometry: layout.Geometry;
  #users = 0;

  /**
   * The memory of `spec`'s name, made if it is not there. The caller ends its use with release().
   * @throws PortError when it exists with another number of slots and is in use, or cannot be made
   */
  static acquire(spec: PipeSpec, files: PipeFiles): PipeMemory {
    let memory = mapped.get(files.memory);
    if (memory === undefined) {
      memory = new PipeMemory(`pipe:${spec.name}`, files, open(spec, files), spec.slots);
      mapped.set(files.memory, memory);
    } else if (memory.geometry.slots !== spec.slots) {
      throw otherSlots(spec, files, memory.geometry.slots);
    }
    memory.#users++;
    return memory;
  }

  private constructor(
    id: string,
    readonly files: PipeFiles,
    private readonly mapping: Mapped,
    slots: number,
  ) {
    this.region = new Region(id, mapping.buffer);
    this.geometry = layout.geometry(slots);
  }

  /** Removes the files when no end is open and nothing waits to be read. */
  tidy(port: string): void {
    const empty = this.pipes().every((_, k) => this.queued(k) === 0);
    if (empty && this.files.live(port).size === 0) this.files.remove();
  }

  /** Ends one use; with the last one in this thread the memory is unmapped and every view of it reads as empty. */
  release(): void {
    if (--this.#users > 0) return;
    mapped.delete(this.files.memory);
    native.closeMemory(this.mapping.handle);
  }

  /** Pipes that were ever used, by their place in the table: `[id, …]`. */
  pipes(): string[] {
    return pipeIds(this.region.i32, this.geometry.pipes);
  }

  /**
   * The place of a pipe in the table; takes a free one, or one that nobody uses, for a new pipe.
   * @throws PortError when all places are in use, or there is no memory for the buffers
   */
  claim(spec: PipeSpec): number {
    const ids = this.pipes();
    const known = ids.indexOf(spec.pipe);
    if (known >= 0) return known;
    let k = ids.length;
    if (k === this.geometry.pipes) {
      const live = this.files.live(spec.text);
      const open = (id: string) =>
        live.has(this.files.lockPath(id, 'master')) || live.has(this.files.lockPath(id, 'slave'));
      k = ids.findIndex((id, at) => !open(id) && this.queued(at) === 0);
      if (k < 0)
        throw new PortError(
          `${spec.text}: pipe:${spec.name} already has ${ids.length} pipes (${ids.join(', ')}), all in use; ` +
            'close one or use another name',
          spec.text,
          { code: 'ENOSPC' },
        );
    } else {
      const { bufBase } = this.geometry;
      const from = bufBase + layout.firstBuffer(spec.slots, k) * layout.BUF_SIZE;
      reserve(spec, this.files.memory, from, 4 * spec.slots * layout.BUF_SIZE);
    }
    const id = new Int32Array(layout.ID_WORDS);
    Buffer.from(id.buffer).write(spec.pipe, 'latin1');
    this.region.i32.set(id, layout.entryWord(k));
    return k;
  }

  /** Frames' slots that wait in pipe `k`, both directions. */
  queued(k: number): number {
    return queued(this.region.i32, this.geometry.slots, k);
  }

  /**
   * One ring of pipe `k`.
   * @throws PortError when its header is damaged
   */
  ring(k: number, side: number, direction: number, port: string): Ring {
    const { region, geometry, files } = this;
    try {
      const ring = new Ring(region, region.i32[layout.ringWord(k, side, direction)]);
      const { numSlots, bufSize, bufBase } = ring;
      if (numSlots === geometry.slots && bufSize === layout.BUF_SIZE && bufBase === geometry.bufBase) return ring;
    } catch (error) {
      if (!(error instanceof RangeError)) throw error;
    }
    throw damaged(port, files);
  }
}

/** What is left to say when shared words make no sense. */
export function damaged(port: string, files: PipeFiles): PortError {
  return new PortError(
    `${port}: the shared memory ${files.memory} is damaged; close every port on it, remove the file, and open again`,
    port,
    { code: 'EIO' },
  );
}

function otherSlots(spec: PipeSpec, files: PipeFiles, slots: number): PortError {
  return new PortError(
    `${spec.text}: pipe:${spec.name} exists with ${slots} slots, not ${spec.slots}, and is open or holds frames; ` +
      `open it with slots=${slots}, close its other ports and read what is queued, use another name, or remove ${files.memory}`,
    spec.text,
    { code: 'EEXIST' },
  );
}

function pipeIds(words: Int32Array, pipes: number): string[] {
  const ids: string[] = [];
  for (let k = 0; k < pipes; k++) {
    const id = words.slice(layout.entryWord(k), layout.entryWord(k) + layout.ID_WORDS);
    const text = Buffer.from(id.buffer).toString('latin1').replace(/\0+$/, '');
    if (text === '') break;
    ids.push(text);
  }
  return ids;
}

function queued(words: Int32Array, slots: number, k: number): number {
  let sum = 0;
  for (const side of [0, 1]) {
    const n = Atomics.load(words, layout.prodWord(k, side)) - Atomics.load(words, layout.consWord(k, side));
    sum += n < 0 ? n + slots : n;
  }
  return sum;
}

/** Maps the file of a memory; makes it first where there is none, or only a left-over of other size. */
function open(spec: PipeSpec, files: PipeFiles): Mapped {
  const wanted = layout.geometry(spec.slots);
  let memory = map(spec, files, wanted.bytes);
  if (!memory.created) {
    const found = inspect(memory.buffer);
    if (found?.slots === spec.slots) return memory;
    native.closeMemory(memory.handle);
    const inUse = files.live(spec.text).size > 0;
    if (found === undefined && inUse) throw damaged(spec.text, files);
    if (found !== undefined && (inUse || found.queued > 0)) throw otherSlots(spec, files, found.slots);
    files.removeMemory();
    memory = map(spec, files, wanted.bytes);
  }
  try {
    reserve(spec, files.memory, 0, wanted.bufBase);
    format(new Region(`pipe:${spec.name}`, memory.buffer), wanted);
  } catch (error) {
    native.closeMemory(memory.handle);
    if (files.live(spec.text).size === 0) files.remove();
    throw error;
  }
  return memory;
}

function map(spec: PipeSpec, files: PipeFiles, bytes: number): ReturnType<typeof native.mapShared> {
  try {
    return native.mapShared(files.memory, bytes);
  } catch (error) {
    throw systemError(error, files.memory, spec.text);
  }
}

/** The slots of a memory and what is queued in it; undefined when it is unfinished, of another version or damaged. */
function inspect(buffer: ArrayBuffer): { slots: number; queued: number } | undefined {
  const words = new Int32Array(buffer, 0, Math.floor(buffer.byteLength / 4));
  const slots = words[layout.AT_SLOTS];
  if (words[layout.AT_MAGIC] !== layout.MAGIC || words[layout.AT_VERSION] !== layout.VERSION) return undefined;
  if (words[layout.AT_BUF_SIZE] !== layout.BUF_SIZE || !(slots >= 2 && slots <= 65536)) return undefined;
  const { bytes, pipes } = layout.geometry(slots);
  if (bytes !== buffer.byteLength) return undefined;
  return { slots, queued: pipeIds(words, pipes).reduce((sum, _, k) => sum + queued(words, slots, k), 0) };
}

/** Lays out rings and buffers of every pipe there is room for. */
function format(region: Region, { slots, pipes, plan, ringBase, bufBase, bufCount }: layout.Geometry): void {
  const { i32 } = region;
  const carver = new Carver(region, ringBase, bufBase, layout.BUF_SIZE, bufCount);
  for (let k = 0; k < pipes; k++)
    for (const side of [0, 1]) {
      const { tx, rx } = carver.carve(plan);
      i32[layout.ringWord(k, side, 0)] = tx[0].base;
      i32[layout.ringWord(k, side, 1)] = rx[0].base;
    }
  i32[layout.AT_VERSION] = layout.VERSION;
  i32[layout.AT_SLOTS] = slots;
  i32[layout.AT_BUF_SIZE] = layout.BUF_SIZE;
  Atomics.store(i32, layout.AT_MAGIC, layout.MAGIC);
}

/** Has the file system set the pages aside now: touching one that it cannot provide later would kill the process. */
function reserve(spec: PipeSpec, path: string, from: number, bytes: number): void {
  const zeros = new Uint8Array(Math.min(bytes, 1 << 20));
  const fd = openSync(path, 'r+');
  try {
    for (let done = 0; done < bytes;)
      done += writeSync(fd, zeros, 0, Math.min(zeros.length, bytes - done), from + done);
  } catch (error) {
    throw systemError(error, path, spec.text);
  } finally {
    closeSync(fd);
  }
}
