/**
 * The page that the `type` of every problem leads to: /docs/errors with each code under its own fragment, made of the tables that
 * the code throws from. It loads nothing and runs nothing.
 */
import { createHash } from 'node:crypto';
import type { FastifyInstance } from 'fastify';
import { groundErrors, type ErrorTable } from '../errors.js';
import { feedErrors } from '../feed/index.js';
import { notifyErrors } from '../notify/index.js';
import { queueErrors, workerErrors } from '../queue/index.js';
import { serverErrors } from './problem.js';

/** By part; a store that brings codes of its own is added by whoever chose it. */
export type ErrorTables = Readonly<Record<string, ErrorTable>>;

const tablesOfTheParts: ErrorTables = {
  Server: serverErrors,
  Ground: groundErrors,
  Queue: queueErrors,
  Worker: workerErrors,
  Feed: feedErrors,
  Notify: notifyErrors,
};

const style = `:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
dt { margin-top: 1rem; font-weight: 600; scroll-margin-top: 2rem; } dd { margin: 0; } :target { outline: 2px solid; outline-offset: 4px; }`;
const styleHash = createHash('sha256').update(style).digest('base64');
const policy = `default-src 'none'; style-src 'sha256-${styleHash}'; base-uri 'none'; frame-ancestors 'none'`;

export function registerErrorsPage(app: FastifyInstance, ofStores: ErrorTables = {}): void {
  const page = pageOf({ ...tablesOfTheParts, ...ofStores });
  app.get('/docs/errors', { schema: { hide: true } }, async (_request, reply) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', policy).send(page),
  );
}

function pageOf(tables: ErrorTables): string {
  const sections = Object.entries(tables).map(([part, table]) => {
    const rows = Object.entries(table).map(
      ([code, { status, meaning }]) =>
        `<dt id="${code}"><code>${code}</code> (${status})</dt><dd>${escaped(meaning)}</dd>`,
    );
    return `<h2>${part}</h2><dl>${rows.join('\n')}</dl>`;
  });
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Errors of Headgate</title>
<meta name="viewport" content="width=device-width"><style>${style}</style></head><body><h1>Errors</h1>
<p>Every error is problem+json with a stable <code>code</code>, and with <code>field</code>, <code>value</code> and
<code>expected</code> where input was at fault. <a href="../docs">The API</a></p>
${sections.join('\n')}</body></html>`;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}
