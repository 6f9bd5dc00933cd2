/** `headgate start` as a user meets it: one process on a folder, stopped, killed, started again. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { call, runHeadgate, type HeadgateProcess } from './headgate-process.js';
import { until } from '../../src/testing/until.js';

// Two starts of the embedded database on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

let folder: string;
let processes: HeadgateProcess[];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-start-'));
  processes = [];
});
afterEach(async () => {
  await Promise.all(processes.map((started) => started.kill('SIGKILL')));
  await rm(folder, { recursive: true, force: true });
});

function start(...args: string[]): HeadgateProcess {
  const started = runHeadgate([
    'start',
    '--port',
    '0',
    '--data',
    join(folder, 'data'),
    '--rate',
    '0',
    ...args,
  ]);
  processes.push(started);
  return started;
}

const texts = (home: { body: { items: { text: string }[] } }) => home.body.items.map((item) => item.text);

describe('headgate start', () => {
  it('answers /health before its world is loaded and shows the same home after a stop and a start', async () => {
    const first = start('--accounts', '50');
    const address = await first.address();
    expect((await call(address, 'GET', '/health')).status).toBe(200);
    await first.ready();
    await until(async () => first.output().includes('read   curl'), { what: 'the invitation' });
    const author = /"author":"([^"]+)"/.exec(first.output())?.[1];
    const reader = /accounts\/([^/]+)\/home/.exec(first.output())?.[1];
    expect((await call(address, 'POST', '/v1/posts', { author, text: 'still here' })).status).toBe(201);
    const home = await until(
      async () => {
        const page = await call(address, 'GET', `/v1/accounts/${reader}/home`);
        const delivered = page.body.items.some((item: { fanOutDone: boolean }) => item.fanOutDone);
        return texts(page).includes('still here') && delivered ? page : undefined;
      },
      { what: 'the post in the home of a follower' },
    );
    expect(await first.kill('SIGINT')).toBe(0);

    const second = start();
    const again = await call(await second.ready(), 'GET', `/v1/accounts/${reader}/home`);
    const shown = (page: typeof again) =>
      page.body.items.map(({ id, author, text, createdAt }: Record<string, unknown>) => ({
        id,
        author,
        text,
        createdAt,
      }));
    expect(shown(again)).toEqual(shown(home));
    expect(await second.kill('SIGTERM')).toBe(0);
  });

  it('sends notifications to its local counterpart, takes its receipts, and stops within five seconds', {
    timeout: 180_000,
  }, async () => {
    const started = start('--accounts', '20', '--rate', '40');
    const address = await started.ready();
    const sent = async (kind: string) =>
      (await call(address, 'GET', `/v1/ledger?kind=${kind}`)).body.sent > 0;
    for (const kind of ['otp', 'order', 'promo', 'follow'])
      await until(() => sent(kind), { what: `a ${kind}` });
    await until(
      async () => {
        const { body } = await call(address, 'GET', '/v1/deliveries?kind=otp&state=sent&limit=200');
        return body.deliveries.some(({ receipt }: { receipt: string }) => receipt === 'delivered');
      },
      { what: 'a receipt' },
    );
    const { accepted, ...parts } = (await call(address, 'GET', '/v1/ledger')).body as Record<string, number>;
    expect(Object.values(parts).reduce((sum, count) => sum + count, 0)).toBe(accepted);
    const stoppedAtMs = performance.now();
    expect(await started.kill('SIGINT')).toBe(0);
    // an exit code of 0 says that it did not run into the deadline of five seconds, which ends it with 1
    expect(performance.now() - stoppedAtMs).toBeLessThan(30_000);
  });

  it('refuses a second process on the folder, naming the folder and the first one', async () => {
    const first = start('--accounts', '10');
    const address = await first.ready();
    const second = start();
    expect(await second.exit()).toBe(3);
    expect(second.output()).toContain('folder-locked');
    expect(second.output()).toContain(join(folder, 'data'));
    expect(second.output()).toContain(address);
    expect((await call(address, 'GET', '/health')).status).toBe(200);
  });

  it('loads a gzipped edge list with comments and CRLF, and counts self-follows', async () => {
    const file = join(folder, 'follows.txt.gz');
    await writeFile(file, gzipSync('# a comment\r\na\ta\r\na\tb\r\nb\ta\r\nc\tb\r\nc\tb\r\n'));
    const started = start('--follows', file);
    const address = await started.ready();
    expect(started.output()).toMatch(/loaded 3 follows of 3 new accounts .*skipped 1 self-follows, 1 known/);
    expect((await call(address, 'GET', '/v1/accounts/b')).body).toMatchObject({ followers: 2, followees: 1 });
  });

  it('ends on Ctrl-C while it loads, and goes on loading at the next start', async () => {
    const file = join(folder, 'follows.txt');
    const edges: string[] = [];
    for (let follower = 0; follower < 1_500; follower += 1)
      for (let step = 1; step <= 40; step += 1) edges.push(`${follower} ${(follower + step) % 1_500}`);
    await writeFile(file, `${edges.join('\n')}\n`);
    const first = start('--follows', file);
    const address = await first.address();
    await until(
      async () => {
        const { status, body } = await call(address, 'GET', '/ready');
        return status === 503 && body.progress?.done > 0;
      },
      { what: 'progress' },
    );
    expect(await first.kill('SIGINT')).toBe(0);
    expect(first.output()).not.toMatch(/loaded \d+ follows/);
    const second = start('--follows', file);
    const { body } = await call(await second.ready(), 'GET', '/v1/accounts/7');
    expect(body).toMatchObject({ followers: 40, followees: 40 });
  });

  it.each([
    [['--port', 'eighty'], '--port: expected a whole number from 0 to 65535, got "eighty"'],
    [['--follows', '/no/such/file'], '--follows: expected a readable file, got "/no/such/file"'],
    [['--rte', '1'], "unknown option '--rte'"],
  ])('refuses %j by name with exit code 2', async (args, message) => {
    const started = start(...args);
    expect(await started.exit()).toBe(2);
    expect(started.output()).toContain(message);
  });

  it('refuses to mix another world into a folder', async () => {
    const first = start('--accounts', '10');
    await first.ready();
    await first.kill('SIGINT');
    const second = start('--accounts', '11');
    expect(await second.exit()).toBe(2);
    expect(second.output()).toContain('a generated world of 10 accounts');
  });
});

describe('SIGKILL in the middle of a fan-out', () => {
  it('leaves every follower with the post once after a restart', async () => {
    const followers = 5_100; // two batches
    const file = join(folder, 'star.txt');
    await writeFile(file, Array.from({ length: followers }, (_, index) => `f${index} star\n`).join(''));
    const first = start('--follows', file);
    const address = await first.ready();
    const posted = await call(address, 'POST', '/v1/posts', { author: 'star', text: 'to all' });
    await first.kill('SIGKILL');

    const second = start();
    const again = await second.ready();
    const homeIds = async (index: number) =>
      (await call(again, 'GET', `/v1/accounts/f${index}/home`)).body.items.map(
        (item: { id: string; why: { source: string } }) => item.id,
      );
    await until(
      async () => (await call(again, 'GET', `/v1/posts/${posted.body.id}`)).body.fanOutDone === true,
      { what: 'the end of the fan-out', boundMs: 200_000 },
    );
    const wrong: number[] = [];
    for (let from = 0; from < followers; from += 50) {
      const pages = await Promise.all(
        Array.from({ length: Math.min(50, followers - from) }, (_, offset) => homeIds(from + offset)),
      );
      pages.forEach((ids, offset) => {
        if (ids.length !== 1 || ids[0] !== posted.body.id) wrong.push(from + offset);
      });
    }
    expect(wrong).toEqual([]);
  }, 300_000);
});
