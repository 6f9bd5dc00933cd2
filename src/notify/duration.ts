/** Durations as people write them: `15s`, `10m`, `24h`, `30d`, or a number of milliseconds. */
import { invalidInput } from '../errors.js';

export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd'}`;

const unitMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;
const durationMsMax = 36_500 * unitMs.d;

/** In whole milliseconds; throws `invalid-input` naming the field. */
export function parseDurationMs(field: string, value: Duration, minMs = 0): number {
  const match = typeof value === 'string' ? /^(\d+(?:\.\d+)?)(ms|s|m|h|d)$/.exec(value) : null;
  const ms = match ? Math.round(Number(match[1]) * unitMs[match[2] as keyof typeof unitMs]) : value;
  if (typeof ms === 'number' && Number.isSafeInteger(ms) && ms >= minMs && ms <= durationMsMax) return ms;
  throw invalidInput(
    field,
    value,
    `a duration such as '15s', '10m', '24h', or milliseconds, of at least ${minMs} ms`,
  );
}
