import { once } from 'node:events';
import { mkdir, mkdtemp, readdir, rm, utimes, writeFile } from 'node:fs/promises';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { lockFolder, readFolderLock } from '../../src/database/index.js';
import { killPrograms, startProgram } from './program.js';

const folders: string[] = [];
async function makeFolder(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'headgate-test-'));
  folders.push(folder);
  return folder;
}

afterEach(async () => {
  killPrograms();
  for (const folder of folders.splice(0)) await rm(folder, { recursive: true, force: true });
});

test('a folder that nobody holds has no holder', async () => {
  const folder = await makeFolder();
  expect(await readFolderLock(folder)).toBeUndefined();
  expect(await readFolderLock(join(folder, 'missing'))).toBeUndefined();
  expect(await readdir(folder)).toEqual([]);
});

test('the holder is told with its pid and the address that it has by now', async () => {
  const folder = await makeFolder();
  const lock = await lockFolder(folder);
  expect(await readFolderLock(folder)).toMatchObject({ pid: process.pid, address: undefined });
  lock.setAddress('http://127.0.0.1:8080');
  expect(await readFolderLock(folder)).toMatchObject({ address: 'http://127.0.0.1:8080' });
  await expect(lockFolder(folder)).rejects.toMatchObject({
    code: 'folder-locked',
    status: 409,
    message: expect.stringContaining('http://127.0.0.1:8080'),
    ids: { folder, pid: String(process.pid), address: 'http://127.0.0.1:8080' },
  });
  await lock.release();
});

test('a released folder can be taken again and nothing is left in it', async () => {
  const folder = await makeFolder();
  for (let round = 0; round < 3; round += 1) {
    const lock = await lockFolder(folder);
    await lock.release();
    await lock.release();
  }
  expect(await readFolderLock(folder)).toBeUndefined();
  expect(await readdir(join(folder, 'lock'))).toEqual([]);
});

test('the socket of a process that was killed is stale and is cleared away', async () => {
  const folder = await makeFolder();
  const holder = startProgram('take-lock', folder, '0', '-1');
  await holder.ended;
  expect(await readdir(join(folder, 'lock'))).toHaveLength(1);
  expect(await readFolderLock(folder)).toBeUndefined();
  const lock = await lockFolder(folder);
  expect(await readdir(join(folder, 'lock'))).toHaveLength(1);
  await lock.release();
});

test('a process that is stopped and does not answer still holds its folder', async () => {
  const folder = await makeFolder();
  const holder = startProgram('take-lock', folder, '0', '60000');
  await expect
    .poll(() => readFolderLock(folder), { timeout: 20_000 })
    .toMatchObject({ pid: holder.child.pid });
  holder.kill('SIGSTOP');
  await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'folder-locked' });
});

test('a file that is no socket does not lock a folder', async () => {
  const folder = await makeFolder();
  const lock = await lockFolder(folder);
  await lock.release();
  await writeFile(join(folder, 'lock', 'stray.sock'), '');
  const again = await lockFolder(folder);
  expect(await readFolderLock(folder)).toMatchObject({ pid: process.pid });
  await again.release();
});

test('a folder whose path is longer than a socket address is locked like any other', async () => {
  const folder = join(
    await makeFolder(),
    'a-folder-with-a-long-name-'.repeat(4),
    'another-folder-with-a-long-name',
  );
  const lock = await lockFolder(folder);
  expect(await readFolderLock(folder)).toMatchObject({ pid: process.pid });
  await expect(lockFolder(folder)).rejects.toMatchObject({ code: 'folder-locked' });
  const other = startProgram('take-lock', folder);
  await other.ended;
  expect(other.lines).toEqual(['folder-locked']);
  await lock.release();
  expect(await readdir(join(folder, 'lock'))).toEqual([]);
});

test('what a starter left that was killed before it showed its socket is cleared away, but not at once', async () => {
  const folder = await makeFolder();
  await mkdir(join(folder, 'lock'));
  await writeFile(join(folder, 'lock', 'old.new'), '');
  await utimes(join(folder, 'lock', 'old.new'), 0, 0);
  await writeFile(join(folder, 'lock', 'young.new'), '');
  const lock = await lockFolder(folder);
  await lock.release();
  expect(await readdir(join(folder, 'lock'))).toEqual(['young.new']);
});

test('a starter waits until a rival that has not made up its mind is gone', async () => {
  const folder = await makeFolder();
  await mkdir(join(folder, 'lock'));
  const id = 'f'.repeat(16);
  let asked = 0;
  const rival = createServer((socket) => {
    asked += 1;
    socket.end(JSON.stringify({ id, state: 'starting', pid: 1, host: 'rival', startedAt: 0 }));
  });
  rival.listen(join(folder, 'lock', `${id}.sock`));
  await once(rival, 'listening');
  let taken = false;
  const taking = lockFolder(folder).then((lock) => {
    taken = true;
    return lock;
  });
  await expect.poll(() => asked).toBeGreaterThanOrEqual(3);
  expect(taken).toBe(false);
  rival.close();
  const lock = await taking;
  await lock.release();
});

test('of many takers at once in one process exactly one gets the folder, round after round', async () => {
  const folder = await makeFolder();
  for (let round = 0; round < 30; round += 1) {
    const attempts = await Promise.allSettled(Array.from({ length: 6 }, () => lockFolder(folder)));
    const locks = attempts.flatMap((attempt) => (attempt.status === 'fulfilled' ? [attempt.value] : []));
    const refusals = attempts.flatMap((attempt) => (attempt.status === 'rejected' ? [attempt.reason] : []));
    expect(refusals).toMatchObject(Array.from({ length: 5 }, () => ({ code: 'folder-locked' })));
    expect(locks).toHaveLength(1);
    await locks[0]?.release();
  }
});

test('of many processes that start at the same moment over a stale socket never two hold the folder', {
  timeout: 240_000,
}, async () => {
  const folder = await makeFolder();
  for (let round = 0; round < 3; round += 1) {
    const killed = startProgram('take-lock', folder, '0', '-1');
    await killed.ended;
    const atMs = String(Date.now() + 2_000);
    const takers = Array.from({ length: 6 }, () => startProgram('take-lock', folder, atMs, '50'));
    await Promise.all(takers.map(({ ended }) => ended));
    const held = takers
      .map(({ lines }) => (lines[0] ?? '').split(' '))
      .filter(([word]) => word === 'held')
      .map(([, from, to]) => ({ from: BigInt(from ?? 0), to: BigInt(to ?? 0) }))
      .sort((left, right) => Number(left.from - right.from));
    expect(held.length).toBeGreaterThanOrEqual(1);
    const overlaps = held.filter(({ from }, index) => index > 0 && from <= (held[index - 1]?.to ?? 0n));
    expect(overlaps).toEqual([]);
  }
});
