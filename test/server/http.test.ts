/** The HTTP API through a real socket, on a real PostgreSQL with real workers. */
import { request as httpRequest } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { silentLog } from '../../src/log.js';
import { createPrometheus, createServer } from '../../src/server/index.js';
import { startTestServer, type TestServer } from './test-server.js';

let server: TestServer;

beforeAll(async () => {
  server = await startTestServer();
});
afterAll(() => server?.stop());

const path = encodeURIComponent;
const json = { 'content-type': 'application/json' };

async function account(id: string): Promise<string> {
  await server.call('PUT', `/v1/accounts/${path(id)}`);
  return id;
}

describe('a post', () => {
  it('is in the home of its author at once and in that of a follower soon', async () => {
    const [author, follower] = [await account('ann'), await account('bob')];
    await server.call('PUT', `/v1/accounts/${follower}/following/${author}`);
    const posted = await server.call('POST', '/v1/posts', { author, text: 'hello' });
    expect(posted.status).toBe(201);
    const own = await server.call('GET', `/v1/accounts/${author}/home`);
    expect(own.body.items.map((item: { id: string }) => item.id)).toContain(posted.body.id);
    await expect
      .poll(
        async () =>
          (await server.call('GET', `/v1/accounts/${follower}/home`)).body.items.map(
            (item: { text: string }) => item.text,
          ),
        {
          timeout: 50_000,
        },
      )
      .toEqual(['hello']);
  });

  it('with the same author and key is the same post, by the body or by Idempotency-Key', async () => {
    const author = await account('keyed');
    const first = await server.call('POST', '/v1/posts', { author, text: 'once', key: 'k1' });
    const again = await server.call('POST', '/v1/posts', { author, text: 'once', key: 'k1' });
    const byHeader = await server.call(
      'POST',
      '/v1/posts',
      { author, text: 'once' },
      { 'idempotency-key': 'k1' },
    );
    expect([first.status, again.status, byHeader.status]).toEqual([201, 200, 200]);
    expect([again.body.id, byHeader.body.id]).toEqual([first.body.id, first.body.id]);
  });

  it('that was deleted is in no home from the next read', async () => {
    const author = await account('regretful');
    const { body } = await server.call('POST', '/v1/posts', { author, text: 'oops' });
    await server.call('DELETE', `/v1/posts/${body.id}`);
    expect((await server.call('GET', `/v1/accounts/${author}/home`)).body.items).toEqual([]);
    expect((await server.call('GET', `/v1/posts/${body.id}`)).body.code).toBe('post-unknown');
  });

  it('keeps all digits of its id and sorts by it', async () => {
    const author = await account('prolific');
    const ids: string[] = [];
    for (let index = 0; index < 5; index += 1)
      ids.push((await server.call('POST', '/v1/posts', { author, text: `${index}` })).body.id);
    expect(ids.every((id) => /^\d{19}$/.test(id))).toBe(true);
    const home = await server.call('GET', `/v1/accounts/${author}/home?limit=5`);
    expect(home.body.items.map((item: { id: string }) => item.id)).toEqual(ids.toReversed());
  });
});

describe('home', () => {
  it('is walked towards older by next and back by previous, each post once', async () => {
    const author = await account('walker');
    for (let index = 0; index < 7; index += 1)
      await server.call('POST', '/v1/posts', { author, text: `${index}` });
    const texts: string[] = [];
    let after: string | undefined;
    do {
      const page = await server.call(
        'GET',
        `/v1/accounts/${author}/home?limit=3${after ? `&after=${path(after)}` : ''}`,
      );
      texts.push(...page.body.items.map((item: { text: string }) => item.text));
      after = page.body.next;
    } while (after);
    expect(texts).toEqual(['6', '5', '4', '3', '2', '1', '0']);
  });
});

describe('ids in paths', () => {
  const ids = [
    'with space',
    'slash/es',
    'percent%25',
    '100%',
    '😀 emoji',
    'ünï',
    '?query#hash',
    'a..b',
    'a'.repeat(128),
    '😀'.repeat(64),
  ];
  it.each(ids)('may be %j', async (id) => {
    const made = await server.call('PUT', `/v1/accounts/${path(id)}`);
    expect([made.status, made.body.id]).toEqual([201, id]);
    const posted = await server.call('POST', '/v1/posts', { author: id, text: 'x' });
    expect(posted.status).toBe(201);
    const home = await server.call('GET', `/v1/accounts/${path(id)}/home`);
    expect(home.body.items.map((item: { author: string }) => item.author)).toEqual([id]);
  });
});

