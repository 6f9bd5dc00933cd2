/** Error codes of the redis store, beside those of the queue and the ground. */
import { errorFactory, type ErrorTable } from '../../errors.js';
import { queueError } from '../errors.js';

export const redisQueueErrors = {
  'redis-full': {
    status: 507,
    meaning: 'The Redis server has reached maxmemory and takes no new messages; nothing of them was stored.',
  },
  'redis-unavailable': {
    status: 503,
    meaning: 'The Redis server cannot be reached, is loading its data, or is a replica that takes no writes.',
  },
  'not-durable': {
    status: 500,
    meaning: 'The Redis server can lose an acknowledged write, and durability strict was asked for.',
  },
  'not-replicated': {
    status: 503,
    meaning:
      'Too few servers confirmed a write in time, by WAIT or WAITAOF. It may or may not hold; repeat it with the same arguments.',
  },
  'redis-too-old': { status: 500, meaning: 'The store needs Redis 7.0 or newer, or Valkey.' },
} as const satisfies ErrorTable;

export const redisQueueError = errorFactory(redisQueueErrors);

export const noTransaction = () =>
  queueError('transaction-unsupported', 'the redis store has no transactions: enqueue through an outbox', {
    field: 'transaction',
    expected: 'an outbox, or a postgres store',
  });
