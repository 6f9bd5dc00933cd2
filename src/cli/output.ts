/** How commands print: an aligned table for people, one JSON value for programs. */
function textOf(value: unknown): string {
  if (value === undefined || value === null) return '-';
  // What would break a line, or steer the terminal, is shown escaped.
  return typeof value === 'string'
    ? value.replaceAll(
        /[\p{Cc}\u2028\u2029]/gu,
        (sign) => `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`,
      )
    : JSON.stringify(value);
}

/** Columns in the order of the first row's keys; `-` for what is missing. */
export function table(objects: readonly object[]): string {
  const rows = objects as readonly Readonly<Record<string, unknown>>[];
  const first = rows[0];
  if (!first) return '(nothing)';
  const columns = Object.keys(first);
  const lines = [columns, ...rows.map((row) => columns.map((column) => textOf(row[column])))];
  const widths = columns.map((_, index) => Math.max(...lines.map((line) => line[index]?.length ?? 0)));
  return lines
    .map((line) =>
      line
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

/** `show` makes the form for people. */
export function print<T>(value: T, { json }: { json: boolean }, show: (value: T) => string): void {
  process.stdout.write(`${json ? JSON.stringify(value) : show(value)}\n`);
}
