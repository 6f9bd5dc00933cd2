/**
 * Looks after the servers that keep timelines outside the database: when they are others than before, what they may have lost
 * is fanned out again. Until then no reply of theirs counts, so homes are right in the meantime.
 */
import { setTimeout as delay } from 'node:timers/promises';
import type { FeedContext } from './context.js';
import { feedError } from './errors.js';
import type { ServersState } from './store.js';
import { fanOutAgainMessage } from './work.js';

const enqueuedAtOnce = 500;
const pauseMs = 500;
/** Longer than it takes to know that nobody works with the servers of before. */
const startMsMax = 10_000;

/** One look; adopts new servers. */
export async function settleTimelineServers(context: FeedContext): Promise<ServersState['kind'] | 'inside'> {
  const { database, store, log, now } = context;
  const { apart } = store;
  if (!apart) return 'inside';
  const state = await apart.checkServers(database, { now: now() });
  switch (state.kind) {
    case 'new':
      await adopt(context, state.servers);
      return 'trusted';
    case 'elsewhere':
      log.error(
        { servers: state.servers },
        'another process keeps the timelines of this feed in another Redis',
      );
      return state.kind;
    case 'away':
      log.debug({ error: state.error }, 'the servers of timelines do not answer');
      return state.kind;
    default:
      return state.kind;
  }
}

async function adopt(
  context: FeedContext,
  servers: Extract<ServersState, { kind: 'new' }>['servers'],
): Promise<void> {
  const { database, store, log, options } = context;
  const again = await database.transaction(async (transaction) => {
    const input = { servers, lagMaxMs: options.lagMaxMs, now: context.now() };
    const fanOuts = (await store.apart?.adoptServers(transaction, input)) ?? [];
    const messages = fanOuts.map(({ post, lane }) => fanOutAgainMessage(post, lane));
    for (let from = 0; from < messages.length; from += enqueuedAtOnce)
      await context.enqueue(messages.slice(from, from + enqueuedAtOnce), transaction);
    return fanOuts.length;
  });
  log.info(
    { servers: servers.map(({ address }) => address), fanOutsAgain: again },
    'timelines are kept by other servers than before; what these may lack is pushed again',
  );
}

/** At start: throws `timelines-elsewhere` when others work with another Redis; one that is away is waited for by nobody. */
export async function startTimelineServers(context: FeedContext): Promise<void> {
  const endsAtMs = context.clock.monotonicMs() + startMsMax;
  for (;;) {
    const kind = await settleTimelineServers(context);
    if (kind === 'elsewhere')
      throw feedError(
        'timelines-elsewhere',
        'timelines: a process of this feed works with another Redis; give all the same address',
      );
    if (kind === 'away')
      context.log.warn({}, 'the Redis of the timelines does not answer; homes are read from the posts');
    if (kind !== 'waiting' || context.clock.monotonicMs() > endsAtMs) return;
    await delay(pauseMs);
  }
}
