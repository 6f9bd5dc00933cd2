/**
 * The operations whose plans are looked at among millions of messages. Each has the bounds of one call, in rows of one
 * statement and in pages of the whole call, and a preparation that answers the call.
 */
import type { DequeueRequest, LeaseRef, MessageState, QueueStore } from '../../../src/queue/index.js';
import { largeId } from './large-tables.js';

/** Numbers of the first message of each kind in the queue `q`. */
export interface LargeQueue {
  readonly ended: number;
  readonly errored: number;
  readonly canceled: number;
  readonly completed: number;
  readonly future: number;
  readonly waiting: number;
  readonly last: number;
  /** Of the first value of `x` that is idle. */
  readonly idle: number;
}

interface Bounds {
  readonly rows: number;
  readonly pages: number;
}

type Operation = readonly [
  name: string,
  bounds: Bounds,
  prepare: (store: QueueStore, at: LargeQueue) => Promise<() => Promise<unknown>>,
];

const one: Bounds = { rows: 60, pages: 300 };
/** A page of running or of future messages may have to walk the others, which stand in the same index. */
const behindRunning: Bounds = { rows: 10_100, pages: 12_000 };
const hundred: Bounds = { rows: 1_000, pages: 8_000 };

let made = 0;
const next = (): number => (made += 1);
const rest = { queue: 'q', now: undefined };
const message = (id: string, metadata: Record<string, string> = { kind: 'a', tenant: 't5' }) => ({
  id,
  payload: '1',
  metadata,
  priority: undefined,
  delayMs: undefined,
  attemptsMax: undefined,
  leaseMs: undefined,
  uniqueWhileLive: false,
  trace: undefined,
});
const request = (count: number, given: Partial<DequeueRequest> = {}): DequeueRequest => ({
  ...rest,
  count,
  where: {},
  leaseMs: 3_600_000,
  requestId: `request-${next()}`,
  worker: undefined,
  ...given,
});
const held = async (
  store: QueueStore,
  count: number,
  given: Partial<DequeueRequest> = {},
): Promise<LeaseRef[]> =>
  (await store.dequeue(request(count, given))).map(({ id, leaseToken }) => ({ id, leaseToken }));
const results = (leases: readonly LeaseRef[]) => leases.map((lease) => ({ ...lease, result: '1' }));
const ids = (...seqs: number[]) => seqs.map(largeId);

const enqueues: Operation[] = [
  [
    'enqueue of one',
    one,
    async (store) => () => store.enqueue({ ...rest, messages: [message(`new-${next()}`)] }),
  ],
  [
    'enqueue of a hundred',
    hundred,
    async (store) => () =>
      store.enqueue({ ...rest, messages: Array.from({ length: 100 }, () => message(`new-${next()}`)) }),
  ],
  [
    'enqueue of known ids: ended, waiting, with another payload',
    one,
    async (store, { completed, waiting }) =>
      () =>
        store.enqueue({
          ...rest,
          messages: ids(completed + next(), waiting + next(), completed + next()).map((id) => message(id)),
        }),
  ],
];

const dequeues: Operation[] = [
  ['dequeue of one', one, async (store) => () => held(store, 1)],
  ['dequeue of a hundred', hundred, async (store) => () => held(store, 100)],
  [
    'dequeue repeated',
    one,
    async (store) => {
      const again = request(1);
      await store.dequeue(again);
      return () => store.dequeue(again);
    },
  ],
  [
    'dequeue with a frequent pair',
    { rows: 600, pages: 2_000 },
    async (store) => () => held(store, 1, { where: { kind: 'a' } }),
  ],
  [
    'dequeue with a pair of one message',
    one,
    async (store, { last }) => {
      const order = last - (last % 10) - 10 * (1 + (next() % 1_500));
      return () => held(store, 1, { where: { order: `o${order}` } });
    },
  ],
  [
    'dequeue with a rare and a frequent pair',
    { rows: 600, pages: 2_000 },
    async (store) => () => held(store, 5, { where: { region: 'us', kind: 'a' } }),
  ],
  [
    'dequeue with a pair that nothing has',
    one,
    async (store) => () => held(store, 1, { where: { region: 'xx' } }),
  ],
  [
    'dequeue of an exclusive queue behind blocked messages',
    one,
    async (store) => () => held(store, 1, { queue: 'x' }),
  ],
  [
    'dequeue of an exclusive queue with a filter',
    { rows: 1_000, pages: 3_000 },
    async (store, { idle }) =>
      () =>
        held(store, 1, { queue: 'x', where: { user: `u${idle + 300 + (next() % 600)}` } }),
  ],
];

const settlings: Operation[] = [
  [
    'complete of one',
    one,
    async (store) => {
      const leases = results(await held(store, 1));
      return () => store.complete({ ...rest, leases });
    },
  ],
  [
    'complete of a hundred',
    hundred,
    async (store) => {
      const leases = results(await held(store, 100));
      return () => store.complete({ ...rest, leases });
    },
  ],
  [
    'complete repeated',
    one,
    async (store) => {
      const leases = results(await held(store, 1));
      await store.complete({ ...rest, leases });
      return () => store.complete({ ...rest, leases });
    },
  ],
  [
    'complete in an exclusive queue',
    one,
    async (store) => {
      const leases = results(await held(store, 1, { queue: 'x' }));
      return () => store.complete({ ...rest, queue: 'x', leases });
    },
  ],
  [
    'complete and dequeue',
    one,
    async (store) => {
      const complete = results(await held(store, 1));
      return () => store.settleAndDequeue!({ ...rest, complete, dequeue: request(1) });
    },
  ],
  [
    'extend',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({ ...lease, leaseMs: 3_700_000 }));
      return () => store.extend({ ...rest, leases });
    },
  ],
  [
    'fail with a retry',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({
        ...lease,
        error: 'e',
        retryDelayMs: 3_600_000,
      }));
      return () => store.fail({ ...rest, leases });
    },
  ],
  [
    'fail for good',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({
        ...lease,
        error: 'e',
        retryDelayMs: undefined,
      }));
      return () => store.fail({ ...rest, leases });
    },
  ],
  [
    'release',
    one,
    async (store) => {
      const leases = (await held(store, 1)).map((lease) => ({ ...lease, delayMs: 0, refund: true }));
      return () => store.release({ ...rest, leases });
    },
  ],
];

