/** Notifications over HTTP, through a real socket, on a real PostgreSQL with real workers. */
import { createHmac } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTwilioProvider, createSandboxProvider, defineKinds } from '../../src/notify/index.js';
import { startTwilioCounterpart, type TwilioCounterpart } from '../../src/testing/index.js';
import { startTestServer, type TestServer } from './test-server.js';

const authToken = 'the-token-of-the-counterpart';
const publicUrl = 'https://us.example.test';
const mails: unknown[] = [];
let counterpart: TwilioCounterpart;
let server: TestServer;

const kinds = defineKinds({
  otp: {
    delivery: 'at-least-once',
    channels: ['sms'],
    deadline: '15s',
    priority: 'urgent',
    required: true,
    secret: true,
    templates: { sms: { text: 'Your code is {{ code }}' } },
  },
  order: {
    delivery: 'at-least-once',
    channels: ['email', 'inbox'],
    templates: {
      email: { subject: 'Order {{ number }}', text: 'Thank you. {{ unsubscribe_url }}' },
      inbox: { title: 'Order {{ number }}', body: 'We have it' },
    },
  },
  login: {
    delivery: 'at-least-once',
    channels: ['sms'],
    priority: 'urgent',
    limits: [{ per: 'user', count: 2, window: '10m' }],
    templates: { sms: { text: 'Your code is {{ code }}' } },
  },
  promo: {
    delivery: 'at-most-once',
    channels: ['email'],
    templates: { email: { subject: 'New', text: 'Look at {{ what }}' } },
  },
  follow: {
    delivery: 'at-least-once',
    channels: ['inbox'],
    templates: { inbox: { title: 'A new follower', body: '{{ who }}' } },
    digest: { window: '1s', templates: { inbox: { title: '{{ count }} new followers', body: 'see them' } } },
  },
});

beforeAll(async () => {
  counterpart = await startTwilioCounterpart({ authToken });
  server = await startTestServer({
    notify: {
      kinds,
      publicUrl,
      unsubscribe: { url: `${publicUrl}/v1/unsubscribe`, secret: 'a secret of the tests' },
      providers: [
        createTwilioProvider({
          accountSid: 'AC1',
          authToken,
          from: '+41790000000',
          url: counterpart.url,
          statusUrl: `${publicUrl}/v1/receipts/twilio`,
        }),
        createSandboxProvider('email', { onMessage: ({ content }) => mails.push(content) }),
      ],
    },
  });
});
afterAll(async () => {
  await server?.stop();
  await counterpart?.stop();
});

const sms = (address: string) => [{ channel: 'sms', address }];
const state = async (id: string) =>
  (await server.call('GET', `/v1/notifications/${id}`)).body.deliveries[0].state;
const sent = (id: string) => expect.poll(() => state(id), { timeout: 50_000 }).toBe('sent');