describe('bad input', () => {
  const cases: readonly [
    string,
    { method: string; path: string; body?: string; headers?: Record<string, string> },
    { status: number; code: string; field: string },
  ][] = [
    [
      'an unknown account',
      { method: 'GET', path: '/v1/accounts/nobody/home' },
      { status: 404, code: 'account-unknown', field: 'reader' },
    ],
    [
      'an unknown author',
      { method: 'POST', path: '/v1/posts', body: '{"author":"nobody","text":"x"}' },
      { status: 404, code: 'account-unknown', field: 'author' },
    ],
    [
      'a negative limit',
      { method: 'GET', path: '/v1/accounts/ann/home?limit=-1' },
      { status: 422, code: 'invalid-input', field: 'limit' },
    ],
    [
      'a limit that is no number',
      { method: 'GET', path: '/v1/accounts/ann/home?limit=many' },
      { status: 422, code: 'invalid-input', field: 'limit' },
    ],
    [
      'a limit over the maximum',
      { method: 'GET', path: '/v1/accounts/ann/home?limit=101' },
      { status: 422, code: 'invalid-input', field: 'limit' },
    ],
    [
      'an unknown parameter',
      { method: 'GET', path: '/v1/accounts/ann/home?limits=3' },
      { status: 422, code: 'invalid-input', field: 'limits' },
    ],
    [
      'broken JSON',
      { method: 'POST', path: '/v1/posts', body: '{"author":' },
      { status: 400, code: 'invalid-json', field: 'body' },
    ],
    [
      'an empty body',
      { method: 'POST', path: '/v1/posts', body: '' },
      { status: 400, code: 'invalid-json', field: 'body' },
    ],
    [
      'a missing author',
      { method: 'POST', path: '/v1/posts', body: '{"text":"x"}' },
      { status: 422, code: 'invalid-input', field: 'author' },
    ],
    [
      'an author that is no string',
      { method: 'POST', path: '/v1/posts', body: '{"author":5,"text":"x"}' },
      { status: 422, code: 'invalid-input', field: 'author' },
    ],
    [
      'an unknown field',
      { method: 'POST', path: '/v1/posts', body: '{"author":"ann","txt":"x"}' },
      { status: 422, code: 'invalid-input', field: 'txt' },
    ],
    [
      'a garbled cursor',
      { method: 'GET', path: '/v1/accounts/ann/home?after=garbled' },
      { status: 422, code: 'cursor-invalid', field: 'after' },
    ],
    [
      'a body of 10 MB',
      {
        method: 'POST',
        path: '/v1/posts',
        body: JSON.stringify({ author: 'ann', text: 'x'.repeat(10_000_000) }),
      },
      { status: 413, code: 'body-too-large', field: 'body' },
    ],
    [
      'an id with NUL',
      { method: 'PUT', path: '/v1/accounts/a%00b' },
      { status: 422, code: 'invalid-input', field: 'id' },
    ],
    [
      'an author with NUL',
      { method: 'POST', path: '/v1/posts', body: '{"author":"a\\u0000b","text":"x"}' },
      { status: 422, code: 'invalid-input', field: 'author' },
    ],
    [
      'a lone surrogate in a body',
      { method: 'POST', path: '/v1/posts', body: '{"author":"a\\ud800","text":"x"}' },
      { status: 422, code: 'invalid-input', field: 'author' },
    ],
    [
      'a lone surrogate in a text',
      { method: 'POST', path: '/v1/posts', body: '{"author":"ann","text":"a\\ud800"}' },
      { status: 422, code: 'invalid-input', field: 'text' },
    ],
    [
      'a lone surrogate in a path',
      { method: 'PUT', path: '/v1/accounts/a%ED%A0%80' },
      { status: 400, code: 'invalid-url', field: 'path' },
    ],
    [
      'a broken escape in a path',
      { method: 'GET', path: '/v1/accounts/%zz/home' },
      { status: 400, code: 'invalid-url', field: 'path' },
    ],
    [
      'an id of 129 characters',
      { method: 'PUT', path: `/v1/accounts/${'a'.repeat(129)}` },
      { status: 422, code: 'invalid-input', field: 'id' },
    ],
    [
      'an empty batch',
      { method: 'POST', path: '/v1/queues/q/messages', body: '{"messages":[]}' },
      { status: 422, code: 'invalid-input', field: 'messages' },
    ],
    [
      'a priority that is no integer',
      { method: 'POST', path: '/v1/queues/q/messages', body: '{"messages":[{"payload":1,"priority":1.5}]}' },
      { status: 422, code: 'invalid-input', field: 'priority' },
    ],
    [
      'a negative count',
      { method: 'POST', path: '/v1/queues/q/dequeue', body: '{"count":-1}' },
      { status: 422, code: 'invalid-input', field: 'count' },
    ],
    [
      'a body that is no JSON type',
      { method: 'POST', path: '/v1/posts', body: 'a=b', headers: { 'content-type': 'text/plain' } },
      { status: 415, code: 'unsupported-media-type', field: 'content-type' },
    ],
    [
      'a compressed body',
      {
        method: 'POST',
        path: '/v1/posts',
        body: 'packed',
        headers: { ...json, 'content-encoding': 'gzip' },
      },
      { status: 415, code: 'unsupported-media-type', field: 'content-encoding' },
    ],
  ];

  it.each(cases)('%s is refused by name', async (_name, call, expected) => {
    await account('ann');
    const answer = await server.raw(
      call.method,
      call.path,
      call.body,
      call.headers ?? (call.body === undefined ? {} : json),
    );
    expect(answer.headers.get('content-type')).toContain('application/problem+json');
    expect({ status: answer.status, code: answer.body.code, field: answer.body.field }).toEqual(expected);
  });

  it('leaves nothing half done', async () => {
    const author = await account('whole');
    await server.raw(
      'POST',
      '/v1/posts',
      JSON.stringify({ author, text: 'a\ud800' }).replace('\ud800', '\\ud800'),
      json,
    );
    expect((await server.call('GET', `/v1/accounts/${author}/home`)).body.items).toEqual([]);
  });
});

