/** `headgate queue …`: what an operator or a script does with queues and messages, over the HTTP API. */
import type { Command } from 'commander';
import { describeValue, invalidInput } from '../../errors.js';
import { json, number, pairs } from '../arguments.js';
import type { Environment, Flags } from '../config.js';
import { clientCommands, type ClientRun } from '../client-commands.js';
import { print, table } from '../output.js';
import { addLeases } from './queue-leases.js';
import { messageOf, withMessage } from './queue-message.js';
import { addRecurring } from './queue-recurring.js';

type Rows = Readonly<Record<string, unknown>>[];
type Run = ClientRun;

const path = encodeURIComponent;
const messagePath = (queue: string, id: string) => `/v1/queues/${path(queue)}/messages/${path(id)}`;

function queryOf(flags: Flags, names: readonly string[]): string {
  const query = new URLSearchParams();
  for (const name of names) if (flags[name] !== undefined) query.set(name, String(flags[name]));
  for (const [key, value] of Object.entries((flags['where'] ?? {}) as Record<string, string>))
    query.set(`where.${key}`, value);
  return query.size > 0 ? `?${query.toString()}` : '';
}

const asJson = (flags: Flags) => ({ json: flags['json'] === true });
const timeOf = (value: unknown) => (typeof value === 'number' ? new Date(value).toISOString() : undefined);

function showMessages({ messages, next }: { messages: Rows; next?: string }): string {
  const rows = messages.map((message) => ({
    id: message['id'],
    state: message['state'],
    priority: message['priority'],
    attempts: message['attempts'],
    enqueued: timeOf(message['enqueuedAt']),
    ...(message['leaseToken'] === undefined ? {} : { leaseToken: message['leaseToken'] }),
    payload: describeValue(message['payload']),
  }));
  return `${table(rows)}${next === undefined ? '' : `\nmore: --after ${next}`}`;
}

/** For people: they were counted now, and whether exactly is said only where one of them is not. */
function countsOf(rows: Rows): Rows {
  const areExact = rows.every(({ exact }) => exact !== false);
  return rows.map(({ asOf: _, exact, ...counts }) => (areExact ? counts : { ...counts, exact }));
}

const list: Run = async (client, flags) => {
  const answer = await client.get<{ queues: Rows }>('/v1/queues');
  print(answer.queues, asJson(flags), (queues) => table(countsOf(queues)));
};

const depth: Run = async (client, flags, queue = '') => {
  print(
    await client.get<Rows[number]>(`/v1/queues/${path(queue)}/depth${queryOf(flags, [])}`),
    asJson(flags),
    (answer) => table(countsOf([answer])),
  );
};

const peek: Run = async (client, flags, queue = '') => {
  const query = queryOf(flags, ['state', 'limit', 'after', 'newestFirst']);
  print(
    await client.get<{ messages: Rows; next?: string }>(`/v1/queues/${path(queue)}/messages${query}`),
    asJson(flags),
    showMessages,
  );
};

const get: Run = async (client, flags, queue = '', id = '') => {
  print(await client.get<object>(messagePath(queue, id)), asJson(flags), (message) =>
    JSON.stringify(message, undefined, 2),
  );
};

const history: Run = async (client, flags, queue = '', id = '') => {
  const { events } = await client.get<{ events: Rows }>(`${messagePath(queue, id)}/history`);
  print(events, asJson(flags), (all) =>
    table(
      all.map(({ version, from, to, at, attempt }) => ({
        version,
        from,
        to,
        at: timeOf(at),
        attempt,
      })),
    ),
  );
};

const enqueue: Run = async (client, flags, queue = '') => {
  const message = { id: flags['id'], ...messageOf(flags) };
  const { messages } = await client.post<{ messages: Rows }>(`/v1/queues/${path(queue)}/messages`, {
    messages: [message],
  });
  print(messages, asJson(flags), (answered) => table(answered));
};

const dequeue: Run = async (client, flags, queue = '') => {
  const { count, where, leaseMs, waitMs } = flags;
  print(
    await client.post<{ messages: Rows }>(`/v1/queues/${path(queue)}/dequeue`, {
      count,
      where,
      leaseMs,
      waitMs,
    }),
    asJson(flags),
    showMessages,
  );
};

const cancel: Run = async (client, flags, queue = '', id = '') => {
  print(await client.post<object>(`${messagePath(queue, id)}/cancel`, {}), asJson(flags), (answer) =>
    table([answer]),
  );
};