describe('POST /v1/notifications', () => {
  it('sends once for a user, kind and key, by the body or by Idempotency-Key, and tells its history', async () => {
    const body = {
      kind: 'otp',
      user: 'ann',
      key: 'login-1',
      data: { code: '482913' },
      to: sms('+41791110001'),
    };
    const first = await server.call('POST', '/v1/notifications', body);
    expect([first.status, first.body.duplicate]).toEqual([201, false]);
    const { key, ...rest } = body;
    const again = await server.call('POST', '/v1/notifications', body);
    const byHeader = await server.call('POST', '/v1/notifications', rest, { 'idempotency-key': key });
    expect([again.status, byHeader.status]).toEqual([200, 200]);
    expect([again.body.id, byHeader.body.id]).toEqual([first.body.id, first.body.id]);
    await sent(first.body.id);
    const read = await server.call('GET', `/v1/notifications/${first.body.id}`);
    expect(read.body).toMatchObject({ user: 'ann', kind: 'otp', key: 'login-1' });
    expect(read.body.deliveries[0].history.map((entry: { event: string }) => entry.event)).toEqual(
      expect.arrayContaining(['accepted', 'sending', 'sent']),
    );
    expect(counterpart.messages.filter(({ to }) => to === '+41791110001')).toHaveLength(1);
    expect(JSON.stringify(read.body)).not.toContain('482913');
  });

  it('answers a known key with other content as a conflict that names the first one', async () => {
    const body = {
      kind: 'promo',
      user: 'bob',
      key: 'spring',
      data: { what: 'boots' },
      to: [{ channel: 'email', address: 'b@example.test' }],
    };
    const first = await server.call('POST', '/v1/notifications', body);
    const other = await server.call('POST', '/v1/notifications', { ...body, data: { what: 'hats' } });
    expect([other.status, other.body.code, other.body.field]).toEqual([409, 'key-conflict', 'key']);
    expect(other.body.detail).toContain(first.body.id);
    expect(other.headers.get('content-type')).toContain('application/problem+json');
  });

  it.each([
    [{ user: 'u', key: 'k', data: {} }, 422, 'kind'],
    [{ kind: 'otp', key: 'k', data: {} }, 422, 'user'],
    [{ kind: 'otp', user: 'u', data: {}, to: sms('+41791234567') }, 422, 'key'],
    [{ kind: 'otp', user: 'u', key: 'k', data: 'x' }, 422, 'data'],
    [{ kind: 'otp', user: 'u', key: 'k', data: { code: '1' }, to: sms('none') }, 422, 'to[0].address'],
    [{ kind: 'otp', user: 'u', key: 'k', data: { code: '1' }, to: [] }, 422, 'to'],
    [{ kind: 'otp', user: 'u', key: 'k', data: { code: '1' }, sendAt: 'tomorrow' }, 422, 'sendAt'],
    [{ kind: 'otp', user: 'u', key: 'k', data: { code: '1' }, colour: 1 }, 422, 'colour'],
    [{ kind: 'otp', user: 'u\u0000', key: 'k', data: { code: '1' } }, 422, 'user'],
    [{ kind: 'otp', user: 'u', key: 'k'.repeat(201), data: { code: '1' } }, 422, 'key'],
    [{ kind: 'otp', user: 'u', key: 'k', data: { code: '1' }, sendAt: 9e15 }, 422, 'sendAt'],
    [{ kind: 'otp', user: 'u', key: 'k', data: {}, to: sms('+41791234567') }, 422, 'otp.sms.text'],
  ])('refuses %j by its field', async (body, status, field) => {
    const answer = await server.call('POST', '/v1/notifications', body);
    expect([answer.status, answer.body.field]).toEqual([status, field]);
  });

  it('refuses data that is nested without end, by its name', async () => {
    for (const field of ['data', 'digestKey']) {
      const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
      const rest = field === 'data' ? `"data":{"who":${deep}}` : `"data":{},"digestKey":${deep}`;
      const body = `{"kind":"follow","user":"u","key":"deep",${rest}}`;
      const answer = await server.raw('POST', '/v1/notifications', body, {
        'content-type': 'application/json',
      });
      expect([answer.status, answer.body.field]).toEqual([422, field]);
    }
  });

  it('answers what is over the limit of its kind with 429 and when to come again', async () => {
    const send = (key: string) =>
      server.call('POST', '/v1/notifications', {
        kind: 'login',
        user: 'lim',
        key,
        data: { code: '482913' },
        to: sms('+41791234599'),
      });
    expect([(await send('1')).status, (await send('2')).status]).toEqual([201, 201]);
    const refused = await send('3');
    expect([refused.status, refused.body.code]).toEqual([429, 'send-limited']);
    expect(refused.body.retryAfterMs).toBeGreaterThan(500_000);
    expect(Number(refused.headers.get('retry-after'))).toBe(Math.ceil(refused.body.retryAfterMs / 1_000));
    expect(JSON.stringify(refused.body)).not.toMatch(/482913|41791234599/);
    expect((await send('1')).status).toBe(200);
    const kind = (await server.call('GET', '/v1/kinds')).body.kinds.find(
      ({ name }: { name: string }) => name === 'login',
    );
    expect(kind.limits).toEqual([{ per: 'user', count: 2, windowMs: 600_000 }]);
  });

  it('knows no other kind and no other id', async () => {
    const body = { kind: 'nope', user: 'u', key: 'k', data: {} };
    expect((await server.call('POST', '/v1/notifications', body)).body.code).toBe('kind-unknown');
    expect((await server.call('GET', '/v1/notifications/nope')).body.code).toBe('notification-unknown');
    expect((await server.call('GET', '/v1/ledger?kind=nope')).body.code).toBe('kind-unknown');
    expect((await server.call('GET', '/v1/campaigns/nope')).body.code).toBe('campaign-unknown');
  });

  it('holds until sendAt, and what waits can be canceled', async () => {
    const sendAt = new Date(Date.now() + 3_600_000).toISOString();
    const body = {
      kind: 'otp',
      user: 'cy',
      key: 'later',
      data: { code: '1' },
      sendAt,
      to: sms('+41791110002'),
    };
    const { id } = (await server.call('POST', '/v1/notifications', body)).body;
    expect(await state(id)).toBe('waiting');
    const canceled = await server.call('POST', `/v1/notifications/${id}/cancel`);
    expect(canceled.body.canceled).toHaveLength(1);
    expect(await state(id)).toBe('suppressed');
    expect((await server.call('POST', `/v1/notifications/${id}/cancel`)).body.canceled).toEqual([]);
  });

  it('collects events of a digest into one message', async () => {
    for (const who of ['x', 'y'])
      await server.call('POST', '/v1/notifications', {
        kind: 'follow',
        user: 'star',
        key: who,
        data: { who },
        digestKey: null,
      });
    await expect
      .poll(async () => (await server.call('GET', '/v1/users/star/inbox')).body.entries, { timeout: 50_000 })
      .toMatchObject([{ title: '2 new followers' }]);
  });
});