describe('a server that is still starting', () => {
  it('says so, and its log does not call that a failure', async () => {
    const warnings: string[] = [];
    const never = (): never => {
      throw new Error('the parts do not stand yet');
    };
    const starting = createServer({
      port: 0,
      log: { ...silentLog, warn: (...given: unknown[]) => void warnings.push(JSON.stringify(given)) },
      parts: {
        queue: never,
        feed: never,
        notify: never,
        notifyPublicUrl: () => undefined,
        prometheus: createPrometheus({ processMetrics: false }),
        readiness: () => ({
          serving: false,
          ready: false,
          stage: 'opening the database',
          progress: undefined,
        }),
        durability: () => 'not known yet',
      },
    });
    await starting.start();
    try {
      const answer = await fetch(`${starting.address()}/v1/queues`);
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([503, 'not-ready']);
      expect(warnings).toEqual([]);
    } finally {
      await starting.stop();
    }
  });
});

describe('a refusal', () => {
  it.each([
    [
      'GET',
      '/v1/queues/q/messages?state=lost',
      undefined,
      /^state: expected one of "invisible", "pending", .*, got "lost"$/,
    ],
    ['GET', '/v1/queues/q/messages?limit=0', undefined, /^limit: expected a number of at least 1, got 0$/],
    ['GET', '/v1/queues/q/messages?limit=x', undefined, /^limit: expected a whole number, got "x"$/],
    ['POST', '/v1/queues/q/messages', '{"messages":[]}', /^messages: expected at least 1 item, got \[\]$/],
    ['POST', '/v1/posts', '[]', /^body: expected an object, got \[\]$/],
    [
      'POST',
      '/v1/posts',
      '{"author":"a","text":"x","visibility":"all"}',
      /^visibility: expected one of "public", "followers", got "all"$/,
    ],
    [
      'POST',
      '/v1/queues/q/messages',
      '{"messages":[{"payload":1,"priorty":7}]}',
      /^messages\.0\.priorty: expected no field of this name \(there are .*\bpriority\b.*\), got 7$/,
    ],
  ] as const)('%s %s with %s says what would be right', async (method, below, body, detail) => {
    const answer = await server.raw(
      method,
      below,
      body,
      body === undefined ? {} : { 'content-type': 'application/json' },
    );
    expect(answer.body.detail).toMatch(detail);
    expect(answer.status).toBe(422);
  });

  it('has a type that leads to its code on a page', async () => {
    const { body } = await server.call('GET', '/v1/accounts/nobody/home');
    const [page, code] = (body.type as string).split('#');
    const answer = await fetch(`${server.address}${page}`);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await answer.text()).toContain(`<dt id="${code}">`);
  });
});

