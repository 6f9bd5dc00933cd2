/**
 * Quiet hours: until when something is held, in the user's own time zone by name, so that it is right on every day of
 * the year. Nothing is computed with offsets that were remembered.
 */
import { groundError, invalidInput } from '../errors.js';

/** Local minutes of the day; `from` may be later than `until`: over midnight. */
export interface QuietHours {
  readonly from: number;
  readonly until: number;
}

/** Throws `invalid-input` for a name that the IANA database does not know; an offset such as +02:00 is none. */
export function parseTimeZone(field: string, name: string): string {
  try {
    if (/^[+-]/.test(name)) throw new RangeError('an offset');
    return new Intl.DateTimeFormat('en', { timeZone: name }).format(0) && name;
  } catch {
    throw invalidInput(field, name, 'an IANA time zone such as Europe/Berlin');
  }
}

/** `22:00` as minutes of the day. */
export function parseLocalTime(field: string, text: string): number {
  const match = /^([01]\d|2[0-3]):([0-5]\d)$/.exec(text);
  if (!match) throw invalidInput(field, text, 'a local time such as 22:00');
  return Number(match[1]) * 60 + Number(match[2]);
}

/**
 * The end of the quiet hours in which `at` (unix ms) lies, or undefined when it lies in none. Default zone: UTC. An end
 * that a change of clock skips is the moment after the gap; one that happens twice is the first.
 */
export async function nextQuietEnd(request: {
  readonly at: number;
  readonly timeZone: string | undefined;
  readonly quiet: QuietHours;
}): Promise<number | undefined> {
  const { at, timeZone = 'UTC', quiet } = request;
  const { Temporal } = await import('temporal-polyfill').catch((cause: unknown) => {
    throw groundError('driver-missing', 'quiet hours need temporal-polyfill: npm install temporal-polyfill', {
      cause,
    });
  });
  const local = Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(timeZone);
  const minute = local.hour * 60 + local.minute;
  const overMidnight = quiet.from > quiet.until;
  const inside = overMidnight
    ? minute >= quiet.from || minute < quiet.until
    : minute >= quiet.from && minute < quiet.until;
  if (!inside) return undefined;
  const day = minute < quiet.until ? local.toPlainDate() : local.toPlainDate().add({ days: 1 });
  const time = new Temporal.PlainTime(Math.floor(quiet.until / 60), quiet.until % 60);
  return day.toPlainDateTime(time).toZonedDateTime(timeZone, { disambiguation: 'compatible' })
    .epochMilliseconds;
}
