/** What a test of Redis opens for itself: servers, connections and whatever else, ended after it, the last one first. */
import type { Redis } from 'ioredis';
import { afterEach } from 'vitest';
import {
  type RedisCluster,
  type RedisClusterOptions,
  startRedisCluster,
} from '../../../src/testing/redis-cluster.js';
import {
  type RedisServer,
  type RedisServerOptions,
  startRedisServer,
} from '../../../src/testing/redis-server.js';

export interface Opened {
  /** Called after the test. */
  atEnd(end: () => unknown): void;
  startServer(options?: RedisServerOptions): Promise<RedisServer>;
  startCluster(options?: RedisClusterOptions): Promise<RedisCluster>;
  connect(server: RedisServer): Redis;
}

/** For a file, or within a `describe`. */
export function useOpened(): Opened {
  const ends: (() => unknown)[] = [];
  const atEnd: Opened['atEnd'] = (end) => void ends.push(end);
  afterEach(async () => {
    for (const end of ends.splice(0).toReversed()) await end();
  });
  return {
    atEnd,
    async startServer(options) {
      const server = await startRedisServer(options);
      atEnd(() => server.stop());
      return server;
    },
    async startCluster(options) {
      const cluster = await startRedisCluster(options);
      atEnd(() => cluster.stop());
      return cluster;
    },
    connect(server) {
      const client = server.connect();
      atEnd(() => client.disconnect());
      return client;
    },
  };
}
