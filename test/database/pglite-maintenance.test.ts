/** The embedded database keeps house by itself: bounded log, dead rows, statistics. */
import { afterEach, describe, expect, it } from 'vitest';
import type { Database } from '../../src/database/index.js';
import { testDatabases } from './test-databases.js';

const embedded = testDatabases()[0]!;
let database: Database;
afterEach(() => database?.close());

describe('a database in use', () => {
  it('is vacuumed and analyzed without anyone asking', async () => {
    database = await embedded.open({ maintenanceMs: 50 });
    await database.query('create table hot (id int primary key, value int)');
    await database.query('insert into hot select n, 0 from generate_series(1, 5000) n');
    await database.query('update hot set value = 1');
    const dead = async () => {
      const { rows } = await database.query<{ dead: string; rows: number }>(`
        select n_dead_tup as dead, c.reltuples::int as rows from pg_stat_user_tables s
        join pg_class c on c.oid = s.relid where s.relname = 'hot'`);
      return { dead: Number(rows[0]?.dead), rows: rows[0]?.rows };
    };
    await expect.poll(dead, { timeout: 30_000 }).toEqual({ dead: 0, rows: 5_000 });
  });

  it('has a log that a checkpoint keeps short', async () => {
    database = await embedded.open({ maintenanceMs: 50 });
    await database.query('create table big (filler text)');
    const write = () =>
      database.query("insert into big select repeat('x', 1000) from generate_series(1, 10000)");
    const sinceCheckpoint = async () => {
      const { rows } = await database.query<{ bytes: string }>(
        'select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), redo_lsn)::bigint as bytes from pg_control_checkpoint()',
      );
      return Number(rows[0]?.bytes);
    };
    while ((await sinceCheckpoint()) < 70_000_000) await write();
    await expect.poll(sinceCheckpoint, { timeout: 30_000 }).toBeLessThan(10_000_000);
  });
});
