/** Programs as a command line names them: a ready one, or a module of the user's own. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { UsageError } from '../text/errors.js';
import type { ProgramFactory } from './program.js';
import { readyProgram } from './ready.js';

/** Whether `text` names a file: it has a slash, or ends as JavaScript and TypeScript do. */
function isFile(text: string): boolean {
  return !/^\w+:/.test(text) && (text.includes('/') || /\.[cm]?[jt]s$/.test(text));
}

/** Reads what can be read without loading anything. @throws UsageError */
export function checkProgram(text: string): void {
  if (!isFile(text)) readyProgram(text);
  else if (!existsSync(text)) throw new UsageError(`program ${text}: there is no such file, or you may not see it`);
}

/**
 * The program that `text` names. A module's default export is its factory.
 * @throws UsageError that names the file and what is wrong with it
 */
export async function loadProgram(text: string): Promise<ProgramFactory> {
  checkProgram(text);
  if (!isFile(text)) return readyProgram(text);
  const module = (await import(pathToFileURL(resolve(text)).href).catch((error: unknown) => {
    throw new UsageError(`program ${text}: ${whyNot(error as Error & { code?: string })}`);
  })) as { default?: unknown };
  if (typeof module.default === 'function') return module.default as ProgramFactory;
  throw new UsageError(
    `program ${text}: it has no default export that is a function; write export default (setup) => (frame) => …`,
  );
}

function whyNot(error: Error & { code?: string }): string {
  if (error.code === 'ERR_UNKNOWN_FILE_EXTENSION' || error.code === 'ERR_UNSUPPORTED_NODE_MODULES_TYPE_STRIPPING')
    return (
      `Node.js ${process.version} does not read TypeScript here; run Node.js 22.18 or later, ` +
      'or compile it (npx tsc --module nodenext FILE) and name the .js'
    );
  return error.stack ?? error.message;
}
