import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { startProxy } from '../../src/testing/proxy.js';
import { createRecordingLog } from './recording-log.js';
import { testDatabases, testServers } from './test-databases.js';

const notify = (database: Pick<Database, 'query'>, channel: string, payload: string) =>
  database.query('select pg_notify($1, $2)', [channel, payload]);

describe.each(testDatabases())('listening on $name', ({ open }) => {
  const log = createRecordingLog();
  let database: Database;
  beforeAll(async () => {
    database = await open({ log });
  });
  afterAll(() => database.close());

  test('every handler of a channel gets each payload, and nobody else does', async () => {
    const heard: string[] = [];
    const ends = [
      await database.listen('shared', (payload) => heard.push(`first ${payload}`)),
      await database.listen('shared', (payload) => heard.push(`second ${payload}`)),
      await database.listen('elsewhere', (payload) => heard.push(`elsewhere ${payload}`)),
    ];
    await notify(database, 'shared', 'a');
    await expect.poll(() => heard.toSorted()).toEqual(['first a', 'second a']);
    for (const end of ends) await end();
  });

  test('the same function may listen twice and end once', async () => {
    const heard: string[] = [];
    const handler = (payload: string): void => {
      heard.push(payload);
    };
    const end = await database.listen('twice', handler);
    const endOther = await database.listen('twice', handler);
    await end();
    await end();
    await notify(database, 'twice', 'a');
    await expect.poll(() => heard).toEqual(['a']);
    await endOther();
  });

  test('a channel that was left can be listened to again', async () => {
    const heard: string[] = [];
    for (const payload of ['first', 'second']) {
      const end = await database.listen('again', (text) => heard.push(text));
      await notify(database, 'again', payload);
      await expect.poll(() => heard.at(-1)).toBe(payload);
      await end();
      await notify(database, 'again', 'nobody hears this');
    }
    expect(heard).toEqual(['first', 'second']);
  });

  test('a notification of a transaction comes when it commits, and not when it rolls back', async () => {
    const heard: string[] = [];
    const end = await database.listen('committed', (payload) => heard.push(payload));
    await database
      .transaction(async (transaction) => {
        await notify(transaction, 'committed', 'rolled back');
        throw new Error('roll back');
      })
      .catch(() => {});
    await database.transaction((transaction) => notify(transaction, 'committed', 'kept'));
    await expect.poll(() => heard).toEqual(['kept']);
    await end();
  });

  test('a handler that throws is logged and stops nobody', async () => {
    log.lines.length = 0;
    const heard: string[] = [];
    const ends = [
      await database.listen('thrown', () => {
        throw new Error('handler');
      }),
      await database.listen('thrown', (payload) => heard.push(payload)),
    ];
    await notify(database, 'thrown', 'a');
    await expect.poll(() => heard).toEqual(['a']);
    expect(log.lines).toMatchObject([{ level: 'error', fields: { channel: 'thrown' } }]);
    for (const end of ends) await end();
  });

  test.each(['', 'Upper', 'a-b', 'a"b', 'a'.repeat(64)])('the channel %j is refused', async (channel) => {
    await expect(database.listen(channel, () => {})).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'channel',
    });
  });
});

