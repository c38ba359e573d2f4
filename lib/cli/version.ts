import { createRequire } from 'node:module';

/** The package's version. */
export function version(): string {
  return (createRequire(import.meta.url)('netmap-bridge/package.json') as { version: string }).version;
}
