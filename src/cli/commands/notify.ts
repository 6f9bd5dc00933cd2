/** `headgate notify …`: sends, looks at what became of it, and operates, over the HTTP API. */
import type { Command } from 'commander';
import { destinations, json, number } from '../arguments.js';
import { clientCommands, type ClientRun } from '../client-commands.js';
import type { Environment, Flags } from '../config.js';
import { print, table } from '../output.js';
import { addNotifyCampaigns } from './notify-campaign.js';
import { addNotifyPeople } from './notify-people.js';

type Row = Readonly<Record<string, unknown>>;

const asJson = (flags: Flags) => ({ json: flags['json'] === true });
const path = encodeURIComponent;
const timeOf = (value: unknown) => (typeof value === 'number' ? new Date(value).toISOString() : undefined);

const kinds: ClientRun = async (client, flags) => {
  const answer = await client.get<{ kinds: Row[] }>('/v1/kinds');
  print(answer.kinds, asJson(flags), (all) =>
    table(
      all.map(({ name, channels, delivery, priority, deadlineMs, attemptsMax, floor, required, secret }) => ({
        kind: name,
        channels: (channels as string[]).join(',') || '(not defined here)',
        delivery,
        priority,
        deadlineMs,
        attemptsMax,
        floor,
        required,
        secret,
      })),
    ),
  );
};

const send: ClientRun = async (client, flags, kind = '') => {
  const { user, key, values, to, sendAt, locale, digestKey } = flags;
  const body = {
    kind,
    user,
    key,
    data: json('--values', String(values)),
    to,
    locale,
    sendAt: typeof sendAt === 'string' && /^\d+$/.test(sendAt) ? Number(sendAt) : sendAt,
    ...(digestKey === undefined ? {} : { digestKey: json('--digest-key', String(digestKey)) }),
  };
  const answer = await client.post<Row & { deliveries: Row[] }>('/v1/notifications', body);
  print(answer, asJson(flags), ({ id, duplicate, state, deliveries }) =>
    [table([{ id, state, duplicate }]), '', table(deliveries)].join('\n'),
  );
};

interface Shown extends Row {
  readonly deliveries: (Row & { readonly history: Row[] })[];
}

function story({ id, user, kind, key, createdAt, deliveries }: Shown): string {
  const parts = deliveries.map(({ history, ...delivery }) => {
    const { channel, address, state, reason, attempts, provider, receipt, cost } = delivery;
    const lines = history.map(({ at, event, attempt, provider: by, detail }) => ({
      at: timeOf(at),
      event,
      attempt,
      provider: by,
      detail,
    }));
    return `\n${table([{ channel, address, state, reason, attempts, provider, receipt, cost }])}\n\n${table(lines)}`;
  });
  return [table([{ id, user, kind, key, accepted: timeOf(createdAt) }]), ...parts].join('\n');
}

const get: ClientRun = async (client, flags, id = '') => {
  print(await client.get<Shown>(`/v1/notifications/${path(id)}`), asJson(flags), story);
};

const cancel: ClientRun = async (client, flags, id = '') => {
  const answer = await client.post<{ canceled: string[] }>(`/v1/notifications/${path(id)}/cancel`, {});
  print(answer, asJson(flags), ({ canceled }) =>
    canceled.length === 0 ? 'nothing waited' : `canceled: ${canceled.join(', ')}`,
  );
};

const deliveries: ClientRun = async (client, flags) => {
  const query = new URLSearchParams();
  for (const name of ['user', 'kind', 'state', 'limit', 'before'])
    if (flags[name] !== undefined) query.set(name, String(flags[name]));
  const answer = await client.get<{ deliveries: Row[]; next?: string }>(`/v1/deliveries?${query.toString()}`);
  print(answer, asJson(flags), ({ deliveries: all, next }) => {
    const rows = all.map(
      ({ id, kind, user, channel, state, reason, attempts, provider, receipt, createdAt }) => ({
        id,
        accepted: timeOf(createdAt),
        kind,
        user,
        channel,
        state,
        reason,
        attempts,
        provider,
        receipt,
      }),
    );
    return `${table(rows)}${next === undefined ? '' : `\nmore: --before ${next}`}`;
  });
};

const ledger: ClientRun = async (client, flags) => {
  const kind = flags['kind'] === undefined ? '' : `?kind=${path(String(flags['kind']))}`;
  print(await client.get<object>(`/v1/ledger${kind}`), asJson(flags), (sums) => table([sums]));
};