describe('a user', () => {
  it('is reached at the registered destinations, and a retired one given back stays retired', async () => {
    const path = '/v1/users/dan%2F1/destinations';
    const destinations = [
      { channel: 'email', address: 'dan@example.test' },
      { channel: 'sms', address: '+41791110003' },
    ];
    const put = await server.call('PUT', path, { destinations });
    expect(put.body.destinations).toMatchObject(destinations);
    const replaced = await server.call('PUT', path, { destinations: put.body.destinations.slice(0, 1) });
    expect(replaced.body.destinations.map(({ channel }: { channel: string }) => channel)).toEqual(['email']);
    expect((await server.call('GET', path)).body).toEqual(replaced.body);
    const { body } = await server.call('POST', '/v1/notifications', {
      kind: 'order',
      user: 'dan/1',
      key: 'o1',
      data: { number: 7 },
    });
    expect(body.deliveries.map(({ address }: { address: string }) => address)).toEqual([
      'dan@example.test',
      'dan/1',
    ]);
    const bad = await server.call('PUT', path, {
      destinations: [{ channel: 'email', address: 'two@a, three@b' }],
    });
    expect([bad.status, bad.body.field]).toEqual([422, 'destination.address']);
  });

  it('switches kinds off, but not the required ones', async () => {
    const put = (preferences: unknown[]) => server.call('PUT', '/v1/users/eve/preferences', { preferences });
    expect((await put([{ kind: 'promo', channel: '*', enabled: false }])).status).toBe(200);
    const { preferences } = (await server.call('GET', '/v1/users/eve/preferences')).body;
    expect(preferences).toContainEqual({ kind: 'promo', channel: 'email', enabled: false, required: false });
    expect((await put([{ kind: 'otp', channel: '*', enabled: false }])).body.code).toBe('kind-required');
    expect((await put([{ kind: 'promo', channel: 'fax', enabled: false }])).body.field).toContain(
      'preferences.0.channel',
    );
  });

  it('has settings, which can be erased', async () => {
    const settings = {
      locale: 'de',
      timeZone: 'Europe/Berlin',
      quietHours: { from: '22:00', until: '07:30' },
    };
    expect((await server.call('PUT', '/v1/users/flo', settings)).body).toEqual(settings);
    expect((await server.call('GET', '/v1/users/flo')).body).toEqual(settings);
    expect((await server.call('PUT', '/v1/users/flo', { timeZone: 'Mars/Base' })).body.field).toBe(
      'timeZone',
    );
    expect((await server.call('DELETE', '/v1/users/flo')).status).toBe(200);
    expect((await server.call('GET', '/v1/users/flo')).body).toEqual({});
  });

  it('has an inbox whose unread count is told live', async () => {
    const abort = new AbortController();
    const stream = await fetch(`${server.address}/v1/users/gil/inbox/live`, { signal: abort.signal });
    const to = [{ channel: 'inbox', address: 'gil' }];
    await server.call('POST', '/v1/notifications', {
      kind: 'order',
      user: 'gil',
      key: 'o1',
      data: { number: 1 },
      to,
    });
    let text = '';
    const decoder = new TextDecoder();
    for await (const chunk of stream.body as unknown as AsyncIterable<Uint8Array>) {
      text += decoder.decode(chunk, { stream: true });
      if (text.includes('{"unread":1}')) break;
    }
    abort.abort();
    const { entries, unread } = (await server.call('GET', '/v1/users/gil/inbox')).body;
    expect([entries.length, unread]).toEqual([1, 1]);
    const read = await server.call('POST', '/v1/users/gil/inbox/read', { ids: [entries[0].id] });
    expect(read.body).toEqual({ changed: 1, unread: 0 });
  });
});

