/** Exit codes of all tools. One that a second signal ends at once has 128 + its number instead. */
export const EXIT = { ok: 0, failed: 1, usage: 2 } as const;