describe('a queue over HTTP', () => {
  it('hands out the most urgent message and takes its completion once', async () => {
    await server.call('POST', '/v1/queues/jobs/messages', {
      messages: [
        { id: 'later', payload: { n: 2 }, priority: 2 },
        { id: 'sooner', payload: { n: 1 }, priority: 1 },
      ],
    });
    const { body } = await server.call('POST', '/v1/queues/jobs/dequeue', {});
    expect(body.messages.map((message: { id: string }) => message.id)).toEqual(['sooner']);
    const [message] = body.messages;
    const complete = (leaseToken: string) =>
      server.call('POST', '/v1/queues/jobs/messages/sooner/complete', { leaseToken, result: 'done' });
    expect((await complete('not the token')).body.code).toBe('lease-lost');
    expect((await complete(message.leaseToken)).body.state).toBe('completed');
    expect((await server.call('GET', '/v1/queues/jobs/messages/sooner')).body).toMatchObject({
      state: 'completed',
      result: 'done',
      attempts: 1,
    });
    expect((await server.call('GET', '/v1/queues/jobs/depth')).body).toMatchObject({
      pending: 1,
      running: 0,
    });
  });

  it('answers each message of a batch by itself', async () => {
    const { body } = await server.call('POST', '/v1/queues/mixed/messages', {
      messages: [
        { id: 'good', payload: 1 },
        { id: 'bad\u0000id', payload: 1 },
        { id: 'good', payload: 2 },
      ],
    });
    expect(body.messages).toMatchObject([
      { id: 'good', created: true, state: 'pending' },
      { created: false, error: { code: 'invalid-input' } },
      { id: 'good', created: false, error: { code: 'id-conflict' } },
    ]);
  });

  it('keeps names that JavaScript has a meaning for, in payload, metadata, id and filter', async () => {
    const body =
      '{"messages":[{"id":"__proto__","payload":{"__proto__":{"a":1}},"metadata":{"__proto__":"x","constructor":"y"}},{"id":"b","payload":1}]}';
    const enqueued = await server.raw('POST', '/v1/queues/named/messages', body, json);
    expect(enqueued.body.messages).toMatchObject([{ created: true }, { created: true }]);
    const listed = await server.raw('GET', '/v1/queues/named/messages?where.__proto__=x');
    expect(JSON.stringify(listed.body)).toContain(
      '"payload":{"__proto__":{"a":1}},"metadata":{"__proto__":"x"',
    );
    expect(listed.body.messages).toHaveLength(1);
  });

  it('enqueues what follows with the completion, or neither', async () => {
    await server.call('PUT', '/v1/queues/charged', { type: { kind: 'exclusive', key: 'customer' } });
    await server.call('POST', '/v1/queues/placed/messages', {
      messages: [{ id: 'o', payload: 1, uniqueWhileLive: true, trace: '00-aa' }],
    });
    const [lease] = (await server.call('POST', '/v1/queues/placed/dequeue', {})).body.messages;
    expect(lease.trace).toBe('00-aa');
    const complete = (metadata: object) =>
      server.call('POST', '/v1/queues/placed/messages/o/complete', {
        leaseToken: lease.leaseToken,
        followUps: [{ queue: 'charged', messages: [{ id: 'c', payload: 1, metadata }] }],
      });
    expect((await complete({})).body).toMatchObject({ code: 'invalid-input', field: 'metadata.customer' });
    expect((await server.call('GET', '/v1/queues/charged/messages/c')).status).toBe(404);
    expect((await complete({ customer: 'ann' })).body).toMatchObject({ state: 'completed' });
    expect((await server.call('GET', '/v1/queues/charged/messages/c')).body).toMatchObject({
      state: 'pending',
    });
    expect((await server.call('GET', '/v1/queues/placed/messages/o')).status).toBe(404);
  });

  it('lets the holder of a lease extend it, give it back and fail it, and nobody else', async () => {
    const queue = '/v1/queues/leased';
    await server.call('POST', `${queue}/messages`, { messages: [{ id: 'm', payload: 1, attemptsMax: 2 }] });
    const take = async () =>
      (await server.call('POST', `${queue}/dequeue`, { leaseMs: 60_000 })).body.messages;
    const settle = (operation: string, leaseToken: string, more = {}) =>
      server.call('POST', `${queue}/messages/m/${operation}`, { leaseToken, ...more });
    const [first] = await take();
    const extended = await settle('extend', first.leaseToken, { leaseMs: 600_000 });
    expect(extended.body).toMatchObject({ id: 'm', state: 'running', version: 3 });
    expect(extended.body.leaseUntil - first.leaseUntil).toBeGreaterThan(500_000);
    expect((await settle('release', first.leaseToken, { delayMs: 60_000 })).body.state).toBe('invisible');
    expect((await server.call('GET', `${queue}/messages/m`)).body).toMatchObject({ attempts: 0 });
    const soon = await server.call('PATCH', `${queue}/messages/m`, { visibleAt: 0, priority: 7 });
    expect(soon.body).toMatchObject({ id: 'm', state: 'pending', version: 5 });
    const [second] = await take();
    expect(second).toMatchObject({ priority: 7, attempts: 1 });
    expect((await settle('release', second.leaseToken, { refund: false })).body.state).toBe('pending');
    const [third] = await take();
    for (const operation of ['extend', 'complete', 'release', 'fail']) {
      const answer = await settle(operation, second.leaseToken, operation === 'fail' ? { error: 'x' } : {});
      expect([operation, answer.status, answer.body.code]).toEqual([operation, 409, 'lease-lost']);
    }
    const failed = await settle('fail', third.leaseToken, { error: 'no route', retryDelayMs: 0 });
    expect(failed.body).toMatchObject({ state: 'errored' });
    expect((await server.call('GET', `${queue}/messages/m`)).body).toMatchObject({
      error: 'no route',
      attempts: 2,
    });
  });

  it('lets an operator look, change, cancel, requeue and purge', async () => {
    const queue = '/v1/queues/operated';
    const message = (id: string, more = {}) => ({ id, payload: 1, metadata: { k: id }, ...more });
    await server.call('POST', `${queue}/messages`, {
      messages: [message('a'), message('b'), message('c', { delayMs: 60_000, attemptsMax: 1 })],
    });
    const one = (method: string, id: string, more = '', body?: object) =>
      server.call(method, `${queue}/messages/${id}${more}`, body);
    expect((await one('PATCH', 'a', '', { payload: { changed: true } })).body).toMatchObject({ version: 2 });
    expect((await one('GET', 'a')).body).toMatchObject({ payload: { changed: true } });
    expect((await one('PATCH', 'none', '', { priority: 1 })).body.code).toBe('message-unknown');
    expect((await one('PATCH', 'a', '', { priority: 0.5 })).body).toMatchObject({ field: 'priority' });
    expect((await one('POST', 'b', '/cancel')).body).toMatchObject({ state: 'canceled' });
    const late = await one('PATCH', 'b', '', { priority: 1 });
    expect([late.status, late.body.code]).toEqual([409, 'message-not-waiting']);
    expect((await one('POST', 'none', '/cancel')).status).toBe(404);
    expect((await server.call('GET', `${queue}/depth?where.k=c`)).body).toMatchObject({
      invisible: 1,
      pending: 0,
      exact: true,
    });
    await one('PATCH', 'c', '', { visibleAt: 0, priority: -1 });
    const [{ leaseToken }] = (await server.call('POST', `${queue}/dequeue`, { where: { k: 'c' } })).body
      .messages;
    await one('POST', 'c', '/fail', { leaseToken, error: 'x' });
    expect((await one('POST', 'c', '/requeue')).body).toMatchObject({ id: 'c', state: 'pending' });
    expect((await one('POST', 'none', '/requeue')).status).toBe(404);
    const { events } = (await one('GET', 'c', '/history')).body;
    expect(events.map((event: { version: number; to: string }) => `${event.version} ${event.to}`)).toEqual([
      '1 invisible',
      '2 pending',
      '3 running',
      '4 errored',
      '5 pending',
    ]);
    const listed = (await server.call('GET', `${queue}/messages?state=pending&limit=1`)).body;
    expect(listed.messages.map(({ id }: { id: string }) => id)).toEqual(['c']);
    const rest = await server.call('GET', `${queue}/messages?state=pending&after=${path(listed.next)}`);
    expect(rest.body.messages.map(({ id }: { id: string }) => id)).toEqual(['a']);
    expect((await server.call('PUT', queue, { rateLimit: { count: 1, perMs: 60_000 } })).body).toMatchObject({
      rateLimit: { count: 1, perMs: 60_000 },
    });
    expect((await server.call('GET', queue)).body).toMatchObject({
      queue: 'operated',
      depth: { pending: 2 },
      configuration: { rateLimit: { count: 1 } },
    });
    expect((await server.call('DELETE', `${queue}/messages?state=pending`)).body).toEqual({ purged: 2 });
    expect((await server.call('DELETE', `${queue}/messages?state=running`)).status).toBe(422);
    expect((await server.call('GET', '/v1/queues')).body.queues).toContainEqual(
      expect.objectContaining({ queue: 'operated', pending: 0 }),
    );
  });

  it('sets what recurs by its name, shows it as it was set, and ends it', async () => {
    const set = (body: object) => server.call('PUT', '/v1/recurring/a%2Fb', body);
    const message = { payload: { n: 1 }, metadata: { k: 'v' }, uniqueWhileLive: true };
    const { body } = await set({ queue: 'r', cron: '0 3 * * *', timeZone: 'Europe/Berlin', message });
    expect(body).toEqual({ name: 'a/b', next: expect.any(Number) });
    const shown = { ...body, queue: 'r', cron: '0 3 * * *', timeZone: 'Europe/Berlin', message };
    expect((await server.call('GET', '/v1/recurring')).body).toEqual({ recurring: [shown] });
    expect((await set({ queue: 'r', cron: '61 * * * *', message })).body).toMatchObject({ field: 'cron' });
    expect((await server.call('DELETE', '/v1/recurring/a%2Fb')).body).toEqual({ name: 'a/b' });
    expect((await server.call('DELETE', '/v1/recurring/a%2Fb')).body.code).toBe('recurring-unknown');
  });

  it('hands nothing to a client that has gone while it waited', async () => {
    const gone = new AbortController();
    const waiting = fetch(`${server.address}/v1/queues/left/dequeue`, {
      method: 'POST',
      headers: json,
      body: '{"waitMs":30000}',
      signal: gone.signal,
    });
    waiting.catch(() => {});
    // Once another waits beside it, the first one has been heard.
    await server.call('POST', '/v1/queues/left/dequeue', { waitMs: 300 });
    gone.abort();
    await expect(waiting).rejects.toThrow(/abort/);
    await server.call('POST', '/v1/queues/left/messages', { messages: [{ id: 'm', payload: 1 }] });
    const { body } = await server.call('POST', '/v1/queues/left/dequeue', { waitMs: 10_000 });
    expect(body.messages).toMatchObject([{ id: 'm', attempts: 1 }]);
  });

  it('waits for a message that is enqueued meanwhile', async () => {
    const waiting = server.call('POST', '/v1/queues/awaited/dequeue', { waitMs: 30_000 });
    await server.call('POST', '/v1/queues/awaited/messages', { messages: [{ id: 'm', payload: 1 }] });
    expect((await waiting).body.messages.map((message: { id: string }) => message.id)).toEqual(['m']);
  });
});

