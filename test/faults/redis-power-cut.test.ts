/**
 * A power cut, as far as a process can play one: a library preloaded into the server writes down how much of a file each flush has
 * covered; the server is killed and its append-only file cut there. What a disk does with a flush is not tested.
 */
import { execFileSync } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, truncate, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { createQueue, type Queue } from '../../src/queue/index.js';
import { createRedisQueueStore, type RedisDurability } from '../../src/queue/redis/index.js';
import { findRedisServer, type RedisServer, startRedisServer } from '../../src/testing/redis-server.js';

const source = fileURLToPath(new URL('./redis/power-cut.c', import.meta.url));

function findCompiler(): boolean {
  try {
    execFileSync('cc', ['--version'], { stdio: 'ignore' });
    return process.platform === 'linux';
  } catch {
    return false;
  }
}

let folder = '';
const journal = (): string => join(folder, 'journal');

/** A program that starts the server with the library. */
async function recording(program: string): Promise<string> {
  const library = join(folder, 'power-cut.so');
  execFileSync('cc', ['-shared', '-fPIC', '-o', library, source, '-ldl']);
  const path = join(folder, `recording-${program}`);
  await writeFile(
    path,
    `#!/bin/sh\nexport LD_PRELOAD=${library} POWER_CUT_JOURNAL=${journal()}\nexec ${program} "$@"\n`,
  );
  await chmod(path, 0o755);
  return path;
}

interface AppendOnlyFile {
  readonly path: string;
  readonly written: number;
  readonly flushed: number;
}

/** The file that grows; the one it begins from is flushed before it is used. */
async function appendOnlyFile(server: RedisServer): Promise<AppendOnlyFile> {
  const inside = join(dirname(server.logFile), 'appendonlydir');
  const name = (await readdir(inside)).find((file) => file.endsWith('.incr.aof'));
  if (name === undefined) throw new Error('the server has no append-only file');
  const path = join(inside, name);
  const { size: written } = await stat(path);
  const lines = (await readFile(journal(), 'utf8')).split('\n').filter((line) => line.endsWith(` ${path}`));
  return { path, written, flushed: Math.max(0, ...lines.map((line) => Number(line.split(' ')[0]))) };
}

/** Resolves with what the file lost when the server is back. */
async function cutPower(server: RedisServer): Promise<{ bytesLost: number }> {
  await server.kill();
  const { path, written, flushed } = await appendOnlyFile(server);
  await truncate(path, flushed);
  await server.restart();
  return { bytesLost: written - flushed };
}

const numberOf = (id: string): number => Number(id.slice(1));

/** Ids in the order in which they were acknowledged, one at a time. */
async function enqueueOneByOne(queue: Queue, server: RedisServer, durability: RedisDurability) {
  const acknowledged: string[] = [];
  /** A cut would cost something. Under strict there is no such moment. */
  const isEnough = async (): Promise<boolean> => {
    const { written, flushed } = await appendOnlyFile(server);
    return acknowledged.length >= 100 && (durability === 'strict' || written > flushed);
  };
  while (!(await isEnough())) {
    const id = `m${acknowledged.length}`;
    await queue.enqueue('q', [{ id, payload: {} }]);
    acknowledged.push(id);
  }
  return acknowledged;
}

async function list(queue: Queue): Promise<Set<string>> {
  const found = new Set<string>();
  let after: string | undefined;
  do {
    const page = await queue.list('q', {
      state: 'pending',
      limit: 100,
      ...(after !== undefined && { after }),
    });
    for (const { id } of page.messages) found.add(id);
    after = page.next;
  } while (after !== undefined);
  return found;
}

describe.skipIf(!findCompiler())('a power cut (needs Linux and a C compiler as cc)', () => {
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'headgate-power-cut-'));
  });
  afterAll(() => rm(folder, { recursive: true, force: true }));
  const ends: (() => Promise<unknown>)[] = [];
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });

  async function run(program: string, durability: RedisDurability) {
    const fsync = durability === 'strict' ? 'always' : 'everysec';
    const server = await startRedisServer({ program: await recording(program), fsync });
    ends.push(() => server.stop());
    const store = createRedisQueueStore({ url: server.url, durability, prefix: 't' });
    ends.push(() => store.stop());
    const queue = createQueue({ store });
    const acknowledged = await enqueueOneByOne(queue, server, durability);
    const { bytesLost } = await cutPower(server);
    let found: Set<string> | undefined;
    await expect.poll(async () => (found = await list(queue).catch(() => undefined))).toBeDefined();
    return { acknowledged, bytesLost, lost: acknowledged.filter((id) => !found!.has(id)) };
  }

  for (const program of ['redis-server', 'valkey-server']) {
    describe.skipIf(!findRedisServer(program))(`of ${program} (needs it on the PATH)`, () => {
      test('strict loses nothing that was acknowledged', async () => {
        const { lost } = await run(program, 'strict');
        expect(lost).toEqual([]);
      });

      test('everysec loses the latest messages, and no other', async () => {
        const { acknowledged, bytesLost, lost } = await run(program, 'everysec');
        expect(bytesLost).toBeGreaterThan(0);
        expect(lost.length).toBeGreaterThan(0);
        expect(lost.map(numberOf)).toEqual(acknowledged.slice(-lost.length).map(numberOf));
      });
    });
  }
});
