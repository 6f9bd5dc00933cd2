/** `headgate notify destinations | preferences | inbox …`: what is known of a user, over the HTTP API. */
import type { Command } from 'commander';
import { invalidInput } from '../../errors.js';
import { destinations } from '../arguments.js';
import { clientCommands, type ClientRun } from '../client-commands.js';
import type { Environment, Flags } from '../config.js';
import { print, table } from '../output.js';

type Row = Readonly<Record<string, unknown>>;

const asJson = (flags: Flags) => ({ json: flags['json'] === true });
const userPath = (user: string, rest: string) => `/v1/users/${encodeURIComponent(user)}/${rest}`;

const showDestinations = ({ destinations: all }: { destinations: Row[] }): string =>
  table(
    all.map(({ channel, address, registeredAt, retired }) => ({
      channel,
      address,
      registered: typeof registeredAt === 'number' ? new Date(registeredAt).toISOString() : undefined,
      retired,
    })),
  );

const getDestinations: ClientRun = async (client, flags, user = '') => {
  print(
    await client.get<{ destinations: Row[] }>(userPath(user, 'destinations')),
    asJson(flags),
    showDestinations,
  );
};

const setDestinations: ClientRun = async (client, flags, user = '') => {
  const wanted = (flags['to'] ?? []) as readonly Row[];
  if (wanted.length === 0 && flags['none'] !== true)
    throw invalidInput('--to', undefined, 'at least one CHANNEL:ADDRESS, or --none to remove all');
  print(
    await client.put<{ destinations: Row[] }>(userPath(user, 'destinations'), { destinations: wanted }),
    asJson(flags),
    showDestinations,
  );
};

const getPreferences: ClientRun = async (client, flags, user = '') => {
  const { preferences } = await client.get<{ preferences: Row[] }>(userPath(user, 'preferences'));
  print(preferences, asJson(flags), (all) => table(all));
};

const setPreferences: ClientRun = async (client, flags, user = '', kind = '', channel = '', wish = '') => {
  if (wish !== 'on' && wish !== 'off') throw invalidInput('wish', wish, 'on or off');
  const preference = { kind, channel, enabled: wish === 'on' };
  const answer = await client.put<{ suppressed: string[] }>(userPath(user, 'preferences'), {
    preferences: [preference],
  });
  print(
    answer,
    asJson(flags),
    ({ suppressed }) => `${kind} by ${channel} is ${wish}; ${suppressed.length} waiting deliveries ended`,
  );
};

const inbox: ClientRun = async (client, flags, user = '') => {
  const answer = await client.get<{ entries: Row[]; unread: number }>(userPath(user, 'inbox'));
  print(answer, asJson(flags), ({ entries, unread }) => {
    const rows = entries.map(({ id, kind, title, body, createdAt, readAt }) => ({
      id,
      at: new Date(Number(createdAt)).toISOString(),
      kind,
      read: readAt !== undefined,
      title,
      body,
    }));
    return `${table(rows)}\n${unread} unread`;
  });
};

export function addNotifyPeople(notify: Command, environment: Environment): void {
  const people = notify.command('destinations').description('where a user can be reached');
  const add = clientCommands(people, environment);
  add('get <user>', 'the registered ones, and which are retired', getDestinations);
  add('set <user>', 'make these the whole list; a retired one that is given is alive again', setDestinations)
    .option('--to <channel:address>', 'may be given several times', destinations)
    .option('--none', 'remove all')
    .addHelpText(
      'after',
      '\nExample:\n  headgate notify destinations set ann --to email:ann@example.com --to sms:+41791234567',
    );

  const preferences = notify.command('preferences').description('what a user wants');
  const addPreference = clientCommands(preferences, environment);
  addPreference('get <user>', 'every kind and channel, and whether it is on', getPreferences);
  addPreference(
    'set <user> <kind> <channel> <wish>',
    'WISH is on or off; * means all. Off ends what waits',
    setPreferences,
  ).addHelpText('after', "\nExample:\n  headgate notify preferences set ann promo '*' off");

  clientCommands(notify, environment)('inbox <user>', 'the in-app inbox of a user', inbox);
}
