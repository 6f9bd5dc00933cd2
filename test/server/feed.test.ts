/** Operating the feed over HTTP. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer, type TestServer } from './test-server.js';

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer();
  for (const id of ['ann', 'bob']) await server.call('PUT', `/v1/accounts/${id}`);
  await server.call('PUT', '/v1/accounts/bob/following/ann');
});
afterAll(() => server?.stop());

it('tells how the graph is shaped', async () => {
  // the counts of followers are folded by housekeeping
  await expect
    .poll(async () => (await server.call('GET', '/v1/feed/stats')).body, { timeout: 50_000 })
    .toMatchObject({ accounts: 2, follows: 1, followers: { max: 1 } });
});

it('lists accounts by their followers, page by page, and refuses another order', async () => {
  for (const id of ['eve', 'dan']) await server.call('PUT', `/v1/accounts/${id}`);
  for (const id of ['bob', 'eve', 'dan']) await server.call('PUT', `/v1/accounts/${id}/following/ann`);
  for (const other of ['eve', 'dan']) await server.call('PUT', `/v1/accounts/ann/following/${other}`);
  const page = async (after = '') =>
    (await server.call('GET', `/v1/accounts?order=followers&limit=2${after && `&after=${after}`}`)).body;
  await expect.poll(page, { timeout: 50_000 }).toMatchObject({
    accounts: [
      { id: 'ann', followers: 3, mode: 'push' },
      { id: 'dan', followers: 1 },
    ],
  });
  const first = await page();
  expect(await page(first.next)).toEqual({ accounts: [{ id: 'eve', followers: 1, mode: 'push' }] });
  expect((await server.call('GET', '/v1/accounts?order=age')).body.field).toBe('order');
  expect((await server.call('GET', '/v1/accounts?order=followers&after=x')).body.field).toBe('after');
});

it('verifies a home, rebuilds it and verifies it again', async () => {
  const posted = await server.call('POST', '/v1/posts', { author: 'ann', text: 'hello' });
  await expect
    .poll(async () => (await server.call('GET', `/v1/posts/${posted.body.id}/fan-out`)).body.done, {
      timeout: 50_000,
    })
    .toBe(true);
  await server.call('GET', '/v1/accounts/bob/home');
  // the read has queued a rebuild of its own, and of two at once the later one counts
  await expect
    .poll(async () => (await server.call('POST', '/v1/accounts/bob/home/rebuild', {})).body, {
      timeout: 50_000,
    })
    .toMatchObject({ kind: 'rebuilt', entries: 1 });
  await expect
    .poll(async () => (await server.call('GET', '/v1/accounts/bob/home/verify')).body, { timeout: 50_000 })
    .toMatchObject({ timeline: 'live', missing: [], superfluous: [] });
  expect((await server.call('GET', '/v1/accounts/nobody/home/verify')).body.code).toBe('account-unknown');
});

it('vacuums', async () => {
  expect((await server.call('POST', '/v1/feed/vacuum', {})).body).toMatchObject({ timelinesDropped: 0 });
});
