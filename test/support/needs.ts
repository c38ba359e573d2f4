// What a test needs of the machine, and what becomes of it where that is missing.
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';

/** For node:test's `skip` option: why, or false. In CI all is there to be tested: a reason to skip is an error. */
export function skipFor(reason: string | undefined): string | false {
  if (reason !== undefined && process.env.CI === 'true') throw new Error(`CI must be able to run this: ${reason}`);
  return reason ?? false;
}

/** Which of these programs are not in PATH, as a reason to skip; undefined: all are there. */
export function missing(...programs: string[]): string | undefined {
  const absent = programs.filter((program) => !isInPath(program));
  return absent.length === 0 ? undefined : `not installed, or not in PATH: ${absent.join(', ')}`;
}

/** {@link skipFor} without these programs. */
export function skipWithout(...programs: string[]): string | false {
  return skipFor(missing(...programs));
}

export function isInPath(program: string): boolean {
  return (process.env.PATH ?? '').split(delimiter).some((folder) => {
    try {
      accessSync(join(folder, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}
