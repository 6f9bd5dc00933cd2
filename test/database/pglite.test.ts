import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, inject, test } from 'vitest';
import { openPglite, type PgliteDatabase, readFolderLock } from '../../src/database/index.js';
import { killPrograms, startProgram } from './program.js';

const seedFile = inject('pgliteSeedFile');
const folders: string[] = [];
const databases: PgliteDatabase[] = [];

async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
  folders.push(folder);
  return folder;
}

async function openIn(folder: string): Promise<PgliteDatabase> {
  const database = await openPglite({ folder, seedFile });
  databases.push(database);
  return database;
}

afterEach(async () => {
  killPrograms();
  for (const database of databases.splice(0)) await database.close();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

describe('the embedded database on a folder', () => {
  test('keeps what was written, through close and open', async () => {
    const folder = await makeFolder();
    const first = await openIn(folder);
    await first.script('create table kept (a int); insert into kept values (1)');
    await first.close();
    const second = await openIn(folder);
    expect((await second.query('select a from kept')).rows).toEqual([{ a: 1 }]);
  });

  test('is refused to a second opener of the same process', async () => {
    const folder = await makeFolder();
    await openIn(folder);
    await expect(openIn(folder)).rejects.toMatchObject({
      code: 'folder-locked',
      ids: { pid: String(process.pid) },
    });
  });

  test('is refused to a second process, with the address of the first, and free once that has died', async () => {
    const folder = await makeFolder();
    const holder = startProgram('open-folder', folder, seedFile, 'http://127.0.0.1:1234');
    await expect.poll(() => holder.lines, { timeout: 30_000 }).toEqual(['open']);
    await expect(openIn(folder)).rejects.toMatchObject({
      code: 'folder-locked',
      message: expect.stringContaining(folder),
      ids: { folder, pid: String(holder.child.pid), address: 'http://127.0.0.1:1234' },
    });
    expect(await readFolderLock(folder)).toMatchObject({
      pid: holder.child.pid,
      address: 'http://127.0.0.1:1234',
    });
    const second = startProgram('open-folder', folder, seedFile);
    expect(await second.ended).toBe(0);
    expect(second.lines).toEqual(['folder-locked']);
    holder.kill('SIGKILL');
    await holder.ended;
    const database = await openIn(folder);
    expect((await database.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  test('has every acknowledged row after SIGKILL in the middle of writing, three times over', {
    timeout: 240_000,
  }, async () => {
    const folder = await makeFolder();
    const acknowledged: string[] = [];
    for (const rowsMin of [20, 60, 150]) {
      const writer = startProgram('write-rows', folder, seedFile);
      await expect.poll(() => writer.lines.length, { timeout: 30_000 }).toBeGreaterThan(rowsMin);
      writer.kill('SIGKILL');
      await writer.ended;
      acknowledged.push(...writer.lines.filter((line) => line !== 'ready'));
      const database = await openIn(folder);
      const { rows } = await database.query<{ id: string }>('select id from written');
      expect(rows.map(({ id }) => id)).toEqual(expect.arrayContaining(acknowledged));
      expect(rows.length - acknowledged.length).toBeLessThanOrEqual(3);
      await database.query('analyze written');
      await database.close();
    }
  });

  test('is made anew when its first start was cut short', async () => {
    const folder = await makeFolder();
    await mkdir(join(folder, 'postgres'));
    await writeFile(join(folder, 'postgres', 'PG_VERSION'), '18\n');
    await writeFile(join(folder, 'postgres.unfinished'), '');
    const database = await openIn(folder);
    expect((await database.query('select 1 as one')).rows).toEqual([{ one: 1 }]);
    expect(existsSync(join(folder, 'postgres.unfinished'))).toBe(false);
  });

  test('that another version made is refused with the reason, left alone, and free again', async () => {
    const folder = await makeFolder();
    await (await openIn(folder)).close();
    const versionFile = join(folder, 'postgres', 'PG_VERSION');
    await writeFile(versionFile, '12\n');
    await expect(openIn(folder)).rejects.toMatchObject({
      code: 'database-unavailable',
      message: expect.stringContaining('database files are incompatible with server'),
    });
    expect(await readFolderLock(folder)).toBeUndefined();
    await writeFile(versionFile, '18\n');
    expect((await (await openIn(folder)).query('select 1 as one')).rows).toEqual([{ one: 1 }]);
  });

  test('does not keep the process alive when it is not closed, and nothing is lost', async () => {
    const folder = await makeFolder();
    const program = startProgram('leave-open', folder, seedFile);
    expect(await program.ended).toBe(0);
    expect(program.lines).toEqual(['done']);
    const database = await openIn(folder);
    expect((await database.query('select a from left_open')).rows).toEqual([{ a: 1 }]);
  });

  test('says what it survives', async () => {
    const database = await openIn(await makeFolder());
    expect(await database.durability()).toMatchObject({
      fsync: false,
      survives: expect.stringContaining('not a power cut'),
    });
  });
});

describe('the thread of the embedded database', () => {
  test('leaves the event loop free while a statement runs', { timeout: 240_000 }, async () => {
    const database = await openIn('memory');
    await database.query('select 1');
    const order: string[] = [];
    const slow = database
      .query('select count(*) from generate_series(1, 3000000)')
      .then(() => order.push('query'));
    setTimeout(() => order.push('timer'), 1);
    setImmediate(() => order.push('immediate'));
    await slow;
    expect(order.toSorted()).toEqual(['immediate', 'query', 'timer']);
    expect(order.at(-1)).toBe('query');
  });
});
