/** `headgate notify …` as a user types it: on a served configuration file, and where no server runs. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testServers } from '../database/test-databases.js';
import { call, runHeadgate, type HeadgateProcess } from './headgate-process.js';
import { until } from '../../src/testing/until.js';

let folder: string;
let config: string;
let server: HeadgateProcess;
let address: string;

const notify = {
  kinds: {
    otp: {
      delivery: 'at-least-once',
      channels: ['sms'],
      deadline: '1m',
      secret: true,
      required: true,
      templates: { sms: { text: 'Your code is {{ code }}' } },
    },
    promo: {
      delivery: 'at-most-once',
      channels: ['email'],
      templates: { email: { subject: 'New', text: 'Look at {{ what }}' } },
    },
  },
  providers: [
    { type: 'sandbox', channel: 'sms' },
    { type: 'sandbox', channel: 'email' },
  ],
};

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-notify-'));
  config = join(folder, 'notify.json');
  await writeFile(config, JSON.stringify({ notify }));
  server = runHeadgate(['serve', '--port', '0', '--data', join(folder, 'data'), '--notify-config', config]);
  address = await server.ready();
});
afterAll(async () => {
  await server?.kill('SIGKILL');
  await rm(folder, { recursive: true, force: true });
});

async function headgate(...args: string[]): Promise<{ code: number | string; output: string }> {
  const started = runHeadgate(['notify', ...args]);
  const code = await started.exit();
  return { code, output: started.output() };
}
const on = () => ['--url', address];
// oxlint-disable-next-line typescript/no-explicit-any -- answers are looked at by tests only
async function json(...args: string[]): Promise<any> {
  const { code, output } = await headgate(...args, ...on(), '--json');
  expect([code, output]).toEqual([0, expect.anything()]);
  return JSON.parse(output);
}

describe('serve and work on one PostgreSQL', () => {
  it('deliver together: what one accepts the other sends', { timeout: 120_000 }, async () => {
    const database = testServers().at(-1);
    if (!database) throw new Error('no PostgreSQL was found for the tests');
    const where = ['--database-url', await database.url(), '--notify-config', config];
    const migrating = runHeadgate(['migrate', ...where.slice(0, 2)]);
    expect(await migrating.exit()).toBe(0);
    const serving = runHeadgate(['serve', '--no-work', '--port', '0', ...where]);
    const working = runHeadgate(['work', ...where]);
    try {
      const url = await serving.ready();
      const to = [{ channel: 'sms', address: '+41791234567' }];
      const body = { kind: 'otp', user: 'ann', key: 'k', data: { code: '1' }, to };
      expect((await call(url, 'POST', '/v1/notifications', body)).status).toBe(201);
      await until(async () => (await call(url, 'GET', '/v1/ledger')).body.sent === 1, {
        what: 'the delivery',
      });
      expect([await working.kill('SIGTERM'), await serving.kill('SIGTERM')]).toEqual([0, 0]);
    } finally {
      await Promise.all([working.kill('SIGKILL'), serving.kill('SIGKILL')]);
    }
  });
});

describe('headgate notify', () => {
  it('sends once, is delivered by the server, and tells the story', { timeout: 120_000 }, async () => {
    const send = [
      'send',
      'otp',
      '--user',
      'ann',
      '--key',
      'login-1',
      '--values',
      '{"code":"482913"}',
      '--to',
      'sms:+41791234567',
    ];
    const first = await json(...send);
    expect(first).toMatchObject({ duplicate: false, deliveries: [{ address: '+41791234567' }] });
    expect(await json(...send)).toMatchObject({ id: first.id, duplicate: true });
    await until(async () => (await call(address, 'GET', '/v1/ledger?kind=otp')).body.sent === 1, {
      what: 'the delivery',
    });
    expect(await json('ledger', '--kind', 'otp')).toMatchObject({ sent: 1 });
    const { output } = await headgate('get', first.id, ...on());
    expect(output).toMatch(/accepted[\s\S]*sending[\s\S]*sent/);
    expect(output).not.toContain('482913');
    expect((await json('deliveries', '--user', 'ann')).deliveries).toHaveLength(1);
  });

  it('sets where a user can be reached and what they want', { timeout: 120_000 }, async () => {
    await json('destinations', 'set', 'bob', '--to', 'email:bob@example.com', '--to', 'sms:+41791234568');
    expect((await json('destinations', 'get', 'bob')).destinations).toHaveLength(2);
    const off = await headgate('preferences', 'set', 'bob', 'promo', '*', 'off', ...on());
    expect(off.output).toContain('promo by * is off');
    const required = await headgate('preferences', 'set', 'bob', 'otp', '*', 'off', ...on());
    expect([required.code, required.output]).toEqual([1, expect.stringContaining('kind-required')]);
  });

  it('streams a file of recipients into a campaign, and again without a repeat', {
    timeout: 120_000,
  }, async () => {
    const file = join(folder, 'recipients.ndjson');
    const lines = Array.from({ length: 1_200 }, (_, index) =>
      JSON.stringify({
        user: `u${index}`,
        data: { what: 'boots' },
        to: [{ channel: 'email', address: `u${index}@example.com` }],
      }),
    );
    await writeFile(file, `${lines.join('\n')}\n`);
    const start = ['campaign', 'start', 'spring', '--kind', 'promo', '--file', file];
    await headgate(...start, ...on());
    await headgate(...start, ...on());
    expect(await json('campaign', 'status', 'spring')).toMatchObject({ kind: 'promo', taken: 1_200 });
    expect((await json('campaigns', '--state', 'streamed')).campaigns).toMatchObject([
      { id: 'spring', kind: 'promo', taken: 1_200 },
    ]);
    expect((await headgate('campaigns', ...on())).output).toMatch(/spring +promo +streamed +1200/);
    expect(await json('campaign', 'pause', 'spring')).toMatchObject({ state: 'paused' });
    expect(await json('campaign', 'cancel', 'spring')).toMatchObject({ state: 'canceled' });
    expect((await json('ledger')).accepted).toBeGreaterThanOrEqual(1_200);
  });

  it.each([
    [['get', 'nothing'], 1, 'notification-unknown'],
    [['send', 'otp', '--user', 'u', '--key', 'k', '--values', '{code}'], 2, '--values'],
    [['send', 'otp', '--user', 'u', '--key', 'k', '--values', '{}', '--to', 'sms:1'], 2, 'to[0].address'],
    [['campaign', 'start', 'x', '--kind', 'promo', '--file', '/nowhere'], 2, '--file'],
  ])('refuses %j with its exit code and what is wrong', { timeout: 60_000 }, async (args, code, text) => {
    const refused = await headgate(...args, ...on());
    expect([refused.code, refused.output]).toEqual([code, expect.stringContaining(text)]);
  });

  it('has examples in its help, and checks a file without a server', { timeout: 60_000 }, async () => {
    expect((await headgate('send', '--help')).output).toContain('headgate notify send otp --user ann');
    const checked = await headgate('check', '--notify-config', config);
    expect([checked.code, checked.output]).toEqual([0, expect.stringContaining('sandbox-sms')]);
    const wrong = join(folder, 'wrong.json');
    await writeFile(wrong, JSON.stringify({ notify: { ...notify, provider: [] } }));
    const serving = runHeadgate([
      'serve',
      '--port',
      '0',
      '--data',
      join(folder, 'other'),
      '--notify-config',
      wrong,
    ]);
    expect(await serving.exit()).toBe(2);
    expect(serving.output()).toContain('notify.provider: expected the key providers');
  });
});