const operates: Operation[] = [
  [
    'cancel of waiting, future, ended and unknown messages',
    one,
    async (store, { waiting, future, completed }) => {
      const at = 20_000 + next();
      return () =>
        store.cancel({ ...rest, ids: [...ids(waiting + at, future + next(), completed), 'unknown'] });
    },
  ],
  [
    'change of a waiting message',
    one,
    async (store, { waiting }) => {
      const id = largeId(waiting + 25_000 + next());
      return () =>
        store.change({
          ...rest,
          changes: [{ id, priority: Date.now(), visibleAt: undefined, payload: '2' }],
        });
    },
  ],
  [
    'requeue',
    one,
    async (store, { errored, completed }) =>
      () =>
        store.requeue({ ...rest, ids: [...ids(errored + (next() % 50), completed), 'unknown'] }),
  ],
  ...(['invisible', 'pending', 'completed', 'canceled', 'errored'] as const).map(
    (state): Operation => [
      `purge of a hundred that are ${state}`,
      hundred,
      async (store) => () => store.purge({ ...rest, state, limit: 100 }),
    ],
  ),
];

const states: MessageState[] = ['invisible', 'pending', 'running', 'completed', 'canceled', 'errored'];
const lists = states.flatMap((state): Operation[] => {
  const page = { ...rest, state, where: {}, limit: 50 };
  return [
    [
      `list of ${state}`,
      state === 'invisible' ? behindRunning : hundred,
      async (store) => {
        await held(store, 100);
        return () => store.list({ ...page, after: undefined });
      },
    ],
    [
      `list of ${state}, the page after`,
      state === 'invisible' || state === 'running' ? behindRunning : hundred,
      async (store) => {
        const { next: after } = await store.list({ ...page, limit: 1_000, after: undefined });
        return () => store.list({ ...page, after });
      },
    ],
    [
      `list of ${state} with a filter`,
      { rows: 20_100, pages: 30_000 },
      async (store) => () => store.list({ ...page, where: { tenant: 't99' }, after: undefined }),
    ],
  ];
});

const newestLists = (['completed', 'canceled', 'errored'] as const).flatMap((state): Operation[] => {
  const page = { ...rest, state, where: {}, limit: 50, newestFirst: true };
  return [
    [
      `list of ${state} from the newest on`,
      hundred,
      async (store) => () => store.list({ ...page, after: undefined }),
    ],
    [
      `list of ${state} from the newest on, the page after`,
      hundred,
      async (store) => {
        const { next: after } = await store.list({ ...page, limit: 1_000, after: undefined });
        return () => store.list({ ...page, after });
      },
    ],
  ];
});

const reads: Operation[] = [
  [
    'get of a live message',
    one,
    async (store, { last }) =>
      () =>
        store.get({ ...rest, id: largeId(last) }),
  ],
  [
    'get of an ended message',
    one,
    async (store, { completed }) =>
      () =>
        store.get({ ...rest, id: largeId(completed) }),
  ],
  ['get of an unknown id', one, async (store) => () => store.get({ ...rest, id: 'unknown' })],
  [
    'history of an ended message',
    { rows: 10_100, pages: 1_000 },
    async (store, { completed }) =>
      () =>
        store.history({ ...rest, id: largeId(completed) }),
  ],
  [
    'history of a live message',
    { rows: 10_100, pages: 1_000 },
    async (store, { last }) =>
      () =>
        store.history({ ...rest, id: largeId(last) }),
  ],
  ['depth', { rows: 5_000, pages: 1_000 }, async (store) => () => store.depth({ ...rest, where: {} })],
  [
    'depth of a pair',
    { rows: 5_000, pages: 1_000 },
    async (store) => () => store.depth({ ...rest, where: { tenant: 't5' } }),
  ],
  [
    'a step of the depth of two pairs',
    { rows: 45_000, pages: 100_000 },
    async (store) => () => store.depth({ ...rest, where: { kind: 'a', region: 'us' } }),
  ],
  ['oldest', { rows: 100_100, pages: 120_000 }, async (store) => () => store.oldest({ ...rest, where: {} })],
  ['ready', one, async (store) => () => store.ready!({ queues: ['q', 'x'], now: undefined })],
  ['configuration', one, async (store) => () => store.configuration('q')],
  [
    'configure',
    one,
    async (store) => () => store.configure('q', { attemptsMax: 3, type: { kind: 'simple' } }),
  ],
];

const housekeeping: Operation[] = [
  [
    'a step of housekeeping',
    { rows: 4_500, pages: 20_000 },
    async (store) => () => store.housekeep({ now: undefined }),
  ],
  [
    'a sweep of a hundred expired leases',
    hundred,
    async (store) => {
      await held(store, 100, { leaseMs: 1 });
      return () => store.ready!({ queues: ['q'], now: undefined }).then(() => held(store, 1));
    },
  ],
];

export const operations: readonly Operation[] = [
  ...enqueues,
  ...dequeues,
  ...settlings,
  ...operates,
  ...lists,
  ...newestLists,
  ...reads,
  ...housekeeping,
];
