/** What Redis and its driver say when something is wrong, by the names that callers know. */
import { isHeadgateError } from '../../errors.js';
import { redisQueueError } from './errors.js';

const unavailable =
  /^(READONLY|MOVED|ASK|LOADING|MASTERDOWN|CLUSTERDOWN|TRYAGAIN|NOREPLICAS|MISCONF|BUSY|UNBLOCKED)|Connection is closed|Connection ended|max retries|timed? ?out|ECONN|EPIPE|ENOTFOUND|All nodes|Command aborted|Stream isn't writeable|redirections|Failed to refresh/i;

/** The server's error by the name that callers know; anything else stays what it is. */
export function asNamed(error: unknown): Error {
  if (!(error instanceof Error)) return new Error(String(error));
  if (isHeadgateError(error)) return error;
  if (/^OOM|used memory > 'maxmemory'/.test(error.message))
    return redisQueueError('redis-full', 'Redis has reached maxmemory; nothing was stored', { cause: error });
  if (
    unavailable.test(`${error.message} ${(error as { code?: string }).code ?? ''}`) ||
    error.name === 'MaxRetriesPerRequestError'
  )
    return redisQueueError('redis-unavailable', `Redis does not answer: ${error.message}`, { cause: error });
  if (error.message.includes('appendonly is disabled'))
    return redisQueueError('not-durable', 'the append-only file has been turned off', { cause: error });
  return error;
}
