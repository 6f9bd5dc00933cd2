/** `headgate work` on a PostgreSQL: its metrics are to be read where it says, and nowhere unless asked. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, beforeAll, describe, expect, it, onTestFinished } from 'vitest';
import { findRedisServer, startRedisServer } from '../../src/testing/redis-server.js';
import { testServers } from '../database/test-databases.js';
import { call, runHeadgate, type HeadgateProcess } from './headgate-process.js';
import { until } from '../../src/testing/until.js';

let databaseUrl: string;
let processes: HeadgateProcess[] = [];

beforeAll(async () => {
  const database = testServers().at(-1);
  if (!database) throw new Error('no PostgreSQL was found for the tests');
  databaseUrl = await database.url();
});
afterEach(async () => {
  await Promise.all(processes.map((started) => started.kill('SIGKILL')));
  processes = [];
});

function work(args: readonly string[], env: Record<string, string> = {}): HeadgateProcess {
  const started = runHeadgate(['work', '--database-url', databaseUrl, ...args], env);
  processes.push(started);
  return started;
}
const addressOf = (working: HeadgateProcess) =>
  until(async () => /metrics on (http:\S+)\/metrics/.exec(working.output())?.[1], {
    what: 'the address of the metrics',
  });

describe('headgate work', { timeout: 120_000 }, () => {
  it('serves /metrics of its workers and /health where --metrics-port says, and stops with a signal', async () => {
    const redis = findRedisServer() && (await startRedisServer());
    onTestFinished(async () => {
      if (redis) await redis.stop();
    });
    const working = work(['--metrics-port', '0', ...(redis ? ['--feed-timelines', redis.url] : [])]);
    const address = await addressOf(working);
    expect(await call(address, 'GET', '/health')).toMatchObject({ status: 200, body: { status: 'ok' } });
    await until(
      async () => {
        const text = await (await fetch(`${address}/metrics`)).text();
        return /^headgate_worker_slots_used\{/m.test(text) && text.includes('process_cpu_seconds_total');
      },
      { what: 'the metrics of the workers' },
    );
    const health = await call(address, 'GET', '/health');
    expect(health.body.durability).toMatch(/survives/);
    expect(health.body.timelines).toEqual(redis ? { store: 'redis', away: false } : undefined);
    expect((await fetch(`${address}/v1/queues`)).status).toBe(404);
    expect((await fetch(`${address}/metrics`, { method: 'POST' })).status).toBe(404);
    // A scraper that keeps its connection holds nothing up.
    expect(await working.kill('SIGTERM')).toBe(0);
  });

  it('takes port and address from the environment, and listens nowhere without a port', async () => {
    const given = work([], { HEADGATE_METRICS_PORT: '0', HEADGATE_METRICS_HOST: 'localhost' });
    expect(await addressOf(given)).toMatch(/^http:\/\/(127\.0\.0\.1|\[::1\]):\d+$/);
    const silent = work([]);
    await until(async () => silent.output().includes('working'), { what: 'the start' });
    expect(silent.output()).not.toContain('metrics on');
  });

  it('refuses a taken port, a port that is none, and an address without a port, by name', async () => {
    const taken = createServer().listen(0, '127.0.0.1');
    await until(async () => taken.listening, { what: 'the port' });
    const { port } = taken.address() as AddressInfo;
    const cases = [
      [['--metrics-port', String(port)], '--metrics-port'],
      [['--metrics-port', '70000'], '--metrics-port'],
      [['--metrics-host', '0.0.0.0'], '--metrics-host'],
    ] as const;
    for (const [args, name] of cases) {
      const refused = work(args);
      expect(await refused.exit()).toBe(2);
      expect(refused.output()).toContain(name);
    }
    taken.close();
  });
});
