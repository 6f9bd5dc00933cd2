/** `headgate serve --feed-timelines`: the timelines of a running product in Redis, and what operators do with them there. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { findRedisServer } from '../../src/testing/redis-server.js';
import { call, type HeadgateProcess, runHeadgate } from '../cli/headgate-process.js';
import { until } from '../../src/testing/until.js';
import { useOpened } from './redis/opened.js';

// A first start of the embedded database on a busy machine.
vi.setConfig({ testTimeout: 120_000 });

describe.skipIf(!findRedisServer())(
  'headgate with timelines in Redis (needs redis-server on the PATH)',
  () => {
    let folder: string;
    beforeEach(async () => {
      folder = await mkdtemp(join(tmpdir(), 'headgate-timelines-'));
    });
    afterEach(() => rm(folder, { recursive: true, force: true }));
    // Behind the line above: what was opened last ends first, the folder of all of it last.
    const { atEnd, startServer, connect } = useOpened();

    function serve(...flags: string[]): HeadgateProcess {
      const started = runHeadgate(['serve', '--port', '0', '--data', join(folder, 'data'), ...flags]);
      atEnd(() => started.kill('SIGKILL'));
      return started;
    }

    test('a home is served from a list in Redis; verify, rebuild and vacuum work on it', async () => {
      const redis = await startServer();
      const client = connect(redis);
      const address = await serve('--feed-timelines', redis.url).ready();
      for (const id of ['ann', 'bob']) await call(address, 'PUT', `/v1/accounts/${id}`);
      await call(address, 'PUT', '/v1/accounts/bob/following/ann');
      const home = async () => (await call(address, 'GET', '/v1/accounts/bob/home')).body;
      await until(async () => (await home()).sources.timeline === 'live', { what: 'a timeline' });
      const { body: post } = await call(address, 'POST', '/v1/posts', { author: 'ann', text: 'hello' });
      const pushed = await until(
        async () => {
          const { items } = await home();
          return items[0]?.why.source === 'pushed' && items[0];
        },
        { what: 'the fan-out' },
      );
      expect(pushed.id).toBe(post.id);
      const [key = ''] = await client.keys('headgate-feed:{0}:[0-9]*');
      expect(await client.lrange(key, 0, -1)).toEqual([post.id, expect.stringMatching(/^#\d+\.\d+\.0$/)]);

      await client.lrem(key, 0, post.id);
      const headgate = async (...args: string[]) => {
        const command = runHeadgate(['feed', ...args, '--url', address, '--json']);
        expect(await command.exit()).toBe(0);
        return JSON.parse(command.output());
      };
      expect((await headgate('verify', 'bob')).missing).toEqual([post.id]);
      expect(await headgate('rebuild', 'bob')).toMatchObject({ kind: 'rebuilt', entries: 1 });
      expect((await headgate('verify', 'bob')).missing).toEqual([]);
      await call(address, 'DELETE', '/v1/accounts/bob');
      await until(
        async () => {
          await headgate('vacuum');
          return (await client.exists(key)) === 0;
        },
        { what: 'the account’s rows gone' },
      );
    });

    test('/health says where timelines are kept and that this is away, /metrics what they take', async () => {
      const redis = await startServer();
      const address = await serve('--feed-timelines', redis.url).ready();
      const timelines = async () => (await call(address, 'GET', '/health')).body.timelines;
      expect(await timelines()).toEqual({ store: 'redis', away: false });
      const metrics = async () => (await fetch(`${address}/metrics`)).text();
      await until(async () => /^headgate_feed_timeline_bytes\{store="redis"\} \d+$/m.test(await metrics()), {
        what: 'the metric',
      });
      await redis.kill();
      await until(async () => (await timelines()).away, { what: 'it is said to be away' });
      await redis.restart();
      await until(async () => !(await timelines()).away, { what: 'it is back' });
    });

    test.each([
      ['redis', 'where no --redis-url is given'],
      ['http://localhost', '--feed-timelines: expected a URL that begins with redis://'],
    ])('--feed-timelines %s is refused by name', async (where, message) => {
      const refused = serve('--feed-timelines', where);
      expect(await refused.exit()).toBe(2);
      expect(refused.output()).toContain(message);
    });
  },
);