const providers: ClientRun = async (client, flags) => {
  const answer = await client.get<{ providers: Row[] }>('/v1/providers');
  print(answer.providers, asJson(flags), (all) =>
    table(
      all.map(({ name, channel, open, reason }) => ({ provider: name, channel, callable: open, reason })),
    ),
  );
};

const preview: ClientRun = async (client, flags, kind = '', channel = '') => {
  const body = { channel, data: json('--values', String(flags['values'])), locale: flags['locale'] };
  const answer = await client.post<{ content: Row }>(`/v1/kinds/${path(kind)}/preview`, body);
  print(answer.content, asJson(flags), (content) =>
    Object.entries(content)
      .map(([slot, text]) => `${slot}: ${typeof text === 'string' ? text : JSON.stringify(text)}`)
      .join('\n'),
  );
};

const change: ClientRun = async (client, flags, kind = '', changes = '{}') => {
  print(
    await client.patch<Row>(`/v1/kinds/${path(kind)}`, json('CHANGE', changes)),
    asJson(flags),
    (answer) => JSON.stringify(answer, undefined, 2),
  );
};

export function addNotify(program: Command, environment: Environment): void {
  const notify = program
    .command('notify')
    .description('send notifications, look at what became of them, and operate');
  const add = clientCommands(notify, environment);

  add('kinds', 'the kinds in force', kinds);
  add('change <kind> <change>', 'change a kind for every worker; CHANGE is JSON', change).addHelpText(
    'after',
    `\nExample:\n  headgate notify change promo '{"deadline":"2h"}'`,
  );
  add('preview <kind> <channel>', 'the message as a channel would show it; nothing is sent', preview)
    .requiredOption('--values <json>', 'what the templates show: a JSON object')
    .option('--locale <locale>', 'BCP 47')
    .addHelpText('after', `\nExample:\n  headgate notify preview otp sms --values '{"code":"482913"}'`);
  add('send <kind>', 'send once: the same user, kind and key is the same notification', send)
    .requiredOption('--user <user>', 'your own id of the user')
    .requiredOption('--key <key>', 'the business key')
    .requiredOption('--values <json>', 'what the templates show: a JSON object')
    .option(
      '--to <channel:address>',
      "default: the user's destinations; may be given several times",
      destinations,
    )
    .option('--send-at <time>', 'not before: unix milliseconds or ISO 8601 with its zone')
    .option('--locale <locale>', 'BCP 47')
    .option('--digest-key <json>', 'an event of a digest: joins those of this key; null is a key')
    .addHelpText(
      'after',
      `\nExamples:\n  headgate notify send otp --user ann --key login-1 --values '{"code":"482913"}' --to sms:+41791234567\n` +
        `  headgate notify send follow --user ann --key follow-7 --values '{"follower":"bob"}' --digest-key null`,
    );
  add('get <id>', 'a notification and the history of each delivery', get).addHelpText(
    'after',
    '\nExample:\n  headgate notify get 0mx3hkqzz1s1mwsivxu1bkotqx',
  );
  add('cancel <id>', 'end what waits; what is being sent keeps its outcome', cancel);
  add('deliveries', 'deliveries, newest first', deliveries)
    .option('--user <user>', 'only of this user')
    .option('--kind <kind>', 'only of this kind')
    .option('--state <state>', 'waiting, sending, sent, failed, expired, suppressed or ambiguous')
    .option('--limit <number>', '1 to 200', number('--limit'), 20)
    .option('--before <id>', 'go on from here')
    .addHelpText('after', '\nExample:\n  headgate notify deliveries --kind otp --state expired');
  add('ledger', 'what was accepted and what became of it', ledger).option(
    '--kind <kind>',
    'only of this kind',
  );
  add('providers', 'providers, and whether each may be called now', providers);
  addNotifyPeople(notify, environment);
  addNotifyCampaigns(notify, environment);
  notify
    .command('check')
    .description('read the configuration file as a start would, and say what is in it')
    .option('--notify-config <file>', 'default: headgate.config.json or .mjs in this folder')
    .option('--json', 'print JSON')
    .addHelpText('after', '\nExample:\n  headgate notify check --notify-config headgate.config.json')
    .action(async (flags: Flags) =>
      (await import('../runs/notify-check.js')).notifyCheck(flags, environment),
    );
}