describe('a receipt', () => {
  const send = async (key: string, address: string) => {
    const body = { kind: 'otp', user: 'rec', key, data: { code: '1' }, to: sms(address) };
    const { id } = (await server.call('POST', '/v1/notifications', body)).body;
    await sent(id);
    const message = counterpart.messages.find(({ to }) => to === address);
    if (!message) throw new Error('the counterpart has no such message');
    return { id, message };
  };
  const post = (url: string, headers: Record<string, string>, body: Uint8Array) =>
    server.raw('POST', url.slice(publicUrl.length), Buffer.from(body).toString(), {
      'content-type': 'application/x-www-form-urlencoded',
      ...headers,
    });

  it('with the signature of the provider settles what it is about, and one that was forged is refused', async () => {
    const { id, message } = await send('r1', '+41791110004');
    const receipt = async () =>
      (await server.call('GET', `/v1/notifications/${id}`)).body.deliveries[0].receipt;
    const { url, headers, body } = counterpart.callback(message, { MessageStatus: 'delivered' });
    const signature = createHmac('sha1', 'another token').update(url).digest('base64');
    const forged = await post(url, { 'x-twilio-signature': signature }, body);
    expect([forged.status, forged.body.code]).toEqual([401, 'signature-invalid']);
    const changed = Buffer.from(Buffer.from(body).toString().replace('delivered', 'undelivered'));
    expect((await post(url, { ...headers }, changed)).status).toBe(401);
    expect(await receipt()).toBe('none');
    const taken = await post(url, { ...headers }, body);
    expect([taken.status, taken.body]).toEqual([200, { matched: 1 }]);
    expect(await receipt()).toBe('delivered');
  });

  it('for a provider that is not there is refused', async () => {
    expect((await server.raw('POST', '/v1/receipts/nobody', '')).body.code).toBe('provider-unknown');
  });
});

describe('the unsubscribe link', () => {
  it('changes nothing by GET, switches off by the one-click POST, and is refused when it was changed', async () => {
    const to = [{ channel: 'email', address: 'uma@example.test' }];
    await server.call('POST', '/v1/notifications', {
      kind: 'order',
      user: 'uma',
      key: 'o',
      data: { number: 4711 },
      to,
    });
    const mail = () =>
      mails.find((one) => JSON.stringify(one).includes('4711')) as { unsubscribeUrl: string } | undefined;
    await expect.poll(mail, { timeout: 50_000 }).toBeDefined();
    const url = (mail()?.unsubscribeUrl ?? '').slice(publicUrl.length);
    const enabled = async () =>
      (await server.call('GET', '/v1/users/uma/preferences')).body.preferences.find(
        (one: { kind: string; channel: string }) => one.kind === 'order' && one.channel === 'email',
      ).enabled;
    const page = await server.raw('GET', url);
    expect(page.status).toBe(200);
    expect(page.body).toContain('<form method="post">');
    expect(await enabled()).toBe(true);
    expect((await server.raw('GET', `${url}x`)).status).toBe(403);
    expect((await server.raw('POST', `${url}x`)).status).toBe(403);
    // a browser sends the form of a page without a referrer with Origin: null
    const form = { 'content-type': 'application/x-www-form-urlencoded', origin: 'null' };
    expect((await server.raw('POST', url, 'List-Unsubscribe=One-Click', form)).status).toBe(200);
    expect(await enabled()).toBe(false);
  });
});

