/** What an operator reads when a command cannot do its work: one sentence that names the cause, never a stack, and the exit code. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:net';
import { createServer as createHttpServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { exitCodes } from '../../src/cli/exit-codes.js';
import { describeFailure } from '../../src/cli/failure.js';
import { openPglite, SqlError } from '../../src/database/index.js';
import { findFreePort } from '../../src/testing/index.js';
import { runHeadgate } from './headgate-process.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-failure-'));
});
afterAll(async () => {
  await rm(folder, { recursive: true, force: true });
});

async function headgate(...args: string[]): Promise<{ code: number | string; output: string }> {
  const started = runHeadgate(args);
  const code = await started.exit();
  return { code, output: started.output() };
}

const stackLine = /\n\s+at /;
const redisError = (name: string, message: string): Error => Object.assign(new Error(message), { name });

describe('a failure that an operator can put right', () => {
  it.each([
    ['a database that is missing', new SqlError({ code: '3D000', message: 'database "app" does not exist' })],
    [
      'a wrong password',
      new SqlError({ code: '28P01', message: 'password authentication failed for user "app"' }),
    ],
    ['a missing right', new SqlError({ code: '42501', message: 'permission denied for database app' })],
  ])('is one sentence that names --database-url: %s', (_what, error) => {
    const { text, exitCode } = describeFailure(error);
    expect(text).toContain(error.message);
    expect(text).toContain('--database-url');
    expect(text).not.toMatch(stackLine);
    expect(exitCode).toBe(exitCodes.failed);
  });

  it.each([
    redisError('MaxRetriesPerRequestError', 'Reached the max retries per request limit'),
    redisError('ReplyError', 'WRONGPASS invalid username-password pair'),
    redisError('ReplyError', 'NOAUTH Authentication required.'),
  ])('is one sentence that names --redis-url: %s', (error) => {
    const { text } = describeFailure(error);
    expect(text).toContain('--redis-url');
    expect(text).not.toMatch(stackLine);
  });

  it('keeps the stack of what nobody foresaw', () => {
    expect(describeFailure(new TypeError('x is not a function')).text).toMatch(stackLine);
  });
});

describe('headgate', () => {
  it('names the address at which no server answers', { timeout: 60_000 }, async () => {
    const address = `http://127.0.0.1:${await findFreePort()}`;
    const { code, output } = await headgate('queue', 'list', '--url', address);
    expect(output).toContain(`no server answers at ${address}`);
    expect(output).not.toMatch(stackLine);
    expect(code).toBe(exitCodes.failed);
  });

  it('tells when another program answers at the address', { timeout: 60_000 }, async () => {
    const other = createHttpServer((_request, response) => response.end('<h1>It works</h1>'));
    await new Promise<void>((resolve) => other.listen(0, '127.0.0.1', resolve));
    const { port } = other.address() as { port: number };
    const { code, output } = await headgate('queue', 'list', '--url', `http://127.0.0.1:${port}`);
    other.close();
    expect(output).toContain(`what answers at http://127.0.0.1:${port} is not Headgate`);
    expect(output).not.toMatch(stackLine);
    expect(code).toBe(exitCodes.failed);
  });

  it('does not make a database where one is looked for', { timeout: 60_000 }, async () => {
    const missing = join(folder, 'missing');
    const { code, output } = await headgate('queue', 'list', '--data', missing);
    expect(output).toContain('--data: expected a folder that Headgate has been started on');
    expect(code).toBe(exitCodes.usage);
  });

  it('refuses a database whose queue is on Redis when it is given none', { timeout: 120_000 }, async () => {
    const data = join(folder, 'queue-elsewhere');
    const database = await openPglite({ folder: data });
    await database.query('create schema headgate_outbox'); // as the first start with a Redis leaves it
    await database.close();
    const { code, output } = await headgate('queue', 'enqueue', 'mail', '--payload', '1', '--data', data);
    expect(output).toContain('--redis-url: expected the Redis that carries the queue of this database');
    expect(code).toBe(exitCodes.usage);
  });

  it('ends after a signal while the database does not answer', { timeout: 60_000 }, async () => {
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve));
    const { port } = silent.address() as { port: number };
    const connected = new Promise<void>((resolve) => silent.once('connection', () => resolve()));
    const url = `postgres://app:secret@127.0.0.1:${port}/app`;
    const started = runHeadgate(['serve', '--port', '0', '--database-url', url]);
    await connected;
    expect(await started.kill('SIGTERM')).toBe(exitCodes.failed);
    // the bound of the stop, not the ten seconds of the database
    expect(started.output()).toContain('the stop took longer than its deadline');
    expect(started.output()).not.toContain('secret');
    silent.close();
  });
});
