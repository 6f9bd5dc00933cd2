/** The worker's error codes in one table: reasons of a handler's signal that the queue has no code for. */
import { errorFactory, type ErrorTable } from '../../errors.js';

export const workerErrors = {
  'handler-time-limit': {
    status: 500,
    meaning: 'A handler ran for longer than the time limit of its worker.',
  },
} as const satisfies ErrorTable;

export const workerError = errorFactory(workerErrors);
