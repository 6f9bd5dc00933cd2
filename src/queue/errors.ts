/** The queue's error codes in one table; docs/reference/errors.md is made from it. */
import { errorFactory, type ErrorTable } from '../errors.js';

export const queueErrors = {
  'lease-lost': {
    status: 409,
    meaning: 'The lease is not held by this token: it has ended, or another holder has the message.',
  },
  'message-canceled': { status: 409, meaning: 'The message has been canceled; its holder should stop.' },
  'message-unknown': { status: 404, meaning: 'No message of this id is known to the queue.' },
  'message-busy': { status: 409, meaning: 'Another operation holds the message this moment; ask again.' },
  'message-not-waiting': {
    status: 409,
    meaning: 'The message runs or has ended; only a message that waits can be changed.',
  },
  'id-conflict': {
    status: 409,
    meaning: 'The id is known to the queue with another payload; nothing has changed.',
  },
  'payload-too-large': {
    status: 413,
    meaning: 'The payload is larger than the limit; the error names its size and the limit.',
  },
  'enqueue-blocked': { status: 409, meaning: 'The queue takes no messages: enqueue has been paused.' },
  'configuration-fixed': {
    status: 409,
    meaning: 'Type and exclusivity key of a queue cannot change while it holds messages.',
  },
  'recurring-unknown': { status: 404, meaning: 'There is no recurring message of this name.' },
  'transaction-unsupported': { status: 422, meaning: 'The store cannot take part in this transaction.' },
} as const satisfies ErrorTable;

export const queueError = errorFactory(queueErrors);
