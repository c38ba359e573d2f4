/** Putting settings back, whatever happened: a journal beside the results says at any time what is applied. */
import { closeSync, fsyncSync, lstatSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname } from 'node:path';
import { UsageError } from '../../text/errors.js';
import { unreadable } from '../results/files.js';
import { commandText, output, type Words } from './matrix-command.js';
import { restoreDevice, restoringCommands, type DeviceState } from './matrix-device.js';

/** How one setting is put back, and what it was. Plain data, for the journal. */
export type UndoStep =
  | { kind: 'command'; axis: string; undo: Words[]; read?: Words; was?: string; done?: boolean }
  | { kind: 'device'; device: string; was: DeviceState; done?: boolean };

interface JournalJson {
  v: 1;
  matrix: string;
  cell: string;
  timeoutMs: number;
  /** In the order in which they are undone. */
  undo: UndoStep[];
}

/** Settings could not be put back. The message says what to do by hand. */
export class RestoreError extends Error {
  override readonly name = 'RestoreError';
}

/** What is applied at this moment, kept in a file so that it can be undone after any death of this process. */
export class Journal {
  constructor(readonly file: string) {}

  /** Replaces the file at once and whole. */
  write(entry: JournalJson): void {
    const next = `${this.file}.new`;
    const fd = openSync(next, 'w', 0o600);
    try {
      writeSync(fd, `${JSON.stringify(entry, null, 2)}\n`);
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
    renameSync(next, this.file);
    this.#syncDirectory();
  }

  /** Nothing is applied any more. */
  clear(): void {
    rmSync(this.file, { force: true });
    this.#syncDirectory();
  }

  #syncDirectory(): void {
    const fd = openSync(dirname(this.file), 'r');
    try {
      fsyncSync(fd);
    } finally {
      closeSync(fd);
    }
  }

  /** What an earlier run left applied; undefined when it left nothing. */
  read(): JournalJson | undefined {
    let text: string;
    try {
      // What it says is run: nobody else may have written it.
      if (lstatSync(this.file).uid !== process.geteuid?.())
        throw new UsageError(
          `${this.file}: belongs to another user: only who began a matrix can put its settings back`,
        );
      text = readFileSync(this.file, 'utf8');
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw error instanceof UsageError ? error : unreadable(this.file, error, 'another file with --out');
    }
    try {
      const entry = JSON.parse(text) as JournalJson;
      if ((entry.v as number) === 1 && Array.isArray(entry.undo)) return entry;
    } catch {
      // Said below.
    }
    throw new UsageError(
      `${this.file}: not a journal of this version: check by hand that every setting is as it should be, then delete it`,
    );
  }
}

async function undoOne(step: UndoStep, timeoutMs: number): Promise<void> {
  if (step.kind === 'device') await restoreDevice(step.device, step.was);
  else for (const argv of step.undo) await output(argv, timeoutMs);
}

/** Throws when a setting that can be read is not what it was. */
async function check(step: UndoStep, timeoutMs: number): Promise<void> {
  if (step.kind === 'device') {
    // What was put back last can have moved what was put back before it.
    await restoreDevice(step.device, step.was);
  } else if (step.read) {
    const is = (await output(step.read, timeoutMs)).trim();
    if (is !== step.was) throw new Error(`was '${step.was ?? ''}' before and is '${is}' now`);
  }
}

async function byHand(step: UndoStep): Promise<string[]> {
  if (step.kind === 'command') return step.undo.map(commandText);
  const asItWas = `put ${step.device} back to ${JSON.stringify(step.was)}`;
  const commands = await restoringCommands(step.device, step.was).catch(() => []);
  return commands.length === 0 ? [asItWas] : commands.map(commandText);
}

/** Brings the journal up to date; where that fails (disk full), the old one stays, which names more and not less. */
function keep(journal: Journal, entry: JournalJson): void {
  try {
    journal.write(entry);
  } catch {
    // Undoing goes on: it matters more than its record.
  }
}

/**
 * Puts back what a journal's entry says, in its order, whatever fails on the way; then reads all that can be read. The
 * journal is gone when everything is as it was; otherwise it keeps what is not.
 * @throws RestoreError with what to do by hand
 */
export async function undoAll(journal: Journal, entry: JournalJson): Promise<void> {
  const failed = new Map<UndoStep, string>();
  const trying = async (step: UndoStep, body: () => Promise<void>): Promise<void> => {
    try {
      await body();
    } catch (error) {
      failed.set(step, (error as Error).message);
    }
  };
  for (const step of entry.undo) {
    if (step.done) continue;
    await trying(step, async () => {
      await undoOne(step, entry.timeoutMs);
      step.done = true;
    });
    keep(journal, entry);
  }
  for (const step of entry.undo) {
    if (!failed.has(step)) await trying(step, () => check(step, entry.timeoutMs));
  }
  if (failed.size === 0) {
    journal.clear();
    return;
  }
  for (const step of failed.keys()) step.done = false;
  keep(journal, { ...entry, undo: [...failed.keys()] });
  const lines: string[] = [];
  for (const [step, cause] of failed) {
    lines.push(`  ${step.kind === 'device' ? step.device : step.axis}: ${cause}`);
    lines.push('    by hand:', ...(await byHand(step)).map((command) => `      ${command}`));
  }
  throw new RestoreError(
    `SETTINGS ARE NOT AS THEY WERE (applied for ${entry.cell}):\n${lines.join('\n')}\n` +
      `Then delete ${journal.file}; or let measure matrix --restore try again.`,
  );
}