describe('access without keys', () => {
  const withHost = (headers: Record<string, string>) =>
    new Promise<number>((resolve, reject) => {
      const { port } = new URL(server.address);
      httpRequest({ port, host: '127.0.0.1', path: '/v1/queues', headers }, (response) => {
        response.resume();
        resolve(response.statusCode ?? 0);
      })
        .on('error', reject)
        .end();
    });

  it('is refused to a rebound name and to a page of another origin', async () => {
    expect(await withHost({ host: 'evil.example' })).toBe(403);
    expect(await withHost({ host: 'localhost:1', origin: 'http://evil.example' })).toBe(403);
    expect(await withHost({ host: 'localhost:1', origin: 'http://localhost:1' })).toBe(200);
  });
});

describe('what operators read', () => {
  it('is there: health, readiness, metrics, the document and its page', async () => {
    expect((await server.call('GET', '/health')).body).toMatchObject({ status: 'ok' });
    expect((await server.call('GET', '/ready')).body).toMatchObject({ ready: true });
    const metrics = await fetch(`${server.address}/metrics`);
    expect(await metrics.text()).toContain('headgate_feed_posts_total');
    const document = (await server.call('GET', '/openapi.json')).body;
    expect(document.openapi).toBe('3.1.0');
    expect(Object.keys(document.paths)).toContain('/v1/accounts/{account}/home');
    expect((await fetch(`${server.address}/docs/`)).status).toBe(200);
  });

  it('streams the overview as server-sent events', async () => {
    const gone = new AbortController();
    const response = await fetch(`${server.address}/v1/events`, { signal: gone.signal });
    const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
    let text = '';
    while (!text.includes('event: overview\ndata: ')) text += (await reader.read()).value;
    gone.abort();
    expect(response.headers.get('content-type')).toContain('text/event-stream');
  });
});