const requeue: Run = async (client, flags, queue = '', id = '') => {
  if ((flags['all'] === true) === (id !== ''))
    throw invalidInput('<id>', id === '' ? undefined : id, 'the id of a message, or --all without one');
  const { where } = flags;
  if (id !== '' && where !== undefined) throw invalidInput('--where', where, '--all beside it');
  const answer = await (id === ''
    ? client.post<object>(`/v1/queues/${path(queue)}/requeue`, { where })
    : client.post<object>(`${messagePath(queue, id)}/requeue`, {}));
  print(answer, asJson(flags), (shown) => table([shown]));
};

const change: Run = async (client, flags, queue = '', id = '') => {
  const { priority, visibleAt, payload } = flags;
  const body = {
    priority,
    visibleAt,
    payload: payload === undefined ? undefined : json('--payload', String(payload)),
  };
  print(await client.patch<object>(messagePath(queue, id), body), asJson(flags), (answer) => table([answer]));
};

const block =
  (blocked: boolean): Run =>
  async (client, flags, queue = '') => {
    const side = flags['enqueue'] === true ? 'enqueueBlocked' : 'dequeueBlocked';
    const answer = await client.put<Record<string, unknown>>(`/v1/queues/${path(queue)}`, {
      [side]: blocked,
    });
    print(answer, asJson(flags), ({ enqueueBlocked, dequeueBlocked }) =>
      table([{ queue, enqueueBlocked, dequeueBlocked }]),
    );
  };

const configure: Run = async (client, flags, queue = '', change = '{}') => {
  print(
    await client.put<object>(`/v1/queues/${path(queue)}`, json('CHANGE', change)),
    asJson(flags),
    (answer) => JSON.stringify(answer, undefined, 2),
  );
};

const purge: Run = async (client, flags, queue = '', state = '') => {
  print(
    await client.delete<{ purged: number }>(`/v1/queues/${path(queue)}/messages?state=${path(state)}`),
    asJson(flags),
    ({ purged }) => `${purged} messages purged`,
  );
};

export function addQueue(program: Command, environment: Environment): void {
  const queue = program.command('queue').description('look at queues and messages, and operate on them');
  const add = clientCommands(queue, environment);
  const where = [
    '--where <key=value>',
    'only messages with this metadata; may be given several times',
    pairs('--where'),
  ] as const;

  add('list', 'all queues with their depth', list);
  add('depth <queue>', 'messages by state', depth).option(...where);
  add('peek <queue>', 'look at messages without taking them', peek)
    .option(...where)
    .option('--state <state>', 'pending, invisible, running, completed, canceled or errored', 'pending')
    .option('--limit <number>', '1 to 100', number('--limit'), 20)
    .option('--after <cursor>', 'go on from here')
    .option('--newest-first', 'of ended messages, those enqueued last first');
  add('get <queue> <id>', 'one message', get).addHelpText(
    'after',
    `\nAn id that begins with a dash stands behind two of them:\n  headgate queue get mail --json -- -7`,
  );
  add('history <queue> <id>', 'what happened to a message', history);
  withMessage(add('enqueue <queue>', 'enqueue one message', enqueue))
    .option('--id <id>', 'default: a new one')
    .addHelpText(
      'after',
      `\nExample:\n  headgate queue enqueue mail --id receipt-1 --payload '{"to":"ann"}' --metadata region=eu`,
    );
  add('dequeue <queue>', 'lease the most urgent messages', dequeue)
    .option(...where)
    .option('--count <number>', 'at most', number('--count'), 1)
    .option('--lease-ms <number>', 'length of the lease', number('--lease-ms'))
    .option('--wait-ms <number>', 'wait for one, at most 30000', number('--wait-ms'));
  addLeases(add);
  add('change <queue> <id>', 'change a message that waits', change)
    .option('--priority <number>', 'lower first', number('--priority'))
    .option('--visible-at <number>', 'unix milliseconds; 0: at once', number('--visible-at'))
    .option('--payload <json>', 'any JSON');
  add('requeue <queue> [id]', 'let an errored message wait again, or --all', requeue)
    .option('--all', 'all errored messages')
    .option(...where)
    .addHelpText('after', `\nExample:\n  headgate queue requeue mail --all --where region=eu`);
  add('cancel <queue> <id>', 'cancel a message that has not ended', cancel);
  add('pause <queue>', 'hand out no more messages', block(true)).option(
    '--enqueue',
    'take no more messages instead',
  );
  add('resume <queue>', 'undo pause', block(false)).option('--enqueue', 'take messages again');
  add('configure <queue> <change>', 'change the configuration; CHANGE is JSON', configure).addHelpText(
    'after',
    `\nExample:\n  headgate queue configure mail '{"leaseMs":60000,"attemptsMax":5}'`,
  );
  add('purge <queue> <state>', 'forget all messages of a state (not running)', purge);
  addRecurring(add);
}
