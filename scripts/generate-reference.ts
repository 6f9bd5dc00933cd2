/**
 * Writes docs/reference/errors.md, metrics.md and the OpenAPI document out of the tables that the code throws from,
 * counts by and validates with; `--check` fails when a committed file differs.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { groundErrors, type ErrorTable } from '../src/errors.js';
import { feedErrors, feedMetrics } from '../src/feed/index.js';
import type { MetricTable } from '../src/metrics.js';
import { notifyErrors, notifyMetrics } from '../src/notify/index.js';
import { outboxMetrics } from '../src/queue/outbox/index.js';
import { redisQueueErrors } from '../src/queue/redis/index.js';
import { queueErrors, queueMetrics, workerErrors, workerMetrics } from '../src/queue/index.js';
import { openApiDocument, serverErrors } from '../src/server/index.js';

const folder = new URL('../docs/reference/', import.meta.url);
const cell = (text: string) => text.replaceAll('|', '\\|').replaceAll('\n', ' ');

function errorsPage(tables: Readonly<Record<string, ErrorTable>>): string {
  const sections = Object.entries(tables).map(([part, table]) => {
    const rows = Object.entries(table).map(
      ([code, { status, meaning }]) => `| \`${code}\` | ${status} | ${cell(meaning)} |`,
    );
    return `## ${part}\n\n| code | HTTP | meaning |\n|---|---|---|\n${rows.join('\n')}\n`;
  });
  return [
    '# Errors\n',
    'Every error has a stable `code`. In TypeScript it is a `HeadgateError` with `code`, `field`, `value` and `expected`; over HTTP it is',
    'problem+json with the same fields. Made by `npm run generate` from the tables of the code.\n',
    ...sections,
  ].join('\n');
}

function metricsPage(tables: Readonly<Record<string, MetricTable>>): string {
  const sections = Object.entries(tables).map(([part, table]) => {
    const rows = Object.entries(table).map(
      ([name, { type, help, labels }]) =>
        `| \`${name}\` | ${type} | ${labels.map((label) => `\`${label}\``).join(', ')} | ${cell(help)} |`,
    );
    return `## ${part}\n\n| metric | type | labels | meaning |\n|---|---|---|---|\n${rows.join('\n')}\n`;
  });
  return [
    '# Metrics\n',
    'Served at `/metrics` in the Prometheus format. Labels are few-valued; ids are in the log. Made by `npm run generate`.\n',
    ...sections,
  ].join('\n');
}

const pages: Readonly<Record<string, string>> = {
  'errors.md': errorsPage({
    Ground: groundErrors,
    Queue: queueErrors,
    Worker: workerErrors,
    'Queue on Redis': redisQueueErrors,
    Feed: feedErrors,
    Notify: notifyErrors,
    Server: serverErrors,
  }),
  'metrics.md': metricsPage({
    Queue: queueMetrics,
    Worker: workerMetrics,
    Outbox: outboxMetrics,
    Feed: feedMetrics,
    Notify: notifyMetrics,
  }),
  'openapi.json': `${JSON.stringify(await openApiDocument(), null, 2)}\n`,
};

const committed = (name: string): string | undefined => {
  try {
    return readFileSync(new URL(name, folder), 'utf8');
  } catch {
    return undefined;
  }
};

if (process.argv.includes('--check')) {
  const stale = Object.entries(pages).filter(([name, text]) => committed(name) !== text);
  for (const [name] of stale)
    console.log(`docs/reference/${name} is not what the code says; run npm run generate`);
  process.exitCode = stale.length > 0 ? 1 : 0;
} else {
  mkdirSync(folder, { recursive: true });
  for (const [name, text] of Object.entries(pages)) writeFileSync(new URL(name, folder), text);
}
