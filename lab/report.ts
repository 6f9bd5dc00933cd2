/** Shows a report as a table with a verdict, or as one JSON object. */
import { cpus, release, totalmem } from 'node:os';
import type { Experiment, Figure, Report, Table } from './experiment.js';

export function machine(): string {
  const [cpu] = cpus();
  const gibibytes = Math.round(totalmem() / 2 ** 30);
  return `${cpus().length} x ${cpu?.model.trim() ?? 'unknown'}, ${gibibytes} GiB, ${process.platform} ${release()}, Node ${process.version}`;
}

export function asJson(request: {
  readonly experiment: Experiment;
  readonly report: Report;
  readonly seed: number;
}): string {
  const { experiment, report, seed } = request;
  const { holds, verdict, figures, reference, durability } = report;
  return JSON.stringify({
    name: experiment.name,
    holds,
    verdict,
    figures,
    reference,
    durability,
    seed,
    machine: machine(),
  });
}

export function asText(request: {
  readonly experiment: Experiment;
  readonly report: Report;
  readonly seed: number;
}): string {
  const { experiment, report, seed } = request;
  return [
    `${experiment.name}: ${experiment.shows}`,
    `machine: ${machine()}; seed ${seed}`,
    `durability: ${report.durability}`,
    ...report.tables.map(tableText),
    `reference: ${Object.entries(report.reference)
      .map(([name, value]) => `${name} ${show(value)}`)
      .join('; ')}`,
    `${report.holds ? 'holds' : 'falls short'}: ${report.verdict}`,
  ].join('\n');
}

function tableText({ columns, rows }: Table): string {
  const cells = [columns, ...rows.map((row) => row.map(show))];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  return cells
    .map((row) =>
      row
        .map((cell, column) => (column === 0 ? cell.padEnd(widths[0]!) : cell.padStart(widths[column]!)))
        .join('  '),
    )
    .join('\n');
}

function show(value: Figure): string {
  if (typeof value !== 'number') return String(value ?? '-');
  if (Number.isInteger(value)) return value.toLocaleString('en');
  return Math.abs(value) >= 1_000 ? Math.round(value).toLocaleString('en') : value.toPrecision(3);
}
