/** `headgate queue complete | fail | release | extend`: what the holder of a lease does with its message. */
import type { Command } from 'commander';
import { json, number } from '../arguments.js';
import type { ClientRun } from '../client-commands.js';
import type { Flags } from '../config.js';
import { print, table } from '../output.js';

type Operation = 'complete' | 'fail' | 'release' | 'extend';

const settle =
  (operation: Operation, bodyOf: (flags: Flags) => object): ClientRun =>
  async (client, flags, queue = '', id = '', leaseToken = '') => {
    const message = `/v1/queues/${encodeURIComponent(queue)}/messages/${encodeURIComponent(id)}`;
    const answer = await client.post<object>(`${message}/${operation}`, { leaseToken, ...bodyOf(flags) });
    print(answer, { json: flags['json'] === true }, (shown) => table([shown]));
  };

export function addLeases(add: (usage: string, description: string, run: ClientRun) => Command): void {
  const leased = (operation: Operation, description: string, bodyOf: (flags: Flags) => object): Command =>
    add(`${operation} <queue> <id> <leaseToken>`, description, settle(operation, bodyOf));

  leased('complete', 'complete a leased message', ({ result }) => ({
    result: result === undefined ? undefined : json('--result', String(result)),
  })).option('--result <json>', 'kept with the message');
  leased('fail', 'give up this attempt of a leased message', ({ error, retryDelayMs }) => ({
    error,
    retryDelayMs,
  }))
    .requiredOption('--error <text>', 'kept with the message')
    .option(
      '--retry-delay-ms <number>',
      'it comes back after this long; default: it is errored',
      number('--retry-delay-ms'),
    );
  leased('release', 'give a leased message back; the attempt does not count', ({ delayMs }) => ({
    delayMs,
  })).option('--delay-ms <number>', 'not before', number('--delay-ms'));
  leased('extend', 'hold a leased message for longer', ({ leaseMs }) => ({ leaseMs })).option(
    '--lease-ms <number>',
    'from now; default: the length of its lease',
    number('--lease-ms'),
  );
}
