/** What the configuration file may say about each type of provider, and how the provider is made of it. */
import { invalidInput } from '../../errors.js';
import type { Log } from '../../log.js';
import {
  createApnsProvider,
  createFcmProvider,
  createResendProvider,
  createSandboxProvider,
  createSmppProvider,
  createSmtpProvider,
  createTwilioProvider,
  createWebhookProvider,
  createWebPushProvider,
  type Channel,
  type Provider,
  type PushPlatform,
} from '../../notify/index.js';
import { nearest } from '../nearest.js';
import { objectAt, readFields, type Field, type Fields, type Source, type Values } from './fields.js';

const needed = (type: Field['type']): Field => ({ type, required: true });
const text: Field = { type: 'text' };
const number: Field = { type: 'number' };
const boolean: Field = { type: 'boolean' };

const common: Fields = {
  name: text,
  timeoutMs: number,
  rate: { type: { perSecond: needed('number'), reserved: number } },
  verdicts: { type: 'object' },
};

interface ProviderType {
  readonly fields: Fields;
  create(options: Values, log: Log): Provider;
}

/** The table has checked the fields; what they hold is checked by the provider itself. */
const providerType = (fields: Fields, create: (options: never) => Provider): ProviderType => ({
  fields: { ...common, ...fields },
  create: (options) => create(options as never),
});

export const providerTypes: Readonly<Record<string, ProviderType>> = {
  smtp: providerType(
    {
      host: needed('text'),
      port: number,
      secure: boolean,
      requireTls: boolean,
      auth: { type: { user: needed('text'), pass: needed('secret') } },
      from: needed('text'),
      domain: text,
      pool: { type: { connectionsMax: number, idleMs: number } },
      tls: { type: { ca: text, servername: text } },
    },
    createSmtpProvider,
  ),
  resend: providerType(
    { apiKey: needed('secret'), from: needed('text'), webhookSecrets: { type: 'secrets' }, url: text },
    createResendProvider,
  ),
  smpp: providerType(
    {
      host: needed('text'),
      port: number,
      tls: boolean,
      systemId: needed('text'),
      password: needed('secret'),
      systemType: text,
      from: needed('text'),
      enquireMs: number,
      receiptIds: text,
    },
    createSmppProvider,
  ),
  twilio: providerType(
    {
      accountSid: needed('text'),
      authToken: needed('secret'),
      from: needed('text'),
      statusUrl: text,
      url: text,
    },
    createTwilioProvider,
  ),
  fcm: providerType({ account: needed('secret-json'), url: text, tokenUrl: text }, createFcmProvider),
  apns: providerType(
    {
      teamId: needed('text'),
      keyId: needed('text'),
      key: needed('secret'),
      topic: needed('text'),
      url: text,
      ca: text,
    },
    createApnsProvider,
  ),
  'web-push': providerType(
    {
      vapid: {
        type: { subject: needed('text'), publicKey: needed('text'), privateKey: needed('secret') },
        required: true,
      },
      ttlMaxSeconds: number,
      ca: text,
      allow: { type: 'texts' },
    },
    createWebPushProvider,
  ),
  webhook: providerType(
    { secrets: needed('secrets'), allow: { type: 'texts' }, ca: text },
    createWebhookProvider,
  ),
  sandbox: {
    fields: { name: text, channel: needed('text'), platform: text },
    create: ({ channel, platform, name }, log) =>
      createSandboxProvider(channel as Channel, {
        log,
        ...(name === undefined ? {} : { name: name as string }),
        ...(platform === undefined ? {} : { platform: platform as PushPlatform }),
      }),
  },
};

/** One entry of `providers`: `{ type, … }`, or in a module a provider that is there already. */
export function readProvider(
  path: string,
  value: unknown,
  source: Source,
  { log, publicUrl }: { readonly log: Log; readonly publicUrl: string | undefined },
): Provider {
  const { type, ...options } = objectAt(path, value);
  if (typeof options['attempt'] === 'function') return value as Provider;
  const names = Object.keys(providerTypes);
  const found =
    typeof type === 'string' && Object.hasOwn(providerTypes, type) ? providerTypes[type] : undefined;
  if (found === undefined) {
    const meant = typeof type === 'string' ? nearest(type, names) : undefined;
    throw invalidInput(`${path}.type`, type, meant ?? `one of ${names.join(', ')}`);
  }
  const read = readFields(path, options, found.fields, source);
  const isTwilio = type === 'twilio' && read['statusUrl'] === undefined && publicUrl !== undefined;
  const statusUrl = `${publicUrl}/v1/receipts/${String(read['name'] ?? 'twilio')}`;
  return found.create(isTwilio ? { ...read, statusUrl } : read, log);
}
