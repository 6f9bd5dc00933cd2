/** `headgate queue recurring | recur | end-recurring`: messages that come at each tick of a cron expression. */
import type { Command } from 'commander';
import type { ClientRun } from '../client-commands.js';
import { print, table } from '../output.js';
import { messageOf, withMessage } from './queue-message.js';

type Row = Readonly<Record<string, unknown>>;

const path = (name: string): string => `/v1/recurring/${encodeURIComponent(name)}`;
const timeOf = ({ next, ...rest }: Row): Row => ({ ...rest, next: new Date(Number(next)).toISOString() });

const list: ClientRun = async (client, flags) => {
  const { recurring } = await client.get<{ recurring: Row[] }>('/v1/recurring');
  print(recurring, { json: flags['json'] === true }, (rows) =>
    table(rows.map(({ message, ...row }) => ({ ...timeOf(row), payload: (message as Row)['payload'] }))),
  );
};

const recur: ClientRun = async (client, flags, name = '', queue = '', cron = '') => {
  const body = { queue, cron, timeZone: flags['timeZone'], message: messageOf(flags) };
  print(await client.put<Row>(path(name), body), { json: flags['json'] === true }, (row) =>
    table([timeOf(row)]),
  );
};

const end: ClientRun = async (client, flags, name = '') => {
  print(await client.delete<Row>(path(name)), { json: flags['json'] === true }, (row) => table([row]));
};

export function addRecurring(add: (usage: string, description: string, run: ClientRun) => Command): void {
  add('recurring', 'all recurring messages with their next tick', list);
  withMessage(add('recur <name> <queue> <cron>', 'a message at each tick, set by its name', recur))
    .option('--time-zone <name>', 'IANA name; default: UTC')
    .addHelpText(
      'after',
      `\nExample:\n  headgate queue recur nightly reports '0 3 * * *' --time-zone Europe/Berlin --payload '{}'`,
    );
  add('end-recurring <name>', 'no further ticks', end);
}