describe.each(testServers())('a listening connection to $name', ({ open, url }) => {
  const openBehindProxy = async () => {
    const target = new URL(await url());
    const proxy = await startProxy({ target: { host: target.hostname, port: Number(target.port) } });
    const log = createRecordingLog();
    const applicationName = `listener ${target.pathname} ${proxy.port}`;
    const database = await open({
      applicationName,
      connectionString: proxy.urlOf(await url()),
      heartbeatIntervalMs: 100,
      heartbeatTimeoutMs: 200,
      log,
    });
    const direct = await open();
    const heard: string[] = [];
    await database.listen('watched', (payload) => heard.push(payload));
    const close = async (): Promise<void> => {
      await Promise.all([database.close(), direct.close()]);
      await proxy.stop();
    };
    return { proxy, log, database, direct, heard, applicationName, close };
  };

  test('is one for all channels, however many there are', async () => {
    const { proxy, database, close } = await openBehindProxy();
    for (let index = 0; index < 20; index += 1) await database.listen(`channel_${index}`, () => {});
    expect(proxy.connections).toBe(1);
    await close();
  });

  test('is replaced when it goes half-open; handlers are told and then hear again', async () => {
    const { proxy, heard, direct, log, close } = await openBehindProxy();
    expect(proxy.goHalfOpen()).toBe(1);
    await notify(direct, 'watched', 'lost');
    await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['']);
    await notify(direct, 'watched', 'heard');
    await expect.poll(() => heard).toEqual(['', 'heard']);
    await expect.poll(() => proxy.connections).toBe(1);
    expect(log.lines).toMatchObject([{ level: 'warn' }]);
    await close();
  });

  test('is replaced when its backend is terminated', async () => {
    const { heard, direct, applicationName, close } = await openBehindProxy();
    const { rowCount } = await direct.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1',
      [applicationName],
    );
    expect(rowCount).toBe(1);
    await expect.poll(() => heard, { timeout: 10_000 }).toEqual(['']);
    await notify(direct, 'watched', 'heard');
    await expect.poll(() => heard).toEqual(['', 'heard']);
    await close();
  });

  test('is tried again at a bounded rate and with bounded log lines while nobody takes it', async () => {
    const { proxy, heard, log, close } = await openBehindProxy();
    proxy.refuse(true);
    proxy.cut();
    await expect.poll(() => proxy.refused, { timeout: 20_000 }).toBeGreaterThanOrEqual(3);
    expect(log.lines.length).toBe(1);
    proxy.heal();
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(['']);
    await close();
  });

  test('is replaced though new connections are half-open for a while', async () => {
    const { proxy, heard, direct, close } = await openBehindProxy();
    proxy.goHalfOpen({ alsoNew: true });
    await expect.poll(() => proxy.accepted, { timeout: 20_000 }).toBeGreaterThanOrEqual(2);
    proxy.heal();
    await expect.poll(() => heard, { timeout: 20_000 }).toEqual(['']);
    await notify(direct, 'watched', 'heard');
    await expect.poll(() => heard).toEqual(['', 'heard']);
    await close();
  });

  test('that never comes to be makes listen fail by its bound', async () => {
    const { proxy, close } = await openBehindProxy();
    proxy.refuse(true);
    const other = await open({ connectionString: proxy.urlOf(await url()), acquireTimeoutMs: 300 });
    await expect(other.listen('channel', () => {})).rejects.toMatchObject({ code: 'database-unavailable' });
    await other.close();
    await close();
  });

  test('that comes to be after everybody has given up waiting is closed', async () => {
    const target = new URL(await url());
    const proxy = await startProxy({ target: { host: target.hostname, port: Number(target.port) } });
    const database = await open({ connectionString: proxy.urlOf(await url()), acquireTimeoutMs: 300 });
    proxy.delayReplies(1_000);
    await expect(database.listen('late', () => {})).rejects.toMatchObject({ code: 'database-unavailable' });
    expect(proxy.connections).toBe(1);
    await expect.poll(() => proxy.connections).toBe(0);
    await database.close();
    await proxy.stop();
  });

  test('may go elsewhere than the statements, past a pooler', async () => {
    const { proxy, direct, close } = await openBehindProxy();
    const before = proxy.accepted;
    const other = await open({ listenConnectionString: proxy.urlOf(await url()) });
    const heard: string[] = [];
    await other.listen('past_the_pooler', (payload) => heard.push(payload));
    expect(proxy.accepted).toBe(before + 1);
    await notify(direct, 'past_the_pooler', 'heard');
    await expect.poll(() => heard).toEqual(['heard']);
    await other.query('select 1');
    expect(proxy.accepted).toBe(before + 1);
    await other.close();
    await close();
  });

  test('is closed when nobody listens any more, and made again when somebody does', async () => {
    const { proxy, direct, close } = await openBehindProxy();
    const other = await open({ connectionString: proxy.urlOf(await url()) });
    for (const payload of ['first', 'second']) {
      const heard: string[] = [];
      const end = await other.listen('on_and_off', (text) => heard.push(text));
      expect(proxy.connections).toBe(2);
      await notify(direct, 'on_and_off', payload);
      await expect.poll(() => heard).toEqual([payload]);
      await end();
      await expect.poll(() => proxy.connections).toBe(1);
    }
    await other.close();
    await close();
  });

  test('close ends at once while it is being made', async () => {
    const { proxy, close } = await openBehindProxy();
    proxy.goHalfOpen({ alsoNew: true });
    const other = await open({ connectionString: proxy.urlOf(await url()), heartbeatTimeoutMs: 600_000 });
    const listening = other.listen('channel', () => {}).catch((error: unknown) => error);
    await expect.poll(() => proxy.accepted).toBeGreaterThanOrEqual(2);
    await other.close();
    expect(await listening).toMatchObject({ code: 'database-closed' });
    await close();
  });

  test('close ends at once though it is silent', async () => {
    const { proxy, database, close } = await openBehindProxy();
    proxy.goHalfOpen({ alsoNew: true });
    await expect(database.close()).resolves.toBeUndefined();
    await close();
  });
});
