/** What brings messages in and hands them out. */
import { held, hundred, ids, message, next, one, request, rest, type Operation } from './operation.js';

export const enqueues: Operation[] = [
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

export const dequeues: Operation[] = [
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
