/** What operators do with messages, and what the store does by itself. */
import { largeId } from '../large-tables.js';
import { held, hundred, ids, next, one, rest, type Operation } from './operation.js';

export const operates: Operation[] = [
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

export const housekeeping: Operation[] = [
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
