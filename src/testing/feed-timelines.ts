/** The timelines of a feed under test, looked at and damaged behind the feed's back, wherever they are kept. */
import { setTimeout as delay } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import type { Database } from '../database/index.js';
import { createRedisTimelines } from '../feed/redis/index.js';
import type { TimelineLists } from '../feed/store.js';
import type { RedisCluster } from './redis-cluster.js';
import type { RedisServer } from './redis-server.js';

export interface TestTimelines {
  /** For the store; undefined: the table. */
  readonly lists: TimelineLists | undefined;
  /** Account numbers and post ids of all entries. */
  entries(): Promise<{ reader: string; post: string }[]>;
  /** Rows of the table or elements of all lists, markers included: empty timelines count one. */
  size(): Promise<number>;
  /** Readers with a timeline. */
  readers(): Promise<number>;
  loseAll(): Promise<void>;
  loseEntries(posts: readonly string[]): Promise<void>;
  /** Notes what is there now; the answer brings it back, as a server does that has lost its last moments. Not in a table. */
  remember(): Promise<() => Promise<void>>;
  /** An empty timeline for each account whose id is like this, without a build. */
  makeLive(like: string, nowMs: number): Promise<void>;
  close(): void;
}

export function tableTimelines(database: Database, schema: string): TestTimelines {
  const count = async (text: string) =>
    Number((await database.query<{ count: string }>(text)).rows[0]?.count);
  return {
    lists: undefined,
    entries: async () =>
      (
        await database.query<{ reader: string; post: string }>(
          `select reader, post from "${schema}".timeline where post > 0 order by reader, post desc`,
        )
      ).rows,
    size: () => count(`select count(*) as count from "${schema}".timeline`),
    readers: () => count(`select count(distinct reader) as count from "${schema}".timeline`),
    async loseAll() {
      await database.query(`truncate "${schema}".timeline`);
    },
    async loseEntries(posts) {
      await database.query(`delete from "${schema}".timeline where post = any($1::bigint[])`, [posts]);
    },
    remember: () => Promise.reject(new Error('a table is never younger than its database')),
    async makeLive(like, nowMs) {
      await database.query(
        `with made as (
           update "${schema}".readers r set state = 'live', seen_at = $2, token = nextval('"${schema}".timeline_tokens')
           from "${schema}".accounts a where a.number = r.account and a.id like $1 returning r.account, r.token)
         insert into "${schema}".timeline (reader, post) select account, -token from made`,
        [like, nowMs],
      );
    },
    close() {},
  };
}

let prefixes = 0;

/** Timelines with a key prefix of their own on a server or a Cluster. */
export function redisTimelines(
  database: Database,
  schema: string,
  redis: Pick<RedisServer, 'url' | 'connect'> | RedisCluster,
): TestTimelines {
  prefixes += 1;
  const prefix = `test:${process.pid}:${prefixes}`;
  const isCluster = 'servers' in redis;
  const lists = createRedisTimelines(
    isCluster ? { cluster: redis.nodes, prefix } : { url: redis.url, prefix },
  );
  const clients: Redis[] = isCluster
    ? redis.servers.slice(0, redis.servers.length / 2).map((server) => server.connect())
    : [redis.connect()];

  /** Every list with what is in it. */
  async function all(): Promise<{ client: Redis; key: string; elements: string[] }[]> {
    const found: { client: Redis; key: string; elements: string[] }[] = [];
    for (const client of clients) {
      for (const key of await client.keys(`${prefix}:{*}:*`)) {
        if ((await client.type(key)) !== 'list') continue;
        found.push({ client, key, elements: await client.lrange(key, 0, -1) });
      }
    }
    return found;
  }
  const readerOf = (key: string) => key.slice(key.lastIndexOf(':') + 1);

  return {
    lists,
    async entries() {
      return (await all()).flatMap(({ key, elements }) =>
        elements
          .filter((element) => !element.startsWith('#'))
          .map((post) => ({ reader: readerOf(key), post })),
      );
    },
    size: async () => (await all()).reduce((sum, { elements }) => sum + elements.length, 0),
    readers: async () => (await all()).length,
    async loseAll() {
      for (const { client, key } of await all()) await client.del(key);
    },
    async loseEntries(posts) {
      for (const { client, key } of await all()) {
        for (const post of posts) await client.lrem(key, 0, post);
      }
    },
    async remember() {
      const [client] = clients as [Redis];
      const kept = new Map<string, Buffer>();
      for (const key of await client.keys(`${prefix}:*`)) {
        const dump = await client.dumpBuffer(key);
        if (dump) kept.set(key, dump);
      }
      return async () => {
        for (const key of await client.keys(`${prefix}:*`)) await client.del(key);
        for (const [key, dump] of kept) await client.restore(key, 86_400_000, dump);
        // It is another one now, and nobody is connected to it any more.
        await client.call('DEBUG', 'CHANGE-REPL-ID');
        await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        while ((await lists.servers().catch(() => [])).length === 0) await delay(5);
      };
    },
    async makeLive(like, nowMs) {
      const { rows } = await database.query<{ account: string; token: string }>(
        `update "${schema}".readers r set state = 'live', seen_at = $2, token = nextval('"${schema}".timeline_tokens'),
           floor = 9223372036854775807
         from "${schema}".accounts a where a.number = r.account and a.id like $1 returning r.account, r.token`,
        [like, nowMs],
      );
      for (let from = 0; from < rows.length; from += 500) {
        await Promise.all(
          rows
            .slice(from, from + 500)
            .map(({ account, token }) => lists.begin({ reader: account, token, keptMs: 3_600_000 })),
        );
      }
    },
    close() {
      for (const client of clients) client.disconnect();
    },
  };
}
