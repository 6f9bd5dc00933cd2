import { accessSync, constants } from 'node:fs';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Database, migrate } from '../../src/database/index.js';
import { ChildServer, findFreePort, findServerUser } from '../../src/testing/index.js';
import { testServers } from './test-databases.js';

const pgbouncer = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin']
  .map((folder) => join(folder, 'pgbouncer'))
  .find((file) => {
    try {
      accessSync(file, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });

/** Two connections to the server for all clients, lent for one transaction at a time. */
const configuration = (target: URL, port: number): string => `
[databases]
${target.pathname.slice(1)} = host=${target.hostname} port=${target.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 2
max_client_conn = 100
`;

describe.skipIf(pgbouncer === undefined).each(testServers())(
  'PgBouncer in transaction mode before $name (needs pgbouncer)',
  ({ open, url }) => {
    let folder = '';
    let pooler: ChildServer;
    let database: Database;

    beforeAll(async () => {
      const target = new URL(await url());
      const user = findServerUser(['postgres', 'nobody']);
      folder = await mkdtemp(join(tmpdir(), 'headgate-pooler-'));
      const port = await findFreePort();
      const file = join(folder, 'pgbouncer.ini');
      // Its server connections log in as the user that the target's cluster was made with.
      await writeFile(
        file,
        configuration(target, port).replace(/(port=\d+)\n/, `$1 user=${target.username}\n`),
      );
      if (user) await chown(folder, user.uid, user.gid);
      pooler = new ChildServer({
        command: pgbouncer ?? '',
        folder,
        logFile: join(folder, 'pgbouncer.log'),
        orphanSignal: 'KILL',
        user,
      });
      pooler.start([file]);
      const pooled = new URL(target);
      pooled.port = String(port);
      database = await open({
        connectionString: pooled.href,
        listenConnectionString: target.href,
        preparedStatements: false,
        poolMax: 20,
      });
      await vi.waitFor(() => database.query('select 1'), { timeout: 20_000 });
    });

    afterAll(async () => {
      await database.close();
      await pooler.end('SIGKILL');
      pooler.release();
      await rm(folder, { recursive: true, force: true });
    });

    test('statements and transactions of many connections share two of the server', async () => {
      await database.script('create table pooled (id int primary key)');
      await Promise.all(
        Array.from({ length: 60 }, (_, id) =>
          database.transaction(async (transaction) => {
            await transaction.query('insert into pooled values ($1)', [id]);
            const { rows } = await transaction.query('select count(*) as count from pooled where id = $1', [
              id,
            ]);
            expect(rows).toEqual([{ count: '1' }]);
          }),
        ),
      );
      expect((await database.query('select count(*) as count from pooled')).rows).toEqual([{ count: '60' }]);
      const { rows } = await database.query<{ sessions: string }>(
        'select count(*) as sessions from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()',
      );
      expect(Number(rows[0]?.sessions)).toBeLessThanOrEqual(2);
    });

    test('migrations that start together apply each file once', async () => {
      const files = await mkdtemp(join(tmpdir(), 'headgate-test-'));
      await writeFile(join(files, '0001-one.sql'), 'create table {{schema}}.one (); select pg_sleep(0.1);');
      await writeFile(join(files, '0002-two.sql'), 'create table {{schema}}.two ();');
      const options = { part: 'test', schema: 'through_pooler', directory: pathToFileURL(files) };
      const counts = await Promise.all([1, 2, 3].map(() => migrate(database, options)));
      expect(counts.reduce((sum, count) => sum + count)).toBe(2);
      await rm(files, { recursive: true });
    });

    test('listening goes past it', async () => {
      const heard: string[] = [];
      await database.listen('past', (payload) => heard.push(payload));
      await database.query("select pg_notify('past', 'heard')");
      await expect.poll(() => heard).toEqual(['heard']);
    });
  },
);
