/**
 * How numbers, times and durations are written on every page: short, in one width per column, units always said.
 */
const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const oneDigit = new Intl.NumberFormat('en', { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat('en-GB', { hour: '2-digit', minute: '2-digit', second: '2-digit' });
const day = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', year: 'numeric' });

/** `1,234`; from a million on `1.2M`. */
export function formatCount(value: number): string {
  return Math.abs(value) >= 1_000_000 ? compact.format(value) : whole.format(value);
}

/** Bytes in the unit that leaves one to three digits before the point: `812 B`, `12.4 MB`, `3.0 GB`. */
export function formatBytes(bytes: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB'];
  const step = Math.min(units.length - 1, Math.floor(Math.log10(Math.max(bytes, 1)) / 3));
  return `${(step === 0 ? whole : oneDigit).format(bytes / 1_000 ** step)} ${units[step]}`;
}

/** A number per second: one digit below ten, whole above. */
export function formatRate(value: number): string {
  if (value === 0) return '0';
  if (value >= 100_000) return compact.format(value);
  return value < 9.95 ? oneDigit.format(value) : whole.format(value);
}

/** Seconds in the largest two units: `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min`, `4 d 3 h`. */
export function formatSeconds(seconds: number): string {
  if (seconds < 0.05) return '0 s';
  if (seconds < 9.95) return `${oneDigit.format(seconds)} s`;
  const total = Math.round(seconds);
  if (total < 60) return `${total} s`;
  if (total < 3_600) return joined([Math.floor(total / 60), 'min'], [total % 60, 's']);
  if (total < 86_400)
    return joined([Math.floor(total / 3_600), 'h'], [Math.floor((total % 3_600) / 60), 'min']);
  return joined([Math.floor(total / 86_400), 'd'], [Math.floor((total % 86_400) / 3_600), 'h']);
}

/** Distances at which durations stand on an axis, so that each is a whole number of its unit. */
export const secondSteps: readonly number[] = [
  0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 21_600, 43_200, 86_400,
  172_800, 604_800, 1_209_600, 2_419_200, 7_257_600, 31_536_000,
];

/** How long ago, by the clock of this browser: `now`, `12 s ago`, `3 min ago`, `4 d ago`. */
export function formatAgo(unixMs: number, nowMs: number): string {
  const seconds = (nowMs - unixMs) / 1_000;
  if (seconds < 0) return `in ${coarse(-seconds)}`;
  return seconds < 1.5 ? 'now' : `${coarse(seconds)} ago`;
}

/** `14:03:22` today, with the day otherwise. */
export function formatTime(unixMs: number, nowMs: number): string {
  const sameDay = day.format(unixMs) === day.format(nowMs);
  return sameDay ? clock.format(unixMs) : `${day.format(unixMs)}, ${clock.format(unixMs)}`;
}

export function formatClock(unixMs: number): string {
  return clock.format(unixMs);
}

/** A priority that is a deadline, as the norm says, is shown as its time; any other as the number it is. */
export function formatPriority(priority: number, nowMs: number): string {
  const isDeadline = Math.abs(priority - nowMs) < 10 * 365 * 86_400_000;
  return isDeadline ? formatTime(priority, nowMs) : String(priority);
}

/** Two digits after the point, floored: 99.997 % is not 100 %. `total` is not 0. */
export function formatShare(part: number, total: number): string {
  const percent = Math.floor((part / total) * 10_000) / 100;
  return `${percent === 100 ? '100' : percent.toFixed(2)} %`;
}

function joined([big, bigUnit]: [number, string], [small, smallUnit]: [number, string]): string {
  return small === 0 ? `${big} ${bigUnit}` : `${big} ${bigUnit} ${small} ${smallUnit}`;
}

function coarse(seconds: number): string {
  if (seconds < 59.5) return `${Math.round(seconds)} s`;
  if (seconds < 3_570) return `${Math.round(seconds / 60)} min`;
  if (seconds < 84_600) return `${Math.round(seconds / 3_600)} h`;
  return `${Math.round(seconds / 86_400)} d`;
}
