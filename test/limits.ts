/**
 * Limits in time, for what must happen soon. The limit of the case holds in the long run, on a machine of its own; beside
 * others on a shared machine ten times as much is allowed, because there it only tells whether it happens at all.
 */
export const within = (limitMs: number): number => (process.env['HEADGATE_LONG'] ? limitMs : limitMs * 10);
