/** Quiet hours on ordinary days and on the days when clocks change. */
import { describe, expect, it } from 'vitest';
import { nextQuietEnd, parseLocalTime, parseTimeZone } from './quiet-hours.js';

const night = { from: parseLocalTime('from', '22:00'), until: parseLocalTime('until', '07:00') };

/** The local time of the end, as the zone's own clock shows it. */
async function endOf(at: string, timeZone: string, quiet = night): Promise<string | undefined> {
  const end = await nextQuietEnd({ at: Date.parse(at), timeZone, quiet });
  if (end === undefined) return undefined;
  const local = new Intl.DateTimeFormat('sv-SE', { timeZone, dateStyle: 'short', timeStyle: 'short' }).format(
    end,
  );
  return local;
}

describe('N30: quiet hours', () => {
  it.each([
    // The clocks go forward, and back, in the night between.
    ['Europe/Berlin', '2026-03-28T22:30:00Z', '2026-03-29 07:00'],
    ['Europe/Berlin', '2026-03-29T22:30:00Z', '2026-03-30 07:00'],
    ['Europe/Berlin', '2026-10-24T22:30:00Z', '2026-10-25 07:00'],
    ['Europe/Berlin', '2026-10-25T01:30:00Z', '2026-10-25 07:00'],
    ['America/New_York', '2026-03-08T04:00:00Z', '2026-03-08 07:00'],
    ['America/New_York', '2026-11-01T05:30:00Z', '2026-11-01 07:00'],
    ['America/New_York', '2026-11-01T06:30:00Z', '2026-11-01 07:00'],
    ['Asia/Kathmandu', '2026-03-28T18:00:00Z', '2026-03-29 07:00'],
    ['Australia/Lord_Howe', '2026-04-04T14:50:00Z', '2026-04-05 07:00'],
    ['Australia/Lord_Howe', '2026-10-03T15:10:00Z', '2026-10-04 07:00'],
  ])('in %s at %s end at %s', async (zone, at, expected) => {
    expect(await endOf(at, zone)).toBe(expected);
  });

  it('hold nothing by day, and begin and end on the minute', async () => {
    expect(await endOf('2026-06-01T10:00:00Z', 'Europe/Berlin')).toBeUndefined();
    expect(await endOf('2026-06-01T19:59:59Z', 'Europe/Berlin')).toBeUndefined();
    expect(await endOf('2026-06-01T20:00:00Z', 'Europe/Berlin')).toBe('2026-06-02 07:00');
    expect(await endOf('2026-06-02T05:00:00Z', 'Europe/Berlin')).toBeUndefined();
  });

  it('that end in the hour that is skipped end when it is over', async () => {
    const quiet = { from: 60, until: 150 };
    expect(await endOf('2026-03-29T00:30:00Z', 'Europe/Berlin', quiet)).toBe('2026-03-29 03:30');
  });

  it('take zones by name only', () => {
    for (const name of ['Mars/Olympus', '+02:00', ''])
      expect(() => parseTimeZone('timeZone', name)).toThrow('IANA');
    for (const text of ['24:00', '7:00', '22']) expect(() => parseLocalTime('from', text)).toThrow('22:00');
  });
});
