/** The configuration file of notifications: what is right is read, what is wrong is named, and no secret is shown. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { loadNotifyConfiguration } from '../../src/cli/notify/load.js';
import { isHeadgateError } from '../../src/errors.js';
import { silentLog } from '../../src/log.js';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'headgate-notify-config-'));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

const secret = 'the-most-secret-token';
const environment = { TOKEN: secret, EMPTY: '' };
const otp = {
  delivery: 'at-least-once',
  channels: ['sms'],
  templates: { sms: { text: 'Your code is {{ code }}' } },
};
const twilio = { type: 'twilio', accountSid: 'AC1', authToken: { env: 'TOKEN' }, from: '+41790000000' };

let files = 0;
async function load(content: unknown, extension = 'json') {
  files += 1;
  const file = join(folder, `headgate-${files}.config.${extension}`);
  await writeFile(file, typeof content === 'string' ? content : JSON.stringify(content));
  return loadNotifyConfiguration({ flags: { notifyConfig: file }, environment, log: silentLog });
}
const loadNotify = (notify: unknown) => load({ notify });

async function refusal(loading: Promise<unknown>) {
  const error: unknown = await loading.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  if (!isHeadgateError(error, 'invalid-input')) throw new Error(`not refused: ${String(error)}`);
  expect(`${error.message} ${JSON.stringify(error.value)}`).not.toContain(secret);
  return error;
}

describe('a configuration file', () => {
  it('gives kinds and providers, with secrets from the environment and from files', async () => {
    await writeFile(join(folder, 'webhook.secret'), 'whsec_c2VjcmV0\n');
    const found = await loadNotify({
      publicUrl: 'https://us.example.test/',
      kinds: {
        otp,
        bell: {
          delivery: 'at-most-once',
          channels: ['webhook', 'inbox'],
          templates: { inbox: { title: 't', body: 'b' } },
        },
      },
      providers: [twilio, { type: 'webhook', secrets: [{ file: 'webhook.secret' }] }],
      unsubscribe: { secret: { env: 'TOKEN' } },
      slots: 20,
    });
    expect(Object.keys(found?.kinds ?? {})).toEqual(['otp', 'bell']);
    expect(found?.providers.map(({ name }) => name)).toEqual(['twilio', 'webhook']);
    expect(found?.unsubscribe).toEqual({ url: 'https://us.example.test/v1/unsubscribe', secret });
    expect(found?.slots).toBe(20);
  });

  it('is in the guide as it can be used', async () => {
    const guide = await readFile(join(import.meta.dirname, '../../docs/guides/notify-server.md'), 'utf8');
    const text = /```json\n([\s\S]*?)```/.exec(guide)?.[1] ?? '';
    const file = join(folder, 'guide.config.json');
    await writeFile(file, text);
    const secrets = { TWILIO_AUTH_TOKEN: secret, SMTP_PASSWORD: secret, UNSUBSCRIBE_SECRET: secret };
    const found = await loadNotifyConfiguration({
      flags: { notifyConfig: file },
      environment: secrets,
      log: silentLog,
    });
    expect(Object.keys(found?.kinds ?? {})).toEqual(['otp', 'order', 'promo']);
    expect(found?.providers.map(({ name }) => name)).toEqual(['twilio', 'smtp']);
  });

  it('takes every provider as the guide sets it up', async () => {
    const guide = await readFile(join(import.meta.dirname, '../../docs/guides/notify-providers.md'), 'utf8');
    const entries = [...guide.matchAll(/```json\n([\s\S]*?)```/g)].map(([, text]) => JSON.parse(text ?? ''));
    const names = [...JSON.stringify(entries).matchAll(/"env":"(\w+)"/g)].map(([, name]) => String(name));
    const account = { project_id: 'p', client_email: 'e', private_key: 'k' };
    const secrets = {
      ...Object.fromEntries(names.map((name) => [name, secret])),
      FCM_ACCOUNT: JSON.stringify(account),
    };
    const file = join(folder, 'providers.config.json');
    await writeFile(file, JSON.stringify({ notify: { providers: entries } }));
    const found = await loadNotifyConfiguration({
      flags: { notifyConfig: file },
      environment: secrets,
      log: silentLog,
    });
    expect(found?.providers.map(({ name }) => name)).toEqual([
      'smtp',
      'resend',
      'twilio',
      'smpp',
      'fcm',
      'apns',
      'web-push',
      'webhook',
    ]);
  });

  it('may check data by a JSON Schema, and its refusal does not quote the data', async () => {
    const data = {
      type: 'object',
      required: ['code'],
      properties: { code: { type: 'string', pattern: '^\\d{6}$' } },
    };
    const found = await loadNotify({ kinds: { otp: { ...otp, data } }, providers: [twilio] });
    const check = found?.kinds['otp']?.data;
    expect(check?.({ code: '482913' })).toEqual({ code: '482913' });
    expect(() => check?.({ code: '4829x3' })).toThrow(expect.not.stringContaining('4829x3'));
  });

  it('may be a module that makes providers itself', async () => {
    const module = `export default { notify: {
      kinds: { otp: ${JSON.stringify({ ...otp })} },
      providers: [{ name: 'own', channel: 'sms', attempt: async () => ({ kind: 'sent' }) }],
    } };`;
    const found = await load(module, 'mjs');
    expect(found?.providers[0]).toMatchObject({ name: 'own', channel: 'sms' });
  });

  it.each([
    [{ kindz: {} }, 'notify.kindz', 'the key kinds'],
    [{ kinds: { otp: { ...otp, dedline: '15s' } } }, 'kinds.otp.dedline', 'the key deadline'],
    [{ kinds: { otp: { ...otp, deadline: 'soon' } } }, 'kinds.otp.deadline', 'a duration'],
    [{ kinds: { otp: { ...otp, required: 'yes' } } }, 'kinds.otp.required', 'true or false'],
    [{ kinds: { otp: { ...otp, channels: ['fax'] } } }, 'kinds.otp.channels', 'at least one of'],
    [{ kinds: { otp: { ...otp, templates: {} } } }, 'kinds.otp.templates.sms', 'the text of this channel'],
    [{ kinds: { otp } }, 'kinds.otp.channels', 'a channel with a provider'],
    [{ providers: [{ type: 'twillio' }] }, 'providers[0].type', 'twilio'],
    [{ providers: [{ ...twilio, acountSid: 'x' }] }, 'providers[0].acountSid', 'the key accountSid'],
    [{ providers: [{ ...twilio, from: undefined }] }, 'providers[0].from', 'it is required'],
    [{ providers: [{ ...twilio, timeoutMs: '5s' }] }, 'providers[0].timeoutMs', 'a number'],
    [
      { providers: [{ ...twilio, authToken: secret }] },
      'providers[0].authToken',
      'no secret stands in this file',
    ],
    [{ providers: [{ ...twilio, authTokn: secret }] }, 'providers[0].authTokn', 'the key authToken'],
    [
      { providers: [{ ...twilio, authToken: { env: 'MISSING' } }] },
      'providers[0].authToken',
      'MISSING to be set',
    ],
    [
      { providers: [{ ...twilio, authToken: { env: 'EMPTY' } }] },
      'providers[0].authToken',
      'EMPTY to be set',
    ],
    [{ providers: [{ type: 'fcm', account: { env: 'TOKEN' } }] }, 'providers[0].account', 'a JSON object'],
    [
      { providers: [{ type: 'smtp', host: 'h', from: 'f', auth: { user: 'u' } }] },
      'providers[0].auth.pass',
      'required',
    ],
    [{ publicUrl: 'us.example.test' }, 'notify.publicUrl', 'https://'],
    [{ unsubscribe: { secret: { env: 'TOKEN' } } }, 'unsubscribe.url', 'notify.publicUrl'],
  ])('refuses %j by its key', async (notify, field, expected) => {
    const error = await refusal(loadNotify(notify));
    expect(error.field).toBe(field);
    expect(error.message).toContain(expected);
    expect(error.message).toContain('.config.json');
  });

  it('that is not JSON is refused by its name, without quoting it', async () => {
    const error = await refusal(load(`{ "token": "${secret}", }`));
    expect(error.message).toContain('.config.json');
  });

  it('that is asked for and not there is refused by the flag', async () => {
    const flags = { notifyConfig: join(folder, 'none.json') };
    const error = await refusal(loadNotifyConfiguration({ flags, environment, log: silentLog }));
    expect(error.field).toBe('--notify-config');
  });
});
