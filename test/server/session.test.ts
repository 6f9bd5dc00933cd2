/** Pages that sign in with an API key, and keys that read only what is their owner's. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parseApiKeys } from '../../src/server/index.js';
import { sessionKey, sessionOf, sessionSeconds } from '../../src/server/session.js';
import { startTestServer, type TestServer } from './test-server.js';

const secrets = {
  admin: 'a-secret-of-an-administrator',
  read: 'a-secret-that-may-read',
  own: 'a-secret-of-ann-alone',
};
const keys = parseApiKeys(`admin:${secrets.admin},read:${secrets.read},read:own=ann%2F1:${secrets.own}`);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: keys });
});
afterAll(() => server?.stop());

const signIn = async (key: string) => {
  const answer = await server.call('POST', '/v1/session', { key }, { origin: server.address });
  return { answer, cookie: answer.headers.get('set-cookie') ?? '' };
};
const withCookie = (cookie: string, more: Record<string, string> = {}) => ({
  cookie: cookie.split(';')[0] ?? '',
  ...more,
});

describe('a session', () => {
  it('begins with a key, reads and changes what the key may, and ends', async () => {
    expect((await server.call('GET', '/v1/session')).body).toEqual({ required: true });
    const { answer, cookie } = await signIn(secrets.admin);
    expect(answer.body).toEqual({ required: true, scope: 'admin' });
    for (const part of ['HttpOnly', 'SameSite=Strict', 'Path=/', 'Max-Age=']) expect(cookie).toContain(part);
    expect(cookie).not.toContain(secrets.admin);
    expect((await server.call('GET', '/v1/queues', undefined, withCookie(cookie))).status).toBe(200);
    const page = withCookie(cookie, { origin: server.address });
    expect((await server.call('PUT', '/v1/accounts/of-a-page', undefined, page)).status).toBe(201);
    const out = await server.call('DELETE', '/v1/session', undefined, page);
    expect(out.headers.get('set-cookie')).toContain('Max-Age=0');
  });

  it('changes nothing for a request without the Origin of our own page', async () => {
    const { cookie } = await signIn(secrets.admin);
    const put = async (headers: Record<string, string>) =>
      (await server.call('PUT', '/v1/accounts/forged', undefined, withCookie(cookie, headers))).status;
    expect(await put({})).toBe(403);
    expect(await put({ origin: 'https://elsewhere.example' })).toBe(403);
    expect(await put({ origin: 'null' })).toBe(403);
    expect((await server.call('GET', '/v1/accounts/forged', undefined, withCookie(cookie))).status).toBe(404);
  });

  it('has the scope of its key and no more', async () => {
    const { cookie } = await signIn(secrets.read);
    const page = withCookie(cookie, { origin: server.address });
    expect((await server.call('GET', '/v1/queues', undefined, page)).status).toBe(200);
    expect((await server.call('PUT', '/v1/accounts/x', undefined, page)).status).toBe(403);
  });

  it('is not given for another key, nor to a page of another origin', async () => {
    const { answer, cookie } = await signIn('a-secret-nobody-knows');
    expect([answer.status, cookie]).toEqual([401, '']);
    expect(JSON.stringify(answer.body)).not.toContain('nobody-knows');
    const foreign = await server.call(
      'POST',
      '/v1/session',
      { key: secrets.admin },
      { origin: 'https://evil.example' },
    );
    expect([foreign.status, foreign.headers.get('set-cookie')]).toEqual([403, null]);
  });

  it('that was changed, has ended, or whose key is gone opens nothing', () => {
    const [admin, read] = keys;
    if (!admin || !read) throw new Error('no keys');
    const header = `other=1; headgate_session=${sessionOf(admin, 0)}`;
    expect(sessionKey(header, keys, 1_000)).toBe(admin);
    expect(sessionKey(header, keys, sessionSeconds * 1_000)).toBeUndefined();
    expect(sessionKey(header, [read], 1_000)).toBeUndefined();
    const later = header.replace(/=(\d+)\./, (_, seconds) => `=${Number(seconds) + 1}.`);
    expect(sessionKey(later, keys, 1_000)).toBeUndefined();
    expect(sessionKey(undefined, keys)).toBeUndefined();
  });
});

describe('a key of read:own', () => {
  const as = { authorization: `Bearer ${secrets.own}` };
  const get = async (path: string) => (await server.call('GET', path, undefined, as)).status;

  it('reads what is under its owner and nothing else', async () => {
    expect(await get('/v1/users/ann%2F1/inbox')).toBe(200);
    expect(await get('/v1/users/ann%2F1/preferences')).toBe(200);
    expect(await get('/v1/accounts/ann%2F1/home')).toBe(404);
    for (const path of [
      '/v1/users/bob/inbox',
      '/v1/accounts/bob/home',
      '/v1/queues',
      '/v1/deliveries',
      '/v1/ledger',
    ])
      expect([path, await get(path)]).toEqual([path, 403]);
    expect(await get('/v1/accounts/ann%2F1/home/verify')).toBe(403);
  });

  it('changes nothing, not even there', async () => {
    const answer = await server.call('PUT', '/v1/users/ann%2F1', { locale: 'de' }, as);
    expect([answer.status, answer.body.code]).toEqual([403, 'forbidden']);
  });
});
