/**
 * Sizes, rates, times, counts and shares: one parser each for what people write, and the formatters for what they read.
 * Every parser throws a UsageError that names the text, the cause and an example.
 */
export * from './sizes.js';
export * from './rates.js';
export * from './times.js';
export * from './counts.js';
export * from './shares.js';
