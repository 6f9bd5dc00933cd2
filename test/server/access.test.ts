/** Who may call: API keys with scopes, and the refusal to listen on an open address without them. */
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createServer, parseApiKeys } from '../../src/server/index.js';
import { startTestServer, type TestServer } from './test-server.js';

const secrets = {
  admin: 'a-secret-of-an-administrator',
  write: 'a-secret-that-may-write',
  read: 'a-secret-that-may-read',
};
const keys = parseApiKeys(
  Object.entries(secrets)
    .map(([scope, secret]) => `${scope}:${secret}`)
    .join(','),
);

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ apiKeys: keys });
});
afterAll(() => server?.stop());

const as = (secret: string) => ({ authorization: `Bearer ${secret}` });

describe('with API keys', () => {
  it('a call without a key, or with an unknown one, is refused', async () => {
    expect((await server.call('GET', '/v1/queues')).body.code).toBe('unauthorized');
    expect((await server.call('GET', '/v1/queues', undefined, as('a-secret-nobody-knows'))).body.code).toBe(
      'unauthorized',
    );
    expect(
      (await server.call('GET', '/v1/queues', undefined, { authorization: 'Basic abc' })).body.code,
    ).toBe('unauthorized');
  });

  it('each scope may do what it says and no more', async () => {
    const status = async (method: string, path: string, secret: string) =>
      (await server.call(method, path, undefined, as(secret))).status;
    expect(await status('GET', '/v1/queues', secrets.read)).toBe(200);
    expect(await status('PUT', '/v1/accounts/keyed', secrets.read)).toBe(403);
    expect(await status('PUT', '/v1/accounts/keyed', secrets.write)).toBe(201);
    expect(await status('GET', '/v1/posts', secrets.write)).toBe(403);
    expect(await status('GET', '/v1/posts', secrets.admin)).toBe(200);
  });

  it('probes and metrics need none', async () => {
    expect((await server.call('GET', '/health')).status).toBe(200);
    expect((await server.call('GET', '/ready')).status).toBe(200);
  });
});

describe('the configuration of access', () => {
  it.each([
    ['root:a-secret-long-enough', 'HEADGATE_API_KEYS[0]'],
    ['read:short', 'HEADGATE_API_KEYS[0]'],
    ['read:a-secret-long-enough,nonsense', 'HEADGATE_API_KEYS[1]'],
  ])('refuses %j by name and without its secret', (text, field) => {
    expect(() => parseApiKeys(text)).toThrow(expect.objectContaining({ code: 'invalid-input', field }));
    expect(() => parseApiKeys(text)).not.toThrow(/a-secret-long-enough|short/);
  });

  it('refuses to listen beyond loopback without keys', () => {
    expect(() => createServer({ parts: undefined as never, host: '0.0.0.0' })).toThrow(
      expect.objectContaining({ code: 'invalid-input', field: 'host' }),
    );
  });
});
