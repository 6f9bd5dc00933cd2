import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Database, migrate } from '../../src/database/index.js';
import { startProgram } from './program.js';
import { testDatabases, testServers } from './test-databases.js';

const folders: string[] = [];
afterAll(async () => {
  for (const folder of folders) await rm(folder, { recursive: true, force: true });
});

async function makeFolder(files: Readonly<Record<string, string>>): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
  folders.push(folder);
  for (const [name, text] of Object.entries(files)) await writeFile(join(folder, name), text);
  return folder;
}

const twoFiles = {
  '0001-things.sql':
    'create table {{schema}}.thing (id int primary key); insert into {{schema}}.thing values (1);',
  '0002-names.sql': "alter table {{schema}}.thing add column name text not null default 'none';",
};

describe.each(testDatabases())('migrating $name', ({ open }) => {
  let database: Database;
  let schemas = 0;
  beforeAll(async () => {
    database = await open();
  });
  afterAll(() => database.close());

  const run = async (files: Readonly<Record<string, string>>, schema: string): Promise<number> =>
    migrate(database, { part: 'test', schema, directory: pathToFileURL(await makeFolder(files)) });
  const newSchema = (): string => {
    schemas += 1;
    return `migrated_${schemas}`;
  };

  test('applies all files in order, once, in the schema asked for', async () => {
    const [schema, other] = [newSchema(), newSchema()];
    expect(await run(twoFiles, schema)).toBe(2);
    expect(await run(twoFiles, schema)).toBe(0);
    expect(await run(twoFiles, other)).toBe(2);
    expect((await database.query(`select * from ${schema}.thing`)).rows).toEqual([{ id: 1, name: 'none' }]);
    const { rows } = await database.query(
      `select number, name, length(checksum) as length from ${schema}.migrations order by number`,
    );
    expect(rows).toEqual([
      { number: 1, name: 'things', length: 64 },
      { number: 2, name: 'names', length: 64 },
    ]);
  });

  test('applies only what is new', async () => {
    const schema = newSchema();
    await run(twoFiles, schema);
    expect(await run({ ...twoFiles, '0003-more.sql': 'create table {{schema}}.more ()' }, schema)).toBe(1);
  });

  test('leaves nothing of a file that fails, keeps those before it, and goes on when it is mended', async () => {
    const schema = newSchema();
    const broken = 'create table {{schema}}.half (); insert into {{schema}}.thing values (1)';
    await expect(run({ ...twoFiles, '0003-broken.sql': broken }, schema)).rejects.toMatchObject({
      code: '23505',
    });
    expect((await database.query('select to_regclass($1) as half', [`${schema}.half`])).rows).toEqual([
      { half: null },
    ]);
    expect(await run({ ...twoFiles, '0003-broken.sql': 'create table {{schema}}.half ()' }, schema)).toBe(1);
  });

  test('refuses a database that is newer, by name', async () => {
    const schema = newSchema();
    await run(twoFiles, schema);
    await expect(run({ '0001-things.sql': twoFiles['0001-things.sql'] }, schema)).rejects.toMatchObject({
      code: 'database-newer',
      ids: { part: 'test', migration: '2 names' },
    });
  });

  test('refuses a database that other files have made, before anything is done', async () => {
    const schema = newSchema();
    await run(twoFiles, schema);
    const changed = {
      ...twoFiles,
      '0001-things.sql': 'select 1',
      '0003-more.sql': 'create table {{schema}}.more ()',
    };
    await expect(run(changed, schema)).rejects.toMatchObject({
      code: 'migration-changed',
      ids: { part: 'test', migration: '1 things' },
    });
    expect((await database.query('select to_regclass($1) as more', [`${schema}.more`])).rows).toEqual([
      { more: null },
    ]);
  });

  test.each(['', 'Upper', '1st', 'a-b', 'a"; drop schema public; --', 'a'.repeat(42)])(
    'refuses the schema %j',
    async (schema) => {
      await expect(run(twoFiles, schema)).rejects.toMatchObject({ code: 'invalid-input', field: 'schema' });
    },
  );

  test.each([
    ['a gap', { '0001-one.sql': '', '0003-three.sql': '' }],
    ['a number twice', { '0001-one.sql': '', '0001-two.sql': '' }],
    ['a name that says no number', { 'first.sql': '' }],
  ])('refuses files with %s', async (_, files) => {
    await expect(run(files, newSchema())).rejects.toMatchObject({
      code: 'invalid-input',
      field: 'directory',
    });
  });

  test('calls that are made together apply each file once', async () => {
    const schema = newSchema();
    const counts = await Promise.all(Array.from({ length: 4 }, () => run(twoFiles, schema)));
    expect(counts.reduce((sum, count) => sum + count)).toBe(2);
  });
});

describe.each(testServers())('processes that migrate $name', ({ open, url }) => {
  test('together apply each file once', async () => {
    const folder = await makeFolder({ ...twoFiles, '0003-slow.sql': 'select pg_sleep(0.3)' });
    const atMs = String(Date.now() + 2_500);
    const connectionString = await url();
    const started = Array.from({ length: 3 }, () =>
      startProgram('migrate', connectionString, 'together', folder, atMs),
    );
    const codes = await Promise.all(started.map(({ ended }) => ended));
    expect(codes).toEqual([0, 0, 0]);
    const applied = started.map(({ lines }) => Number(lines[0]?.split(' ')[1]));
    expect(applied.reduce((sum, count) => sum + count)).toBe(3);
  });

  test('do not hang for ever behind a stray session that holds the lock', async () => {
    const database = await open();
    const stray = await open();
    const directory = pathToFileURL(await makeFolder(twoFiles));
    const options = { part: 'test', schema: 'behind', directory, lockTimeoutMs: 200 };
    await stray.transaction(async (transaction) => {
      await transaction.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        'headgate migrate "behind"',
      ]);
      await expect(migrate(database, options)).rejects.toMatchObject({
        code: 'database-busy',
        cause: { code: '55P03' },
      });
    });
    expect(await migrate(database, options)).toBe(2);
    await stray.transaction(async (transaction) => {
      await transaction.query('select pg_advisory_xact_lock(hashtextextended($1, 0))', [
        'headgate migrate "behind"',
      ]);
      expect(await migrate(database, options)).toBe(0);
    });
    await Promise.all([database.close(), stray.close()]);
  });

  test('need no right to make a schema that is there', async () => {
    const database = await open();
    await database.script(`
      create role limited login;
      create schema given authorization limited`);
    const limitedUrl = new URL(await url());
    limitedUrl.username = 'limited';
    const limited = await open({ connectionString: limitedUrl.href });
    const directory = pathToFileURL(await makeFolder(twoFiles));
    expect(await migrate(limited, { part: 'test', schema: 'given', directory })).toBe(2);
    await limited.close();
    await database.script('drop schema given cascade; drop role limited');
    await database.close();
  });
});
