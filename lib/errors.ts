/** The user asked for something that cannot be: the message names the thing, the cause and the remedy. Exit code 2. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}