describe('a campaign', () => {
  const recipient = (index: number) => ({
    user: `reader-${index}`,
    data: { what: 'boots' },
    to: [{ channel: 'email', address: `reader-${index}@example.test` }],
  });
  const give = (id: string, from: number, until: number) =>
    server.call('POST', '/v1/campaigns', {
      id,
      kind: 'promo',
      recipients: Array.from({ length: until - from }, (_, index) => recipient(from + index)),
    });

  it('takes each recipient once however often a batch comes, and refuses batches while it is paused', async () => {
    expect((await give('spring', 0, 20)).body).toMatchObject({ taken: 20 });
    expect((await give('spring', 10, 30)).body).toMatchObject({ taken: 30 });
    expect((await server.call('POST', '/v1/campaigns/spring/pause')).body.state).toBe('paused');
    const refused = await give('spring', 30, 40);
    expect([refused.status, refused.body.code]).toEqual([409, 'campaign-paused']);
    await server.call('POST', '/v1/campaigns/spring/resume');
    expect((await give('spring', 30, 40)).body).toMatchObject({ taken: 40 });
    await expect
      .poll(async () => (await server.call('GET', '/v1/campaigns/spring')).body.sent, { timeout: 50_000 })
      .toBe(40);
    await server.call('POST', '/v1/campaigns/spring/cancel');
    expect((await give('spring', 40, 50)).body.code).toBe('campaign-ended');
  });

  it('is in the list, newest first, in pages and by state', async () => {
    await give('summer', 0, 1);
    await give('autumn', 0, 1);
    const ids: string[] = [];
    let before = '';
    do {
      const { body } = await server.call('GET', `/v1/campaigns?limit=1${before}`);
      ids.push(...body.campaigns.map(({ id }: { id: string }) => id));
      before = body.next === undefined ? '' : `&before=${body.next}`;
    } while (before !== '');
    expect(ids).toEqual(['autumn', 'summer', 'spring']);
    const canceled = await server.call('GET', '/v1/campaigns?state=canceled');
    expect(canceled.body.campaigns).toMatchObject([{ id: 'spring', kind: 'promo', taken: 40 }]);
    expect((await server.call('GET', '/v1/campaigns?state=lost')).status).toBe(422);
  });

  it('refuses a recipient by its place', async () => {
    const bad = { ...recipient(1), to: [{ channel: 'email', address: 'nothing' }] };
    const answer = await server.call('POST', '/v1/campaigns', {
      id: 'bad',
      kind: 'promo',
      recipients: [bad],
    });
    expect([answer.status, answer.body.field]).toEqual([422, 'to[0].address']);
  });
});

describe('the overview', () => {
  it('counts what was accepted, attempted and ended, and messages that have used up their attempts', async () => {
    const to = sms('+41791110005');
    const body = { kind: 'otp', user: 'over', key: 'view', data: { code: '1' }, to };
    await sent((await server.call('POST', '/v1/notifications', body)).body.id);
    await server.call('POST', '/v1/notifications', body);
    await server.call('POST', '/v1/queues/failing/messages', { messages: [{ id: 'bad', payload: null }] });
    const { messages } = (await server.call('POST', '/v1/queues/failing/dequeue', {})).body;
    const { leaseToken } = messages[0];
    await server.call('POST', '/v1/queues/failing/messages/bad/fail', { leaseToken, error: 'no' });
    const overview = async () => (await server.call('GET', '/v1/overview')).body;
    await expect
      .poll(async () => (await overview()).notify.attempts.sent, { timeout: 50_000 })
      .toBeGreaterThan(0);
    const { notify, queues } = await overview();
    expect(notify.kinds).toBe(5);
    expect(notify.duplicatesTotal).toBeGreaterThan(0);
    expect(notify.acceptedTotal).toBeGreaterThan(0);
    expect(queues).toContainEqual(expect.objectContaining({ queue: 'failing', errored: 1 }));
  });
});

describe('operating', () => {
  it('lists kinds, providers and deliveries, and the ledger adds up', async () => {
    const names = (list: { name: string }[]) => list.map(({ name }) => name);
    const listed = (await server.call('GET', '/v1/kinds')).body.kinds;
    expect(names(listed)).toEqual(expect.arrayContaining(['otp', 'order', 'promo', 'follow']));
    expect(names((await server.call('GET', '/v1/providers')).body.providers)).toEqual([
      'twilio',
      'sandbox-email',
      'inbox',
    ]);
    const page = (await server.call('GET', '/v1/deliveries?limit=3')).body;
    expect(page.deliveries).toHaveLength(3);
    const next = (await server.call('GET', `/v1/deliveries?limit=3&before=${page.next}`)).body;
    expect(next.deliveries[0].id < page.deliveries[2].id).toBe(true);
    expect((await server.call('GET', '/v1/deliveries?state=lost')).body.field).toBe('state');
    const { accepted, ...others } = (await server.call('GET', '/v1/ledger')).body as Record<string, number>;
    expect(Object.values(others).reduce((sum, count) => sum + count, 0)).toBe(accepted);
  });

  it('previews a kind, and changes one for every worker', async () => {
    const preview = await server.call('POST', '/v1/kinds/otp/preview', {
      channel: 'sms',
      data: { code: '7' },
    });
    expect(preview.body.content).toEqual({ text: 'Your code is 7' });
    const changed = await server.call('PATCH', '/v1/kinds/promo', { deadline: '2h' });
    expect(changed.body).toMatchObject({ name: 'promo', deadlineMs: 7_200_000, channels: ['email'] });
    expect((await server.call('PATCH', '/v1/kinds/promo', { deadline: 'soon' })).body.field).toBe(
      'kinds.promo.deadline',
    );
  });
});
